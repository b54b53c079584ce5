"""The number under which a process stands in LMDB's table of readers, and in LMDB's locks on it.

LMDB takes the process's id, and locks the byte of its lock file that has this number as long as the process lives. In
two containers both processes may be process 1: LMDB would refuse the second. And one that is killed and starts again in
a container is process 1 again: LMDB would take what the dead one left in the table for the living one's, and keep its
pages for ever. So a process gives itself a number that nobody else has as soon as LMDB has opened the environment,
which happens in one process at a time (the door of folder.py):

    number    instance, random, 1 to 510 | the process's id in its own pid namespace (22 bits, Linux's most)

The byte of that number is locked instead of that of the id. Who asks the kernel for the holder of that lock learns the
process as it is called here: that is how `process_of` finds it, and finds that it cannot be seen from here.

LMDB has no call for this. The number is written into its environment, which is found by what is known of it. Where that
is not as in LMDB 0.9 and 1.0, or on a system without /proc, the id is the number.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import secrets
import struct
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import lmdb

PID_BITS: Final = 22
_MOST_INSTANCES: Final = 510
_TRIES: Final = 10_000
_POINTER: Final = struct.Struct("P")
_BEGINNING: Final = struct.Struct("3iI3Ii2Ii")
"""Of LMDB's environment: descriptors of data, lock and meta pages, flags, page size, the system's, places for readers,
readers to look at when it is closed, databases, most databases, process id."""
_CLOSES_AT: Final = 28
_PROCESS_AT: Final = 40
_LOCK: Final = struct.Struct("hhqqi0q")
"""flock(2)'s on Linux: type, whence, start, length, process."""


def pid_in(number: int) -> int:
    """Return a process's id in its own pid namespace."""
    return number & (1 << PID_BITS) - 1


class ReaderNumber:
    """This process's number in one environment."""

    def __init__(self, environment: lmdb.Environment, path: Path) -> None:
        """Take a number. Nobody else may open the environment meanwhile. Raises OSError."""
        self.value = os.getpid()
        self._at, self._locks = _found(environment, path)
        if not self._at:
            return
        number = self._free({int(word) for word in environment.readers().split() if word.isdigit()})
        _locked(self._locks, number, fcntl.F_WRLCK)
        ctypes.c_int.from_address(self._at + _PROCESS_AT).value = number
        _locked(self._locks, self.value, fcntl.F_UNLCK)
        self.value = number

    def _free(self, taken: Collection[int]) -> int:
        for _ in range(_TRIES):
            number = secrets.randbelow(_MOST_INSTANCES) + 1 << PID_BITS | self.value
            if number not in taken and self._holder(number) is None:
                return number
        raise BlockingIOError(f"{_MOST_INSTANCES} processes with the id {self.value} have it open")

    def process_of(self, number: int) -> int:
        """Return the id that a process has here, by its number; 0 if it has none, in another pid namespace; -1 if it
        has ended."""
        if number == self.value:
            return os.getpid()
        if not self._at:
            return number
        holder = self._holder(number)
        return -1 if holder is None else holder

    def let_go(self) -> None:
        """Call this before LMDB closes the environment. It would take out of the table whoever stands there under our
        id, and that is somebody else."""
        if self._at:
            ctypes.c_int.from_address(self._at + _CLOSES_AT).value = 0
            self._at, self._locks = 0, -1

    def _holder(self, number: int) -> int | None:
        """Return who has locked this byte, as far as it can be seen from here (else 0); None: nobody has."""
        asked = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, number, 1, 0)
        kind, _, _, _, process = _LOCK.unpack(fcntl.fcntl(self._locks, fcntl.F_GETLK, asked))
        return None if kind == fcntl.F_UNLCK else max(0, process)


def _locked(descriptor: int, at: int, kind: int) -> None:
    fcntl.fcntl(descriptor, fcntl.F_SETLK, _LOCK.pack(kind, os.SEEK_SET, at, 1, 0))


def _found(environment: lmdb.Environment, path: Path) -> tuple[int, int]:
    """Return the address of LMDB's environment, and the descriptor of its lock file; zero where it is not found."""
    size = type(environment).__basicsize__
    words = ctypes.string_at(id(environment), size - size % _POINTER.size)
    known = environment.stat()["psize"], mmap.PAGESIZE, environment.info()["max_readers"], os.getpid()
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0, -1
    try:
        for (address,) in _POINTER.iter_unpack(words):
            try:
                said = _BEGINNING.unpack(os.pread(memory, _BEGINNING.size, address))
            except (OSError, OverflowError, struct.error):
                continue  # no pointer
            data, locks = said[0], said[1]
            if (said[4], said[5], said[6], said[10]) == known and _is_file(data, path):
                return (address, locks) if _is_file(locks, path.with_name(path.name + "-lock")) else (0, -1)
    finally:
        os.close(memory)
    return 0, -1


def _is_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False
