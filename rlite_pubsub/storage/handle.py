"""LMDB's handle of one environment: it is opened here, transactions pass its gate, and its errors are translated into
ours.

Without writemap: a commit costs 3 us more, but a full disk is an error and not a SIGBUS, and written pages do not count
as this process's memory.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import Final, Protocol

import lmdb

from rlite_pubsub import permissions
from rlite_pubsub.storage.errors import (
    DiskFull,
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreFormatMismatch,
    StoreRemoved,
    StoreUnwritable,
)
from rlite_pubsub.storage.locks import lock_file
from rlite_pubsub.storage.locks.gate import Gate
from rlite_pubsub.storage.locks.reader_number import ReaderNumber
from rlite_pubsub.storage.pages import holes, meta
from rlite_pubsub.storage.system import take_blocks

MAX_READERS: Final = 4096
"""LMDB's own default of 126 is fewer than the processes that may share a store."""
PAGE_BYTES: Final = 4096
NO_ROOM_ON_DISK: Final = (errno.ENOSPC, errno.EDQUOT)
_LITTLE_BYTES: Final = 4 << 20
"""For a disk: the write that came out short wanted more."""
_DAMAGE: Final = (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.PanicError, lmdb.InvalidError)
_SAME_ID: Final = (
    "another process has it open under the same process id ({}), in another pid namespace: its version, or its LMDB, "
    "cannot share it so"
)
_never_closed: Final[list[object]] = []
"""Of processes that this one was forked from."""


class GivesWay(Protocol):
    """A turn that has a transaction open."""

    txn: lmdb.Transaction[bytes] | None

    def give_way(self) -> object: ...

    def end(self, *, commit: bool) -> None: ...


