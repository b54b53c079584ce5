"""A piece of rows, as they go to a target (envelope.py).

    magic   "rlite-rows"
    head    JSON: of changes what they are (row_trail.py), of a stretch of the store nothing
    body    of each row: bytes of the key u16, bytes of the value u32 (2^32-1: it was removed) | key | value

All numbers are big-endian.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

from rlite_pubsub.backup.envelope import UNREADABLE, Envelope, Kind, opened
from rlite_pubsub.backup.errors import PieceDamaged
from rlite_pubsub.storage.handle import PAGE_BYTES

FORMAT = 1
MAGIC = b"rlite-rows"
_KIND = Kind(MAGIC, FORMAT)
_ROW = Struct(">HI")
_REMOVED = (1 << 32) - 1
MOST_KEY_BYTES = 511
"""What LMDB takes."""
MOST_PAGES = 1 << 19
"""Of any piece, unpacked, 2 GB: a stretch has 2 MB or one row, and a change is in memory when it is written."""
_SHOWN_BYTES = 24

Row: TypeAlias = tuple[bytes, bytes | None]
"""A key and its value; None: it was removed."""


class RowPiece(NamedTuple):
    """As it was read."""

    digest: str
    head: dict[str, Any]
    rows: list[Row]


class RowContent(Envelope):
    """The contents of a new piece."""

    def __init__(self, rows: Iterable[Row], head: dict[str, Any] | None = None) -> None:
        parts = list[bytes]()
        for key, value in rows:
            parts += _ROW.pack(len(key), _REMOVED if value is None else len(value)), key, value or b""
        body = b"".join(parts)
        super().__init__(_KIND, head, body)
        self.size = len(body)
        """How many bytes it has, unpacked."""

    @property
    def pages(self) -> int:
        """How many pages of LMDB's size that would be: a manifest says so, and no more is unpacked."""
        return -(-self.size // PAGE_BYTES)


def unpack(path: str, data: bytes, most_pages: int = MOST_PAGES) -> RowPiece:
    """Unpack a piece, of so many pages at the most. Raises PieceDamaged and FormatNewer, which name the file."""
    most_bytes = most_pages * PAGE_BYTES
    digest, head, body = opened(_KIND, path, data, most_bytes, f"{most_bytes} bytes")
    try:
        return RowPiece(digest, head, list(_in_order(_rows(body))))
    except UNREADABLE as failure:
        raise PieceDamaged(path, f"it is not what was written ({failure})") from failure


def _in_order(rows: Iterator[Row]) -> Iterator[Row]:
    """Raises ValueError unless each key is greater than the one before."""
    before = b""
    for key, value in rows:
        if key <= before:
            raise ValueError(f"its rows are not in order behind {before[:_SHOWN_BYTES]!r}")
        yield key, value
        before = key


def _rows(body: bytes) -> Iterator[Row]:
    at = 0
    while at < len(body):
        key_bytes, value_bytes = _ROW.unpack_from(body, at)
        begin = at + _ROW.size + key_bytes
        end = begin + (0 if value_bytes == _REMOVED else value_bytes)
        if not 0 < key_bytes <= MOST_KEY_BYTES or end > len(body):
            raise ValueError("its rows are none")
        yield body[at + _ROW.size : begin], None if value_bytes == _REMOVED else body[begin:end]
        at = end
