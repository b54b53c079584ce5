"""A piece of rows, as they go to a target. Its digest tells whether it is what was written.

    magic "rlite-rows" (10) | format u16 | digest (32) | length of head u32 | crc32 of what follows u32 | head | body
    head    JSON: of changes what they are (row_trail.py), of a stretch of the store nothing
    body    zlib of: of each row: bytes of the key u16, bytes of the value u32 (2^32-1: it was removed) | key | value
    digest  which does not depend on zlib's version: sha256 of the head and of what the body was before zlib

All numbers are big-endian.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from hashlib import sha256
from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple, TypeAlias

from rlite_pubsub.backup.errors import FormatNewer, PieceDamaged
from rlite_pubsub.storage.handle import PAGE_BYTES

FORMAT = 1
MAGIC = b"rlite-rows"
_HEAD = Struct(f">{len(MAGIC)}sH32sII")
_ROW = Struct(">HI")
_REMOVED = (1 << 32) - 1
MOST_KEY_BYTES = 511
"""What LMDB takes."""
MOST_PAGES = 1 << 19
"""Of any piece, unpacked, 2 GB: a stretch has 2 MB or one row, and a change is in memory when it is written."""
_SHOWN_BYTES = 24
_LEVEL = 1
"""Of zlib: the next is three times as slow, and saves a tenth."""

Row: TypeAlias = tuple[bytes, bytes | None]
"""A key and its value; None: it was removed."""


class RowPiece(NamedTuple):
    """As it was read."""

    digest: str
    head: dict[str, Any]
    rows: list[Row]


class RowContent:
    """The contents of a new piece: its digest is known before it is compressed."""

    def __init__(self, rows: Iterable[Row], head: dict[str, Any] | None = None) -> None:
        self._head = json.dumps(head).encode() if head is not None else b""
        parts = list[bytes]()
        for key, value in rows:
            parts += _ROW.pack(len(key), _REMOVED if value is None else len(value)), key, value or b""
        self._body = b"".join(parts)
        digest = sha256(self._head)
        digest.update(self._body)
        self._digest = digest.digest()

    @property
    def digest(self) -> str:
        return self._digest.hex()

    @property
    def size(self) -> int:
        """How many bytes it has, unpacked."""
        return len(self._body)

    @property
    def pages(self) -> int:
        """How many pages of LMDB's size that would be: a manifest says so, and no more is unpacked."""
        return -(-len(self._body) // PAGE_BYTES)

    def packed(self) -> bytes:
        """Return the file."""
        body = zlib.compress(self._body, _LEVEL)
        checksum = zlib.crc32(body, zlib.crc32(self._head))
        return b"".join((_HEAD.pack(MAGIC, FORMAT, self._digest, len(self._head), checksum), self._head, body))


def unpack(path: str, data: bytes, most_pages: int = MOST_PAGES) -> RowPiece:
    """Unpack a piece, of so many pages at the most. Raises PieceDamaged and FormatNewer, which name the file."""
    try:
        magic, version, digest, head_bytes, checksum = _HEAD.unpack_from(data)
        if magic != MAGIC:
            raise PieceDamaged(path, "it is not a piece of a backup")
        if version > FORMAT:
            raise FormatNewer(path, version, FORMAT)
        if zlib.crc32(data[_HEAD.size :]) != checksum:
            raise PieceDamaged(path, "it is not what was written: its checksum differs")
        head = data[_HEAD.size : _HEAD.size + head_bytes]
        body = _unpacked(data[_HEAD.size + head_bytes :], most_pages * PAGE_BYTES)
        found = sha256(head)
        found.update(body)
        if found.digest() != digest:
            raise PieceDamaged(path, "it is not what was written: its digest differs")
        said = json.loads(head) if head else {}
        if not isinstance(said, dict):
            raise ValueError("its head is none")
        return RowPiece(digest.hex(), said, list(_in_order(_rows(body))))
    except (StructError, zlib.error, ValueError, OverflowError, RecursionError) as failure:
        raise PieceDamaged(path, f"it is not what was written ({failure})") from failure


def _unpacked(body: bytes, most_bytes: int) -> bytes:
    """Raises ValueError for what unpacks to more than so many bytes, however little it was."""
    unpacking = zlib.decompressobj()
    unpacked = unpacking.decompress(body, most_bytes)
    if not unpacking.eof:
        raise ValueError(f"it has more than {most_bytes} bytes, or is cut off")
    return unpacked


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
