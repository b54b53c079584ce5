"""Reading the log as it goes on: what a backup does, in a process of its own.

    followers/NAME   a file of each one who follows: the number of the segment that it reads, u64, big-endian; locked
                     as long as it follows

It takes no lock of the store's and costs a writer nothing. Whoever makes a checkpoint looks at this folder before it
removes a segment that is home, and leaves those that are followed: up to MOST_KEPT_BYTES, then the oldest go all the
same. So one that is stopped keeps no more than that, and finds out that it has lost the log.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias

from rlite_pubsub import permissions

if TYPE_CHECKING:
    from rlite_pubsub.storage.log.log import Log, OpenWindow
    from rlite_pubsub.storage.log.transaction import LogTransaction

MOST_KEPT_BYTES: Final = 256 << 20
_FOLDER: Final = "followers"
_NUMBER: Final = Struct(">Q")

Record: TypeAlias = tuple[int, int, list[tuple[bytes, bytes | None]]]
"""A commit: its number, its time in ms, and its rows; those that are None were removed."""


class LogLost(Exception):
    """Segments that were not read yet have gone: whoever follows was too slow, and begins anew with all there is."""


class Following:
    """One who follows, from now on. Used by one thread."""

    def __init__(self, log: Log, folder: Path) -> None:
        """Raises OSError; lmdb.Error."""
        self._log = log
        self._window: OpenWindow | None = None  # one that has gone from the log, and is read still
        parent = folder / _FOLDER
        if not parent.is_dir():
            with suppress(FileExistsError):
                permissions.make_folder(parent)
        self._path = parent / secrets.token_hex(8)
        self._fd = permissions.opened(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        fcntl.flock(self._fd, fcntl.LOCK_EX)  # before it has a number it keeps everything
        txn = log.begin()
        try:
            self.place = txn.place
        finally:
            log.end(txn)
        self._note()

    def read(self, txn: LogTransaction) -> list[Record]:
        """Return what was committed since the last time, up to what this transaction sees. Raises LogLost, and then
        nothing more can be read; OSError."""
        until = txn.place
        records = list[Record]()
        for number in range(self.place.segment, until.segment + 1):
            since = self.place.tip if number == self.place.segment else 0
            layers = [(layer.window, tip) for layer, tip in txn.layers if layer.window.number == number]
            if layers:
                window, tip = layers[0]
                records += window.records(since, tip)
            else:
                gone = self._opened(number).window
                records += gone.records(since, gone.tip)
        if until.segment != self.place.segment:
            self._let_go()
        self.place = until
        self._note()
        return records

    def _opened(self, number: int) -> OpenWindow:
        if self._window is None or self._window.number != number:
            self._let_go()
            try:
                self._window = self._log.open_window(number)
            except FileNotFoundError as failure:
                raise LogLost(f"segment {number} has gone") from failure
        return self._window

    def _note(self) -> None:
        os.pwrite(self._fd, _NUMBER.pack(self.place.segment), 0)

    def _let_go(self) -> None:
        if self._window is not None:
            self._window.close()
            self._window = None

    def close(self) -> None:
        """Follow no more."""
        self._let_go()
        self._path.unlink(missing_ok=True)
        os.close(self._fd)


def kept_from(folder: Path) -> int | None:
    """Return the number of the first segment that somebody reads; None if nobody follows. What the dead have left is
    removed."""
    found: int | None = None
    for path in (folder / _FOLDER).glob("*"):
        try:
            descriptor = permissions.opened(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            said = os.pread(descriptor, _NUMBER.size, 0)
            number = _NUMBER.unpack(said)[0] if len(said) == _NUMBER.size else 0
            found = number if found is None else min(found, number)
        else:
            path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)
    return found
