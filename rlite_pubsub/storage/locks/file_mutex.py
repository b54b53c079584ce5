"""A mutex for systems whose libc has none that processes can share and that is released when its holder dies (macOS),
and for processes in several pid namespaces (guarded_mutex.py).

It promises the same as mutex.py, by flock on a file of its own, at the price of a system call. Memory holds the process
that has it, instead of the thread: the id of one that was killed stays there until the next one takes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from mmap import mmap
from pathlib import Path
from threading import Lock, get_ident
from weakref import WeakSet

from rlite_pubsub import permissions
from rlite_pubsub.storage.locks.mutex import tried_until

_WORDS_BYTES = 8
_open: WeakSet[FileMutex] = WeakSet()


class FileMutex:
    """A mutex, at a place of a mapped file, and at a path."""

    def __init__(self, path: Path, memory: mmap, place: int) -> None:
        """Open its file. Raises OSError."""
        self._words = memoryview(memory)[place : place + _WORDS_BYTES].cast("Q")
        self._descriptor = permissions.opened(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        self._inside = Lock()  # flock does not tell the threads of a process apart
        self._thread = 0
        _open.add(self)

    def make(self) -> None:
        """Initialise it, free. Nobody may use it meanwhile."""
        self._words[0] = 0

    def take(self) -> int:
        """Take it at once. Returns 0 if this thread has it now, EBUSY if somebody else has."""
        if not self._inside.acquire(blocking=False):
            return errno.EBUSY
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._inside.release()
            return errno.EBUSY
        except BaseException:
            self._inside.release()
            raise
        self._words[0] = os.getpid()
        self._thread = get_ident()
        return 0

    def unlock(self) -> int:
        """Release it, in the thread that has taken it."""
        self._words[0] = self._thread = 0
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self._inside.release()
        return 0

    def try_lock(self) -> bool:
        """Take it if that is possible at once; return whether it was."""
        return self.take() == 0

    def lock(self, seconds: float) -> bool:
        """Take it, waiting this long at most; return False if that failed."""
        return tried_until(self.try_lock, time.monotonic() + seconds)

    def holder(self) -> int:
        """Return the process that has it, or had it when it was killed; 0: nobody has."""
        return self._words[0]

    def is_mine(self) -> bool:
        """Return whether this thread has it."""
        return self._thread == get_ident()

    @property
    def is_ours(self) -> bool:
        """True if some thread of this process has it."""
        return self._thread != 0

    @property
    def descriptor(self) -> int:
        """The descriptor of the file that is locked."""
        return self._descriptor

    def took(self, code: int) -> bool:
        """Return whether the code of `take` says that this thread has it."""
        return code == 0

    def close(self) -> None:
        """Stop using it: its holder has released it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


def _close_in_child() -> None:
    for mutex in list(_open):
        mutex.close()  # or it would stay locked as long as the child lives


os.register_at_fork(after_in_child=_close_in_child)
