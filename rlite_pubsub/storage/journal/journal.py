"""The journal of data.mdb: turns that were acknowledged, but whose transaction LMDB has not committed yet.

    data.journal    records, one after the other from the beginning of the file:
        bytes of the rows u32, base u64, number u32
        rows, each: length of the key u16, length of the value u32 (2^32-1: the row is removed), key, value
        mark u32: CRC-32 of the boot id and the three numbers

    LAW    A record counts only if its mark is there, its base is the last commit of data.mdb, and those numbered before
           it, from 0 on, are there. So the commit that brings turns home makes their records void in the same instant.

A record is in the file before its turn is acknowledged, so a `kill -9` loses nothing; whoever opens the store next
brings it home (recovery.py). It is one write, which the kernel does from its beginning to its end: a kill cuts off the
end, with the mark. It is never synced: after a power cut the checkpoint counts (checkpoints/checkpoint.py), and the
mark proves that a record is of this start of the machine. So a machine without a boot id has no journal.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from rlite_pubsub import permissions
from rlite_pubsub.storage.journal.recording import touch
from rlite_pubsub.storage.keys.key_bytes import CHANGE_HEAD, REMOVED, changes
from rlite_pubsub.storage.system import take_blocks

if TYPE_CHECKING:
    from rlite_pubsub.storage.journal.recording import Rows, Txn

MOST_BYTES: Final = 8 << 20
"""The size of the file, which is reserved on the disk."""
_HEAD: Final = Struct(">IQI")
_MARK: Final = Struct(">I")
_FRAME_BYTES: Final = _HEAD.size + _MARK.size


class Owed(NamedTuple):
    """The turns that a journal has for a store."""

    base: int
    """The commit that they follow."""
    turns: list[bytes]
    """The rows of each turn."""


class Journal:
    """The journal, as the process that writes it has it open."""

    def __init__(self, path: Path, boot: bytes) -> None:
        """Open it, creating it if there is none. Raises OSError."""
        self._salt = crc32(boot)
        self._descriptor = permissions.opened(path, os.O_RDWR | os.O_CREAT)
        try:
            take_blocks(self._descriptor, 0, MOST_BYTES)
        except OSError:
            os.close(self._descriptor)
            raise
        self.turns: list[bytes] = []
        """What the records of this base have."""
        self._base = -1
        self._at = 0

    def begin(self, base: int) -> None:
        """Begin with the first turn after this commit. What the file has is void."""
        self._base = base
        self._at = 0
        self.turns = []

    def append(self, rows: Rows) -> bool:
        """Write a turn's rows down. Returns False, having written nothing, if there is no room. Raises OSError."""
        packed = changes(rows)
        size = _FRAME_BYTES + len(packed)
        if self._at + size > MOST_BYTES:
            return False
        head = _HEAD.pack(len(packed), self._base, len(self.turns))
        record = b"".join((head, packed, _MARK.pack(crc32(head, self._salt))))
        if os.pwrite(self._descriptor, record, self._at) < size:
            raise OSError(errno.EIO, "only a part of a record could be written")
        self._at += size
        self.turns.append(packed)
        return True

    def forget(self) -> None:
        """Hold no turns: they are home."""
        self.turns = []

    def take_back(self, number: int) -> None:
        """Make the record of this number void, and those after it: its turn has failed. Raises OSError."""
        if number >= len(self.turns):
            return
        at = sum(_FRAME_BYTES + len(turn) for turn in self.turns[:number])
        os.pwrite(self._descriptor, bytes(_HEAD.size), at)
        del self.turns[number:]
        self._at = at

    @property
    def owed(self) -> Owed:
        """The turns that its records have."""
        return Owed(self._base, self.turns)

    def close(self) -> None:
        os.close(self._descriptor)


def journal_path(environment: Path) -> Path:
    """Return the path of an environment's journal."""
    return environment.with_suffix(".journal")


def owed(path: Path, boot: bytes, base: int) -> Owed | None:
    """Return the turns that follow this commit; None if there are none, or there is no journal. Raises OSError."""
    if not boot:
        return None
    try:
        stored = path.read_bytes()
    except FileNotFoundError:
        return None
    salt, at, turns = crc32(boot), 0, list[bytes]()
    while at + _FRAME_BYTES <= len(stored):
        size, of_base, number = _HEAD.unpack_from(stored, at)
        rows_at = at + _HEAD.size
        end = rows_at + size
        if of_base != base or number != len(turns) or end + _MARK.size > len(stored):
            break
        if _MARK.unpack_from(stored, end)[0] != crc32(stored[at:rows_at], salt):
            break
        turns.append(stored[rows_at:end])
        at = end + _MARK.size
    return Owed(base, turns) if turns else None


def bring_home(owed: Owed, txn: Txn) -> int:
    """Write what these turns have changed, in a transaction that nobody else has committed anything before; return how
    many they are, or 0, having done nothing, if another process has done it."""
    if txn.id() - 1 != owed.base:
        return 0
    apply(txn, owed.turns)
    touch(txn)  # they may have undone each other's changes
    return len(owed.turns)


def apply(txn: Txn, turns: list[bytes]) -> None:
    """Write the rows of these turns, in order, in a transaction."""
    for packed in turns:
        at = 0
        while at < len(packed):
            key_bytes, value_bytes = CHANGE_HEAD.unpack_from(packed, at)
            at += CHANGE_HEAD.size
            key = packed[at : at + key_bytes]
            at += key_bytes
            if value_bytes == REMOVED:
                txn.delete(key)
            else:
                txn.put(key, packed[at : at + value_bytes])
                at += value_bytes
