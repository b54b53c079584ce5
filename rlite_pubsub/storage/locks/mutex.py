"""A mutex in shared memory: it can be tried, it names its holder, and it is released when its holder dies, in whatever
way.

It is libc's own: a shared and robust pthread mutex, as LMDB's are. Taking and releasing a free one costs 0.2 us, and no
system call. The protocol between kernel and libc reveals the holder: a word of the mutex is the number of the thread.
Which word that is differs between libcs, so it is looked for.

The thread that locks must unlock. A thread that locks twice waits for itself.
"""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from mmap import mmap
from pathlib import Path
from threading import get_native_id
from typing import cast

SIZE_BYTES = 64
"""The bytes reserved for one; libc needs 40 to 48."""
_PROCESS_SHARED = _ROBUST = 1
THREAD = 0x3FFFFFFF
"""The bits of that word that are the holder; the others say that somebody waits, or that the holder has died."""
_here = ctypes.PyDLL(None)  # quick calls keep Python's lock
_aside = ctypes.CDLL(None)  # calls that wait release it
IS_TO_BE_HAD = hasattr(_here, "pthread_mutexattr_setrobust")
"""Whether libc has such mutexes. macOS has none: see file_mutex.py."""
_clocklock = getattr(_aside, "pthread_mutex_clocklock", None)
_PAUSE_S = 0.0002
_Memory = ctypes.c_char * SIZE_BYTES


def tried_until(try_lock: Callable[[], bool], end: float) -> bool:
    """Try to take a lock until this moment of the monotonic clock; return whether it was taken."""
    while not try_lock():
        left_s = end - time.monotonic()
        if left_s <= 0:
            return False
        time.sleep(min(left_s, _PAUSE_S))
    return True


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("ns", ctypes.c_long))


class Mutex:
    """A mutex, at a place of a mapped file. Many processes may have it mapped; one of them has made it."""

    def __init__(self, memory: mmap, place: int) -> None:
        self._memory = _Memory.from_buffer(memory, place)
        self._words = memoryview(memory)[place : place + SIZE_BYTES].cast("I")
        self.take = partial(_here.pthread_mutex_trylock, self._memory)
        """Take it at once. Returns 0 if this thread has it now; `took` explains the other codes."""
        self.unlock = partial(_here.pthread_mutex_unlock, self._memory)
        """Release it, in the thread that has taken it."""

    def make(self) -> None:
        """Initialise it, free. Nobody may use it meanwhile, or have used it before without releasing it."""
        attributes = ctypes.create_string_buffer(SIZE_BYTES)
        _check(_here.pthread_mutexattr_init(attributes))
        _check(_here.pthread_mutexattr_setpshared(attributes, _PROCESS_SHARED))
        _check(_here.pthread_mutexattr_setrobust(attributes, _ROBUST))
        _check(_here.pthread_mutex_init(self._memory, attributes))

    def try_lock(self) -> bool:
        """Take it if that is possible at once; return whether it was."""
        code: int = self.take()
        return not code or self.took(code)

    def lock(self, seconds: float) -> bool:
        """Take it, waiting this long at most, whatever happens to the wall clock; return False if that failed."""
        end = time.monotonic() + seconds
        if _clocklock is None:
            return tried_until(self.try_lock, end)  # as libc would, by a clock that nobody sets back
        until = _Time(int(end), int(end % 1 * 1_000_000_000))
        code: int = _clocklock(self._memory, time.CLOCK_MONOTONIC, ctypes.byref(until))
        return not code or self.took(code)

    def holder(self) -> int:
        """Return the thread that has it, as the kernel numbers threads; 0: nobody has."""
        return self._words[OWNER] & THREAD

    def is_mine(self) -> bool:
        """Return whether this thread has it."""
        return self.holder() == get_native_id()

    def took(self, code: int) -> bool:
        """Return whether libc's code says that this thread has it."""
        if code == errno.EOWNERDEAD:  # LMDB's data is what it protects, and LMDB recovers that by itself
            _check(_here.pthread_mutex_consistent(self._memory))
            return True
        if code in (errno.EBUSY, errno.ETIMEDOUT):
            return False
        raise OSError(code, os.strerror(code))


def _check(code: int) -> None:
    if code:
        raise OSError(code, os.strerror(code))


def mapped(path: Path, size_bytes: int) -> Sequence[int]:
    """Return the first bytes of a file that this process has mapped into its memory, as words; zeros if it has not.
    Nobody may use them once it is unmapped.

    Opening the file once more would not do: LMDB's locks on its files are lost as soon as any descriptor is closed.
    """
    inode = os.stat(path).st_ino
    for line in Path("/proc/self/maps").read_text(errors="replace").splitlines():
        addresses, _, offset, _, its_inode, *name = line.split(None, 5)
        if int(its_inode) == inode and not int(offset, 16) and name[0].endswith(path.name):
            start = int(addresses.partition("-")[0], 16)
            return cast("Sequence[int]", (ctypes.c_uint32 * (size_bytes // 4)).from_address(start))
    return bytes(size_bytes // 4)


def _find_owner() -> int:
    """Return the word of a mutex that holds its owner."""
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
