"""What all pieces of a backup have around their contents (piece.py, rows.py): a digest that tells whether they are what
was written.

    magic (10) | format u16 | digest (32) | length of head u32 | crc32 of what follows u32 | head | body, zlib's
    digest  which does not depend on zlib's version: sha256 of the head and of what the body was before zlib

All numbers are big-endian.
"""

from __future__ import annotations

import json
import zlib
from hashlib import sha256
from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple

from rlite_pubsub.backup.errors import FormatNewer, PieceDamaged

_HEAD = Struct(">10sH32sII")
_LEVEL = 1
"""Of zlib: the next is three times as slow, and saves a tenth."""
UNREADABLE = StructError, zlib.error, ValueError, OverflowError, RecursionError
"""What bytes that are not what was written may cause."""


class Kind(NamedTuple):
    """One kind of piece."""

    magic: bytes
    format: int


class Envelope:
    """A new piece: its digest is known before it is compressed."""

    def __init__(self, kind: Kind, head: dict[str, Any] | None, body: bytes) -> None:
        self._kind = kind
        self._head = json.dumps(head).encode() if head is not None else b""
        self._body = body
        self._digest = _digest(self._head, body)

    @property
    def digest(self) -> str:
        return self._digest.hex()

    def packed(self) -> bytes:
        """Return the file."""
        body = zlib.compress(self._body, _LEVEL)
        checksum = zlib.crc32(body, zlib.crc32(self._head))
        return b"".join((_HEAD.pack(*self._kind, self._digest, len(self._head), checksum), self._head, body))


def opened(kind: Kind, path: str, data: bytes, most_bytes: int, limit: str) -> tuple[str, dict[str, Any], bytes]:
    """Return the digest, head and body of a piece, of so many bytes at the most: `limit` says what that is. Raises
    PieceDamaged and FormatNewer, which name the file."""
    try:
        magic, version, digest, head_bytes, checksum = _HEAD.unpack_from(data)
        if magic != kind.magic:
            raise PieceDamaged(path, "it is not a piece of a backup")
        if version > kind.format:
            raise FormatNewer(path, version, kind.format)
        if zlib.crc32(data[_HEAD.size :]) != checksum:
            raise PieceDamaged(path, "it is not what was written: its checksum differs")
        head = data[_HEAD.size : _HEAD.size + head_bytes]
        body = _unpacked(data[_HEAD.size + head_bytes :], most_bytes, limit)
        if _digest(head, body) != digest:
            raise PieceDamaged(path, "it is not what was written: its digest differs")
        said = json.loads(head) if head else {}
        if not isinstance(said, dict):
            raise ValueError("its head is none")
        return digest.hex(), said, body
    except UNREADABLE as failure:
        raise PieceDamaged(path, f"it is not what was written ({failure})") from failure


def _digest(head: bytes, body: bytes) -> bytes:
    found = sha256(head)
    found.update(body)
    return found.digest()


def _unpacked(body: bytes, most_bytes: int, limit: str) -> bytes:
    """Raises ValueError for what unpacks to more than so many bytes, however little it was."""
    unpacking = zlib.decompressobj()
    unpacked = unpacking.decompress(body, most_bytes)
    if not unpacking.eof:
        raise ValueError(f"it has more than {limit}, or is cut off")
    return unpacked
