"""The journal of data.mdb: turns that were acknowledged, but whose transaction LMDB has not committed yet.

    data.journal    records, one after the other from the beginning of the file:
        bytes of the rows u32, base u64, number u32
        rows, each: length of the key u16, length of the value u32 (2^32-1: the row is removed), key, value
        mark u32: CRC-32 of the rows, begun with that of "2" and the boot id, plus the three numbers (their low 32 bits)

    LAW    A record counts only if its mark is there and right, its base is the last commit of data.mdb, and those
           numbered before it, from 0 on, count. So the commit that brings turns home makes their records void in the
           same instant. Behind the last record no other of that base stands in the file: where one is found, what is
           before it is damaged.

Until 2026-11-20 the mark was of the boot id and the three numbers alone: what such a version has left counts, if its
rows can be rows.

A record is in the file before its turn is acknowledged, so a `kill -9` loses nothing; whoever opens the store next
brings it home (recovery.py). It is one write, which the kernel does from its beginning to its end: a kill cuts off the
end, with the mark. It is never synced: after a power cut the checkpoint counts (checkpoints/checkpoint.py), and the
mark proves that a record is of this start of the machine. So a machine without a boot id has no journal.
"""

from __future__ import annotations

import errno
import os
import re
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
_MOST_KEY_BYTES: Final = 511
_WORD: Final = 0xFFFF_FFFF
_SOMETHING: Final = re.compile(rb"[^\0]")


class Owed(NamedTuple):
    """The turns that a journal has for a store."""

    base: int
    """The commit that they follow."""
    turns: list[bytes]
    """The rows of each turn."""
    lost: int = 0
    """At least so many behind them can't be brought home: there are some, and what is between is damaged."""
    is_torn: bool = False
    """The next one has begun, and is not whole: a kill has cut it off, or it is damaged, too."""


class Journal:
    """The journal, as the process that writes it has it open."""

    def __init__(self, path: Path, boot: bytes) -> None:
        """Open it, creating it if there is none. Raises OSError."""
        self._salt = _salt(boot)
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
        bytes_of_rows, base, number = len(packed), self._base, len(self.turns)
        mark = crc32(packed, (self._salt + bytes_of_rows + base + number) & _WORD)
        record = b"".join((_HEAD.pack(bytes_of_rows, base, number), packed, _MARK.pack(mark)))
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
        os.pwrite(self._descriptor, bytes(self._at - at), at)
        del self.turns[number:]
        self._at = at

    @property
    def owed(self) -> Owed:
        """The turns that its records have."""
        return Owed(self._base, self.turns)

    def close(self) -> None:
        os.close(self._descriptor)


def damaged_path(environment: Path) -> Path:
    """Return the path of what is kept of a journal that was damaged, for whoever wants to look at it."""
    return environment.with_suffix(".journal.damaged")


def keep_damaged(environment: Path) -> None:
    """Keep what the journal has, before it becomes void. Raises OSError."""
    copy = damaged_path(environment)
    descriptor = permissions.opened(copy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(journal_path(environment).read_bytes().rstrip(b"\0"))


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
    at, turns = 0, list[bytes]()
    while (record := _record(stored, at, base, boot)) is not None and record.number == len(turns):
        turns.append(record.packed)
        at = record.end
    lost = max(0, _last_number(stored, at, base, boot) + 1 - len(turns))
    is_torn = bool(turns) and not lost and _begins(stored, at, base, len(turns))
    return Owed(base, turns, lost, is_torn) if turns or lost else None


def _begins(stored: bytes, at: int, base: int, number: int) -> bool:
    """Whether the head of this record is there."""
    return at + _FRAME_BYTES <= len(stored) and _HEAD.unpack_from(stored, at)[1:] == (base, number)


class _Record(NamedTuple):
    """A record that counts."""

    number: int
    packed: bytes
    end: int


def _salt(boot: bytes) -> int:
    return crc32(boot, crc32(b"2"))


def _record(stored: bytes, at: int, base: int, boot: bytes) -> _Record | None:
    """The record that begins there, if it is one of this base and start of the machine, and whole."""
    if at + _FRAME_BYTES > len(stored):
        return None
    size, of_base, number = _HEAD.unpack_from(stored, at)
    rows_at = at + _HEAD.size
    end = rows_at + size
    if of_base != base or end + _MARK.size > len(stored):
        return None
    head, packed = stored[at:rows_at], stored[rows_at:end]
    mark = _MARK.unpack_from(stored, end)[0]
    begun = (_salt(boot) + size + of_base + number) & _WORD
    is_right = mark == crc32(packed, begun) or mark == crc32(head, crc32(boot))
    return _Record(number, packed, end + _MARK.size) if is_right and _are_rows(packed) else None


def _last_number(stored: bytes, at: int, base: int, boot: bytes) -> int:
    """The number of the last record of this base behind this place, wherever it is; -1: there is none."""
    last = -1
    word = base.to_bytes(8, "big")
    behind_size = _HEAD.size - _MARK.size - len(word)
    while (place := stored.find(word, at + behind_size)) >= 0:
        record = _record(stored, place - behind_size, base, boot)
        if record is not None:
            last = max(last, record.number)
            at = record.end
        elif stored[place - behind_size : place].strip(b"\0"):
            at = place - behind_size + 1
        else:  # a record has rows: of a run of zeros, which may be most of the file, this was the last place for one
            more = _SOMETHING.search(stored, place)
            if more is None:
                break
            at = more.start() - behind_size
    return last


def _are_rows(packed: bytes) -> bool:
    """Return whether LMDB takes all of it as rows."""
    at = 0
    while at < len(packed):
        if at + CHANGE_HEAD.size > len(packed):
            return False
        key_bytes, value_bytes = CHANGE_HEAD.unpack_from(packed, at)
        if not 1 <= key_bytes <= _MOST_KEY_BYTES:
            return False
        at += CHANGE_HEAD.size + key_bytes + (0 if value_bytes == REMOVED else value_bytes)
    return at == len(packed)


def bring_home(owed: Owed, txn: Txn) -> int:
    """Write what these turns have changed, in a transaction that nobody else has committed anything before; return how
    many they are, or 0, having done nothing, if another process has done it."""
    if txn.id() - 1 != owed.base:
        return 0
    apply(txn, owed.turns)
    touch(txn)  # they may have undone each other's changes, and what is damaged is of an earlier commit from now on
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
