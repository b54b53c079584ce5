"""A piece: pages of data.mdb, as they go to a target. Its digest tells whether it is what was written.

    magic "rlitepages" (10) | format u16 | digest (32) | length of head u32 | crc32 of what follows u32 | head | body
    head    JSON: of changes what they are (trail.py), of a stretch of the file nothing
    body    zlib of: count of runs u32 | of each run: number of the first page u64, pages u32 | the pages
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
from rlite_pubsub.storage.handle import PAGE_BYTES
from rlite_pubsub.storage.pages.tree import Runs

FORMAT = 1
_MAGIC = b"rlitepages"
_HEAD = Struct(f">{len(_MAGIC)}sH32sII")
_COUNT = Struct(">I")
_RUN = Struct(">QI")
MOST_PAGES = 1 << 18
"""Of any piece, 1 GB: a stretch of a snapshot has 256, and a change is in memory when it is written."""
_LEVEL = 1
"""Of zlib: the next is three times as slow, and saves a tenth."""


class Piece(NamedTuple):
    """Before it is written, or as it was read."""

    digest: str
    head: dict[str, Any]
    runs: Runs


class Content:
    """The contents of a new piece: its digest is known before it is compressed."""

    def __init__(self, runs: Runs, head: dict[str, Any] | None = None) -> None:
        self._head = json.dumps(head).encode() if head is not None else b""
        places = b"".join(_RUN.pack(first, len(pages) // PAGE_BYTES) for first, pages in runs)
        self._body = b"".join((_COUNT.pack(len(runs)), places, *(pages for _, pages in runs)))
        self.pages = sum(len(pages) for _, pages in runs) // PAGE_BYTES
        digest = sha256(self._head)
        digest.update(self._body)
        self._digest = digest.digest()

    @property
    def digest(self) -> str:
        return self._digest.hex()

    @property
    def size(self) -> int:
        """How many bytes of pages it has."""
        return self.pages * PAGE_BYTES

    def packed(self) -> bytes:
        """Return the file."""
        body = zlib.compress(self._body, _LEVEL)
        checksum = zlib.crc32(body, zlib.crc32(self._head))
        return b"".join((_HEAD.pack(_MAGIC, FORMAT, self._digest, len(self._head), checksum), self._head, body))


def unpack(path: str, data: bytes, most_pages: int = MOST_PAGES) -> Piece:
    """Unpack a piece, of so many pages at the most. Raises PieceDamaged and FormatNewer, which name the file."""
    try:
        magic, version, digest, head_bytes, checksum = _HEAD.unpack_from(data)
        if magic != _MAGIC:
            raise PieceDamaged(path, "it is not a piece of a backup")
        if version > FORMAT:
            raise FormatNewer(path, version, FORMAT)
        if zlib.crc32(data[_HEAD.size :]) != checksum:
            raise PieceDamaged(path, "it is not what was written: its checksum differs")
        head = data[_HEAD.size : _HEAD.size + head_bytes]
        body = _unpacked(data[_HEAD.size + head_bytes :], most_pages)
        found = sha256(head)
        found.update(body)
        if found.digest() != digest:
            raise PieceDamaged(path, "it is not what was written: its digest differs")
        said = json.loads(head) if head else {}
        if not isinstance(said, dict):
            raise ValueError("its head is none")
        return Piece(digest.hex(), said, _runs(body))
    except (StructError, zlib.error, ValueError, OverflowError, RecursionError) as failure:
        raise PieceDamaged(path, f"it is not what was written ({failure})") from failure


def _unpacked(body: bytes, most_pages: int) -> bytes:
    """Raises ValueError for what is more than so many pages take, however little it was."""
    most = _COUNT.size + most_pages * (_RUN.size + PAGE_BYTES)
    unpacking = zlib.decompressobj()
    unpacked = unpacking.decompress(body, most)
    if not unpacking.eof:
        raise ValueError(f"it has more than {most_pages} pages, or is cut off")
    return unpacked


def _runs(body: bytes) -> Runs:
    (count,) = _COUNT.unpack_from(body)
    at = _COUNT.size + count * _RUN.size
    runs: Runs = []
    for first, pages in _RUN.iter_unpack(body[_COUNT.size : at]):
        runs.append((first, body[at : at + pages * PAGE_BYTES]))
        at += pages * PAGE_BYTES
    if at != len(body):
        raise ValueError("its pages are not those it lists")
    return runs
