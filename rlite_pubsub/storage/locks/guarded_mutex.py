"""A mutex between processes of several pid namespaces, such as containers.

libc's mutex (mutex.py) knows threads by the kernel's number, and that is another one in each namespace: in two
containers both writers may be thread 1. Then neither could tell whether it has the mutex itself, and where one is
killed while it waits for the other, the kernel would take the mutex for a dead one's and give it to a third.

So whoever may be in another namespace takes a lock on a file first (file_mutex.py), by which the kernel knows
processes, and asks for the mutex only if nobody has it; it never waits inside it. Processes that have not noticed yet
that there are several namespaces go by the mutex alone.
"""

from __future__ import annotations

import errno
import time
from typing import TYPE_CHECKING

from rlite_pubsub.storage.locks.mutex import tried_until
from rlite_pubsub.storage.system import holder_of

if TYPE_CHECKING:
    from rlite_pubsub.storage.locks.file_mutex import FileMutex
    from rlite_pubsub.storage.locks.mutex import Mutex



class GuardedMutex:
    """Like Mutex and FileMutex."""

    def __init__(self, guard: FileMutex, mutex: Mutex) -> None:
        self._guard = guard
        self._mutex = mutex

    def take(self) -> int:
        """Take it at once. Returns 0 if this thread has it now; `took` explains the other codes."""
        code = self._guard.take()
        if code:
            return code
        code = errno.EBUSY
        try:
            if not self._mutex.holder():
                code = self._mutex.take()
        finally:
            if code and code != errno.EOWNERDEAD:
                self._guard.unlock()
        return code

    def unlock(self) -> int:
        """Release it, in the thread that has taken it; maybe without the guard, before there were several
        namespaces."""
        code: int = self._mutex.unlock()
        if self._guard.is_mine():
            self._guard.unlock()
        return code

    def try_lock(self) -> bool:
        """Take it if that is possible at once; return whether it was."""
        code = self.take()
        return not code or self.took(code)

    def lock(self, seconds: float) -> bool:
        """Take it, waiting this long at most; return False if that failed."""
        return tried_until(self.try_lock, time.monotonic() + seconds)

    def holder(self) -> int:
        """Return the thread that has it, by its number in its own namespace; 0: nobody has."""
        return self._mutex.holder()

    def process(self) -> int:
        """Return the process that has it, as it is called here; 0 if it cannot be seen from here, or nobody has it."""
        return holder_of(self._guard.descriptor)

    def is_mine(self) -> bool:
        """Return whether this thread has it."""
        return self._guard.is_mine()

    @property
    def is_ours(self) -> bool:
        """True if some thread of this process has it."""
        return self._guard.is_ours

    def took(self, code: int) -> bool:
        """Return whether the code of `take` says that this thread has it."""
        return self._mutex.took(code)
