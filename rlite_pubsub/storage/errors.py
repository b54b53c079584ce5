"""The errors of a store. Each says where, why, and what to do; none is lmdb's or the OS's own."""

from __future__ import annotations

import errno
import os
import struct
import traceback
from collections.abc import Callable
from pathlib import Path

_FORBIDDEN = {os.strerror(code) for code in (errno.EACCES, errno.EPERM, errno.EROFS)}


class StoreError(Exception):
    """Something is wrong with the store itself, not with the request."""


class NotAStoreFolder(StoreError):
    """The path exists, and is not a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} is not a folder: name a folder for the store, or remove the file")


class StoreUnwritable(StoreError):
    """The OS refuses to write, for its own reason; nothing was half-written."""

    def __init__(self, path: Path, reason: str) -> None:
        needed = ": publishing, subscribing and looking all need write permission for the folder and its files"
        super().__init__(f"cannot write to the store at {path}: {reason}{needed if reason in _FORBIDDEN else ''}")
        self.reason = reason


class DiskFull(StoreUnwritable):
    """There is no room on the disk for additions; removals have a little that is kept for them."""


class StoreRemoved(StoreError):
    """The folder, or a file in it, is not the one that was opened: nobody else would ever see what was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"the store at {path} was removed, moved or replaced while this process had it open: "
            "open it again, or restart this program"
        )


class InterruptedTurn(StoreError):
    """An exception came from without in the middle of a turn. Nothing of it was done."""

    def __init__(self, interruption: BaseException) -> None:
        super().__init__(f"the program interrupted it ({type(interruption).__name__})")


class StoreFull(StoreError):
    """The quota is reached; what was committed before is intact, and removing still works."""

    def __init__(self, path: Path, quota_bytes: int) -> None:
        super().__init__(f"the store at {path} is full: its quota is {quota_bytes} bytes")
        self.quota_bytes = quota_bytes


NO_ROOM = (StoreFull, DiskFull)
"""Nothing can be added until something is removed."""


class StoreFormatMismatch(StoreError):
    """The store was written by another version of this program, or by another program."""

    def __init__(self, path: Path, found: str, expected: str) -> None:
        super().__init__(
            f"{path} has format {found}, and this version of rlite-pubsub reads format {expected}: "
            f"use the version that wrote it, or another folder"
        )


class StoreFormatOlder(StoreFormatMismatch):
    """The store was written by an older version, and somebody has it open: it cannot be upgraded now."""

    def __init__(self, path: Path, found: str, expected: str) -> None:
        StoreError.__init__(
            self,
            f"{path} has format {found}, and this version of rlite-pubsub reads format {expected}: "
            f"it is upgraded by the first that opens the store once all others have closed it",
        )


class StoreDamaged(StoreError):
    """The bytes are not what a store's bytes can be."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} is damaged ({reason}): restore it from a copy, or move it away and start with a new one"
        )


class RecordDamaged(StoreError):
    """A record is not what we write, or one that others refer to is missing."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the store is damaged ({what}): `rlite-pubsub doctor --deep` tells where")


_READERS = ("rlite_pubsub.storage.", "rlite_pubsub.keyspace.", "rlite_pubsub.groups.")
_UNREADABLE = (struct.error, ValueError, LookupError, AssertionError, OverflowError, MemoryError)
"""The exceptions that damaged bytes cause when a record is unpacked."""


def damage_in(failure: Exception) -> RecordDamaged | None:
    """Return the damage behind an unforeseen error, if it comes from code that reads records; else None."""
    if not isinstance(failure, _UNREADABLE) or failure.__traceback__ is None:
        return None
    *_, (frame, _) = traceback.walk_tb(failure.__traceback__)
    if not str(frame.f_globals.get("__name__")).startswith(_READERS):
        return None
    return RecordDamaged(f"a record cannot be read: {failure or type(failure).__name__}")


class DanglingLetter(StoreError):
    """A mailbox refers to a message that is missing: none of our transactions leaves that behind."""


class StoreBusy(StoreError):
    """Others keep what is needed for longer than it should ever take."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"the store at {path} is busy: {reason}")


class StoreHeld(StoreBusy):
    """Another process or thread is writing. Nothing was done; it can be done once that one has ended or died."""

    def __init__(self, path: Path, why: Callable[[], str]) -> None:
        """`why` finds out who that is, which takes a system call."""
        super().__init__(path, "another process is writing")
        self.path = path
        self._why = why

    def __str__(self) -> str:
        return self._why()


class PartlySent(StoreError):
    """Not every receiver of a message can get it, and some may have it already: publishing it again may repeat it."""

    def __init__(self, failure: Exception) -> None:
        super().__init__(str(failure))


class StoreClosed(StoreError):
    """The store was closed, or was opened by the process that this one was forked from."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"the store at {path} is not open in this process: open it again")
