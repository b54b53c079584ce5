"""A window: a segment of the log, and its index in memory that all processes of the store share.

    data.log.N      the segment: what turns have changed, a record each, in the order of their commits
    data.idx.N      its index: where each key's newest row is. It is made anew from the log by whoever opens the store
                    while nobody else has it open, so it is never synced

All numbers of the segment are little-endian; places are offsets into it, and multiples of 8.

    segment   +------------+------------+-------+------------+------------------+------------+--------+------------+
              | "RLITELOG" | format u32 | 0 u32 | number u64 | first commit u64 | store (16) | 0 (12) | CRC-32 u32 |
              +------------+------------+-------+------------+------------------+------------+--------+------------+
              records, from byte 64 on
    record    +------------+------------+------------+-------------+----------+-------+
              | bytes u32  | CRC-32 u32 | commit u64 | time ms u64 | rows u32 | 0 u32 |  rows
              +------------+------------+------------+-------------+----------+-------+
              the CRC-32 is zlib's, of: number u64, place of the record u64, what follows it in the record
    row       +--------------+-------------------------+-----------------+-------+-----+-------+
              | previous u32 | bytes of the value u32  | of the key u16  | 0 u16 | key | value |  zeros up to a multiple
              |              | (2^32-1: it is removed) |                 |       |     |       |  of 8
              +--------------+-------------------------+-----------------+-------+-----+-------+
              previous is the place, divided by 8, of the row that the same key had before in this segment; 0: none
    index     the head, 4,096 bytes: "RLITEIDX", format u32, 0 u32, number u64, first commit u64, slots u64, seed (16),
              how large the segment may become u64, little-endian; then words of the machine, u64 each: from byte 64
              tip; from byte 128 pending, indexed, next, used, home; from byte 192 synced, grown
              slots, u64 each: the upper half of the key's hash (SipHash-1-3), the place of its newest row divided by 8

`tip` is what is committed: how many commits, in the upper half, and where they end, divided by 8. A tip, once read, is
a snapshot: a row that begins at or beyond its end does not exist for it. `pending` is where the record ends that is
being written. `indexed` is how far the slots know the log: what is committed beyond it has to be searched. `next` is
the number of the next segment once this one is frozen, `home` is 1 once LMDB has all of it, `synced` how far it is
known to be on the disk. `grown`, a signed number, is about how many bytes more LMDB will take once it has the
window: rows that LMDB has as well count as new ones, unless whoever wrote them took that back.

    LAW   The log is the truth, and the index a way to find it: a record counts once `tip` has passed it, or, after a
          writer has died, if it is whole. Acknowledge after `tip` has moved.
    LAW   One process writes at a time, under the store's writer lock. Whoever has taken it asks `is_whole`, and has
          the window repaired if it is not: the one before may have died in the middle of a record.
    LAW   Readers take no lock, and wait for nobody.

A window is C if the package is compiled (_window.c), and plain Python otherwise (plain.py). Both may have the same
files open at once.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from struct import Struct
from typing import Any, Final, Literal, NamedTuple, Protocol
from zlib import crc32

from rlite_pubsub import permissions
from rlite_pubsub.storage.errors import StoreDamaged
from rlite_pubsub.storage.window.plain import (
    INDEX_HEAD,
    INDEX_HEAD_BYTES,
    INDEX_MAGIC,
    LOG_HEAD_BYTES,
    PlainView,
    PlainWindow,
)

try:
    from rlite_pubsub.storage.window import _window
except ImportError:
    _window = None  # type: ignore[assignment]

FORMAT: Final = 1
LOG_MAGIC: Final = b"RLITELOG"
BYTES: Final = 16 << 20
"""The size of a window, unless it is set."""
_LOG_HEAD: Final = Struct("<8sIIQQ16s12s")
_MARK: Final = Struct("<I")
_NO_BYTES: Final = bytes(12)
_ROW_BYTES: Final = 64
"""What a row takes at the least, about: a window full of smaller ones is full before its log is."""
_TIP_AT: Final = 64
_PENDING_AT: Final = 128
_WORD: Final = Struct("=Q")
_PLACE_BYTES: Final = 8


class Window(Protocol):
    """A window that is open. A snapshot is a `tip` that was read before, of the same window."""

    @property
    def number(self) -> int: ...

    @property
    def tip(self) -> int:
        """What is committed now: a snapshot."""

    next: int
    """The number of the window that follows this one; 0 as long as this one is written to."""
    home: int
    """1 once a commit of LMDB has all that this window has."""
    synced: int
    """The place up to which the log is on the disk."""
    grown: int
    """About how many bytes more LMDB will take once it has the window."""

    def get(self, snapshot: int, key: bytes, /) -> bytes | Literal[False] | None:
        """Return the value of a key; False if it was removed; None if this window says nothing of it."""

    def append(self, rows: dict[bytes, bytes | None], commit: int, time_ms: int, /) -> bool:
        """Commit rows, of which those that are None are removed. Returns False, having changed nothing, if the window
        has no room for them. Raises OSError, having changed nothing. The caller holds the writer lock."""

    def changed(self, since: int, until: int, /) -> list[bytes]:
        """Return the keys that were changed between two snapshots, in order, with repeats. `since` may be 0: all."""

    def records(self, since: int, until: int, /) -> list[tuple[int, int, list[tuple[bytes, bytes | None]]]]:
        """Return what was committed between two snapshots: the number, the time and the rows of each commit."""

    def is_whole(self) -> bool:
        """Return whether the last writer has left nothing unfinished."""

    def repair(self) -> None:
        """Finish what the last writer left: a record that is whole is committed, anything else is cut off. Raises
        OSError. The caller holds the writer lock."""

    def close(self) -> None:
        """Close it, but not its files. Raises BufferError if a view of it is open."""


class View(Protocol):
    """The keys of a window in order: those of one database (a first byte), or all of them. Belongs to one thread."""

    def at_or_after(self, snapshot: int, key: bytes, /) -> bytes | None:
        """Return the first key that is not less; None if there is none. Keys that were removed are keys, too."""

    def after(self, snapshot: int, key: bytes, /) -> bytes | None:
        """Return the first key that is greater."""

    def before(self, snapshot: int, key: bytes | None, /) -> bytes | None:
        """Return the last key that is less; the last one of all if there is no key."""

    def at_or_before(self, snapshot: int, key: bytes, /) -> bytes | None:
        """Return the last key that is not greater."""

    def slice(self, snapshot: int, place: int, most_bytes: int, /) -> tuple[list[tuple[bytes, bytes | None]], int]:
        """Return rows as they are at the snapshot, in order, from a place on, about as many bytes as wanted; and the
        place to go on from, -1 at the end. For a window that nobody writes to any more. The first place is 0."""

    def close(self) -> None: ...


class Segment(NamedTuple):
    """What the head of a log says."""

    number: int
    first_commit: int
    store: bytes


def log_path(folder: Path, number: int) -> Path:
    return folder / f"data.log.{number}"


def index_path(folder: Path, number: int) -> Path:
    return folder / f"data.idx.{number}"


def make_log(folder: Path, segment: Segment) -> int:
    """Create an empty segment; return its descriptor. It must not exist. Raises OSError."""
    descriptor = permissions.opened(log_path(folder, segment.number), os.O_RDWR | os.O_CREAT | os.O_EXCL)
    head = _LOG_HEAD.pack(LOG_MAGIC, FORMAT, 0, segment.number, segment.first_commit, segment.store, _NO_BYTES)
    try:
        os.pwrite(descriptor, head + _MARK.pack(crc32(head)), 0)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read_head(path: Path, descriptor: int) -> Segment:
    """Return what the head of this log says. Raises OSError; StoreDamaged."""
    head = os.pread(descriptor, LOG_HEAD_BYTES, 0)
    if len(head) < LOG_HEAD_BYTES or head[-_MARK.size :] != _MARK.pack(crc32(head[: -_MARK.size])):
        raise StoreDamaged(path, "its head is damaged")
    magic, version, _, number, first_commit, store, _ = _LOG_HEAD.unpack_from(head)
    if magic != LOG_MAGIC or version != FORMAT:
        raise StoreDamaged(path, f"it is no log of format {FORMAT}")
    return Segment(number, first_commit, store)


def index_bytes(log_bytes: int) -> int:
    """Return how large the index of a segment of this size is."""
    return INDEX_HEAD_BYTES + _slots(log_bytes, 0) * 8


def _slots(log_bytes: int, most_rows: int) -> int:
    return 1 << max(10, ((most_rows or log_bytes // _ROW_BYTES) * 4 // 3 + 1).bit_length())


def make_index(folder: Path, segment: Segment, log_bytes: int, most_rows: int = 0) -> int:
    """Create an index that knows nothing yet, for a segment of this size with room for so many rows (0: as many as that
    usually are); return its descriptor. One that is there is replaced: whoever has it open keeps the old one. Raises
    OSError."""
    slots = _slots(log_bytes, most_rows)
    path = index_path(folder, segment.number)
    made = path.with_suffix(f".{segment.number}.new")
    made.unlink(missing_ok=True)
    descriptor = permissions.opened(made, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        seed = secrets.token_bytes(16)
        head = INDEX_HEAD.pack(INDEX_MAGIC, FORMAT, 0, segment.number, segment.first_commit, slots, seed, log_bytes)
        os.pwrite(descriptor, head, 0)
        os.pwrite(descriptor, _WORD.pack(LOG_HEAD_BYTES // _PLACE_BYTES), _TIP_AT)
        os.pwrite(descriptor, _WORD.pack(LOG_HEAD_BYTES) * 2, _PENDING_AT)
        os.posix_fallocate(descriptor, 0, INDEX_HEAD_BYTES + slots * 8)
        os.rename(made, path)
    except OSError:
        os.close(descriptor)
        made.unlink(missing_ok=True)
        raise
    return descriptor


def open_window(log_fd: int, index_fd: int) -> Window:
    """Open the window of these files; the descriptors stay the caller's, and are needed as long as it is open."""
    return (PlainWindow if _window is None else _window.Window)(log_fd, index_fd)


def view_of(window: Any, database: int = -1) -> View:
    """Return the keys of a window in order; of one database, or of all."""
    return PlainView(window, database) if isinstance(window, PlainWindow) else _window.View(window, database)
