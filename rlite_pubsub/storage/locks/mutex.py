"""A mutex in memory that processes share: it can be tried, it says who holds it, and it is let go of when its holder
dies, however it dies.

It is libc's own: a pthread mutex that is shared and robust, as LMDB's are. To take and to let go one that is free costs
0.2 us, and no system call. What the kernel and libc agree on tells who holds it: a word of the mutex is the number of
the thread. Which word that is differs from one libc to the next, so it is looked for.

The thread that locks must unlock. A thread that locks twice waits for itself.
"""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections.abc import Sequence
from functools import partial
from mmap import mmap
from pathlib import Path
from threading import get_native_id
from typing import cast

SIZE_BYTES = 64
"""What is set aside for one; libc needs 40 to 48."""
_PROCESS_SHARED = _ROBUST = 1
THREAD = 0x3FFFFFFF
"""Of that word; the other bits say that somebody waits, or that the holder has died."""
_here = ctypes.PyDLL(None)  # what is over at once keeps Python's lock
_aside = ctypes.CDLL(None)  # what waits lets others have it
IS_TO_BE_HAD = hasattr(_here, "pthread_mutexattr_setrobust")
"""Whether libc has such mutexes. macOS's has none: file_mutex.py."""
_clocklock = getattr(_aside, "pthread_mutex_clocklock", None)
_PAUSE_S = 0.0002
_Memory = ctypes.c_char * SIZE_BYTES


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("ns", ctypes.c_long))


class Mutex:
    """One, at a place of a mapped file. Many processes may have it mapped; one of them has made it."""

    def __init__(self, memory: mmap, place: int) -> None:
        self._memory = _Memory.from_buffer(memory, place)
        self._words = memoryview(memory)[place : place + SIZE_BYTES].cast("I")
        self.take = partial(_here.pthread_mutex_trylock, self._memory)
        """Take it at once. 0: this thread has it now; `took` says what all else means."""
        self.unlock = partial(_here.pthread_mutex_unlock, self._memory)
        """Let it go, in the thread that has taken it."""

    def make(self) -> None:
        """Make it, free. Nobody may use it meanwhile, or have used it before without letting it go."""
        attributes = ctypes.create_string_buffer(SIZE_BYTES)
        _check(_here.pthread_mutexattr_init(attributes))
        _check(_here.pthread_mutexattr_setpshared(attributes, _PROCESS_SHARED))
        _check(_here.pthread_mutexattr_setrobust(attributes, _ROBUST))
        _check(_here.pthread_mutex_init(self._memory, attributes))

    def try_lock(self) -> bool:
        """Take it, if that can be done at once."""
        code: int = self.take()
        return not code or self.took(code)

    def lock(self, seconds: float) -> bool:
        """Take it, after waiting for so long at most, whatever becomes of the wall clock; False if it was not to be
        had."""
        end = time.monotonic() + seconds
        if _clocklock is None:
            return self._tried_until(end)
        until = _Time(int(end), int(end % 1 * 1_000_000_000))
        code: int = _clocklock(self._memory, time.CLOCK_MONOTONIC, ctypes.byref(until))
        return not code or self.took(code)

    def _tried_until(self, end: float) -> bool:
        """As libc would wait, where it can do so by the wall clock only: that may be set back meanwhile."""
        while not self.try_lock():
            left_s = end - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(left_s, _PAUSE_S))
        return True

    def holder(self) -> int:
        """The thread that has it, as the kernel numbers threads; 0: nobody has."""
        return self._words[OWNER] & THREAD

    def is_mine(self) -> bool:
        """Whether this thread has it."""
        return self.holder() == get_native_id()

    def took(self, code: int) -> bool:
        """Whether libc has answered that this thread has it."""
        if code == errno.EOWNERDEAD:  # what it protects is LMDB's, which sees to that by itself
            _check(_here.pthread_mutex_consistent(self._memory))
            return True
        if code in (errno.EBUSY, errno.ETIMEDOUT):
            return False
        raise OSError(code, os.strerror(code))


def _check(code: int) -> None:
    if code:
        raise OSError(code, os.strerror(code))


def mapped(path: Path, size_bytes: int) -> Sequence[int]:
    """The first bytes of a file that this process has mapped into its memory, as words; zeros where it has not. Nobody
    may look at them once it is mapped no more.

    To open the file once more would not do: LMDB's locks on its files are lost as soon as any descriptor is closed.
    """
    inode = os.stat(path).st_ino
    for line in Path("/proc/self/maps").read_text(errors="replace").splitlines():
        addresses, _, offset, _, its_inode, *name = line.split(None, 5)
        if int(its_inode) == inode and not int(offset, 16) and name[0].endswith(path.name):
            start = int(addresses.partition("-")[0], 16)
            return cast("Sequence[int]", (ctypes.c_uint32 * (size_bytes // 4)).from_address(start))
    return bytes(size_bytes // 4)


def _find_owner() -> int:
    """In which word of a mutex its holder stands."""
    words = ctypes.create_string_buffer(SIZE_BYTES)
    attributes = ctypes.create_string_buffer(SIZE_BYTES)
    _check(_here.pthread_mutexattr_init(attributes))
    _check(_here.pthread_mutexattr_setrobust(attributes, _ROBUST))
    _check(_here.pthread_mutex_init(words, attributes))
    _check(_here.pthread_mutex_trylock(words))
    try:
        found = list(memoryview(words).cast("B").cast("I"))
    finally:
        _check(_here.pthread_mutex_unlock(words))
    return next(place for place, word in enumerate(found) if word & THREAD == get_native_id())


OWNER = _find_owner() if IS_TO_BE_HAD else 0