class Handle:
    """Open from construction to `close`. Safe to share between threads, never with a forked child."""

    def __init__(self, path: Path, map_bytes: int) -> None:
        """Open the environment. Raises StoreError."""
        self.path = path
        self.gate = Gate()
        self.turns: dict[int, GivesWay] = {}
        """The open turns, by thread."""
        try:
            lock_file.reserve(path, MAX_READERS)
        except OSError as error:
            raise StoreUnwritable(path, os.strerror(error.errno or 0)) from error
        try:
            self.lmdb = lmdb.Environment(
                str(path),
                map_size=map_bytes,
                subdir=False,
                mode=permissions.OWNERS_FILE,
                sync=False,
                metasync=False,
                readahead=False,
                max_readers=MAX_READERS,
                max_spare_txns=0,  # a forked child that closes its copy would take a spare one's slot from us
            )
            self.number = ReaderNumber(self.lmdb, path)
            self.lmdb.reader_check()
            permissions.share(path, path.parent)
        except BlockingIOError as error:
            raise StoreBusy(path, f"{error}") from error
        except lmdb.Error as error:
            if error.code == errno.EAGAIN:
                raise StoreBusy(path, _SAME_ID.format(os.getpid())) from error
            raise self.told(error) from error
        except OSError as error:
            raise StoreUnwritable(path, os.strerror(error.errno or 0)) from error
        self._metas = _mapped(path)
        self.metas = memoryview(self._metas).cast("Q")
        """Both meta pages, as words: looking at them costs no call."""
        self.is_open = True
        self._is_condemned = False
        self.is_usable = True
        """Open, and not condemned."""

    # -- access

    def check(self) -> None:
        """Check that it `is_usable`. Raises StoreError."""
        if self._is_condemned:
            raise StoreRemoved(self.path.parent)
        if not self.is_open:
            raise StoreClosed(self.path)

    def condemn(self) -> None:
        """Condemn it: it is no longer at its path, and every use raises StoreRemoved."""
        self._is_condemned, self.is_usable = True, False

    def end_own_turn(self) -> None:
        """Commit what a turn of this thread has, and step aside."""
        me = get_ident()
        turn = self.turns.get(me)
        if turn is not None:
            turn.give_way()
            shared = self.turns.get(me)
            if shared is not None and shared is not turn:
                shared.give_way()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Pass the gate, for something short that is not a transaction of the caller's. Raises StoreError."""
        self.end_own_turn()
        with self.gate:
            self.check()
            yield

    def close(self) -> None:
        """Close it. The caller is alone in the gate."""
        self.is_open = self.is_usable = False
        self.number.let_go()
        self.lmdb.close()
        self.metas.release()
        self._metas.close()

    def abandon(self, pins: list[lmdb.Transaction[bytes]], *, idle: bool) -> None:
        """Forget it in a forked child, where it is not open. The copy is closed if that cannot harm the parent."""
        self.turns.clear()
        self.gate = Gate()
        self.is_open = self.is_usable = False
        self.number.let_go()
        if idle and not pins:
            self.lmdb.close()
        else:
            _never_closed.extend([self.lmdb, *pins])

    # -- LMDB's own figures. All but `readers` are for callers inside the gate.

    def used_bytes(self) -> int:
        """Return how far into its file this environment has ever written: free pages within it are reused first."""
        return int(self.lmdb.info()["last_pgno"] + 1) * PAGE_BYTES

    def last_commit(self) -> int:
        """Return a number that every commit of any process increases."""
        return int(self.lmdb.info()["last_txnid"])

    def table(self) -> str:
        """Return LMDB's table of readers, as text."""
        return self.lmdb.readers()

    def readers(self) -> str:
        """Return the same, for callers outside the gate. Raises StoreError."""
        with self.inside():
            return self.table()

    def process_of(self, number: int) -> int:
        """Return the id that a reader has here, by its number in that table; 0 if it cannot be seen from here. For
        callers outside the gate. Raises StoreError."""
        with self.inside():
            return self.number.process_of(number)

    def to_disk(self) -> None:
        """Sync the file. Raises lmdb.Error."""
        self.lmdb.sync(True)

    # -- the meaning of its errors

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Raise errors on the way to the disk as ours."""
        try:
            yield
        except lmdb.Error as error:
            raise self.told(error) from error
        except OSError as error:
            raise self._unwritable(error.errno or 0) from error

    def told(self, error: lmdb.Error) -> StoreError | lmdb.Error:
        """Translate an error if the store or the OS is to blame; return it unchanged if the caller of lmdb is."""
        if error.code > 0 and not isinstance(error, lmdb.InvalidParameterError):
            code = self._reason_of_short_write() if error.code == errno.EIO else error.code
            return self._unwritable(code)
        if isinstance(error, lmdb.ReadersFullError):
            return self.without_slots()
        if isinstance(error, lmdb.VersionMismatchError):
            return StoreFormatMismatch(self.path, "of another LMDB", f"of LMDB {'.'.join(map(str, lmdb.version()))}")
        if isinstance(error, _DAMAGE):
            return StoreDamaged(self.path, error.reason)
        return error

    def _unwritable(self, code: int) -> StoreUnwritable:
        return (DiskFull if code in NO_ROOM_ON_DISK else StoreUnwritable)(self.path, os.strerror(code))

    def without_slots(self) -> StoreBusy:
        """Return the error for too many readers at a time."""
        return StoreBusy(self.path, f"all of its {MAX_READERS} reader slots are taken")

    def reserve(self, at: int, size: int) -> None:
        """Reserve a place on the disk for what will be written there. Raises OSError."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            holes.reserve(descriptor, at, size)
        finally:
            os.close(descriptor)

    def _reason_of_short_write(self) -> int:
        """Find out why a write came out short, for which LMDB only says EIO: the OS's answer to one more page says it,
        or how little is left on the disk, since a page may have become free meanwhile."""
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError as error:
            return error.errno or errno.EIO
        try:
            take_blocks(descriptor, os.fstat(descriptor).st_size, PAGE_BYTES)
            disk = os.fstatvfs(descriptor)
        except OSError as error:
            return error.errno or errno.EIO
        finally:
            os.close(descriptor)
        return errno.ENOSPC if disk.f_bavail * disk.f_frsize < _LITTLE_BYTES else errno.EIO


def _mapped(path: Path) -> mmap.mmap:
    """Map the meta pages of an open environment. Raises StoreUnwritable."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return mmap.mmap(descriptor, meta.PAIR_BYTES, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreUnwritable(path, os.strerror(error.errno or 0)) from error
