"""Checkpoints that are saved without syncing data.mdb: the pages that each has changed, one after the other.

A checkpoint in `data.safe` (the *base*) has all of its pages in data.mdb, synced. A delta has the pages of a later
commit that the checkpoint before it has not, and is one synced write to `data.delta`. What a power cut leaves is the
base, and over it the pages of each delta in turn.

Law: whoever adds a delta has held, without a break, a pin that is no newer than the checkpoint before. So none of that
checkpoint's pages was reused, and every page of the new one either is in the delta, or was in the checkpoint before and
has not been touched since. A page of the base that the last delta still needs is in no delta, and is protected by the
pins of all writers.

Deltas that do not follow from the base in `data.safe` belong to another base, and do not count: so a new base ends them
all, and the file is reused from its beginning. Called under the lock of `data.safe`.

    data.delta   records, each a multiple of 4096 bytes:
                 magic, crc32 of all that follows u32, boot id, base: transaction u64 and crc32 of its meta page u32,
                 transaction before u64, transaction u64, its meta page, count u32; of each run of pages: the number
                 of the first u64, their count u32; filled up with zeros. Then the pages
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import Struct
from typing import Final
from zlib import crc32

from rlite_pubsub.storage.pages.meta import BYTES as META_BYTES
from rlite_pubsub.storage.pages.tree import Runs

MOST_PAGES: Final = 64
"""More than this are better synced where they are, for they would be written twice."""
MUCH_AGAIN: Final = 16
"""After this many checkpoints with more pages, count them again: counting takes as long as saving few."""
LIMIT_BYTES: Final = 32 << 20
"""The size at which a new base is due."""
AHEAD_BYTES: Final = 1 << 20
"""The step by which the file grows: a synced write within it costs the filesystem no write of its own."""
_BLOCK_BYTES: Final = 4096
_MAGIC: Final = b"rlitedelt1"
_BOOT_BYTES: Final = 36
_CHECKED: Final = Struct(f"<{len(_MAGIC)}sI")
_HEAD: Final = Struct(f"<{_BOOT_BYTES}sQIQQ{META_BYTES}sI")
_RUN: Final = Struct("<QI")


class Checkpointed:
    """A commit that survives a power cut, and where the next delta goes."""

    __slots__ = ("base", "boot", "checksum", "end", "meta", "number")

    def __init__(self, boot: bytes, base: int, base_meta: bytes) -> None:
        self.boot = boot
        self.base = base
        self.checksum = crc32(base_meta)
        self.number = base
        self.meta = base_meta
        self.end = 0

    def is_from(self, boot: bytes, base: int, base_meta: bytes) -> bool:
        """Return whether it followed from this base."""
        return (self.base, self.boot, self.checksum) == (base, boot, crc32(base_meta))

    def advance(self, number: int, meta: bytes, size: int) -> None:
        """Move on to the commit of a delta of this many bytes."""
        self.number, self.meta = number, meta
        self.end += size


def delta_path(path: Path) -> Path:
    """Return the path of the environment's deltas."""
    return path.with_suffix(".delta")


def follow(descriptor: int, last: Checkpointed, page_bytes: int) -> Runs | None:
    """Move on to the next delta, and return its pages; None if `last` is the last checkpoint."""
    head = os.pread(descriptor, _BLOCK_BYTES, last.end)
    if len(head) < _BLOCK_BYTES:
        return None
    magic, checksum = _CHECKED.unpack_from(head)
    boot, base, base_checksum, before, number, meta, count = _HEAD.unpack_from(head, _CHECKED.size)
    follows = (base, base_checksum, before) == (last.base, last.checksum, last.number) and number > before
    if magic != _MAGIC or boot.rstrip(b"\0") != last.boot or not follows or count > MOST_PAGES:
        return None
    head += os.pread(descriptor, _head_bytes(count) - _BLOCK_BYTES, last.end + _BLOCK_BYTES)
    places = list(_RUN.iter_unpack(head[_CHECKED.size + _HEAD.size :][: count * _RUN.size]))
    pages_bytes = sum([pages for _, pages in places]) * page_bytes
    if len(places) < count or pages_bytes > MOST_PAGES * page_bytes:
        return None
    body = os.pread(descriptor, pages_bytes, last.end + len(head))
    if len(body) < pages_bytes or crc32(body, crc32(head[_CHECKED.size :])) != checksum:
        return None
    runs: Runs = []
    at = 0
    for first, pages in places:
        runs.append((first, body[at : at + pages * page_bytes]))
        at += pages * page_bytes
    last.advance(number, meta, len(head) + pages_bytes)
    return runs


def append(
    descriptor: int,
    last: Checkpointed,
    number: int,
    meta: bytes,
    runs: Runs,
    page_bytes: int,
    limit_bytes: int = LIMIT_BYTES,
) -> bool:
    """Save a checkpoint that follows from `last`, which becomes it. Returns False if there is no room. Raises OSError.

    The descriptor syncs what is written."""
    head_bytes = _head_bytes(len(runs))
    size = head_bytes + sum([len(pages) for _, pages in runs])
    if last.end + size > limit_bytes:
        return False
    head = _HEAD.pack(last.boot, last.base, last.checksum, last.number, number, meta, len(runs)) + b"".join(
        [_RUN.pack(first, len(pages) // page_bytes) for first, pages in runs]
    )
    head = head.ljust(head_bytes - _CHECKED.size, b"\0")
    body = b"".join([pages for _, pages in runs])
    record = _CHECKED.pack(_MAGIC, crc32(body, crc32(head))) + head + body
    if last.end + size > os.fstat(descriptor).st_size:
        record = record.ljust(-(-size // AHEAD_BYTES) * AHEAD_BYTES, b"\0")
    written = os.pwrite(descriptor, record, last.end)
    if written < size:
        raise OSError(28, os.strerror(28))
    last.advance(number, meta, size)
    return True


def _head_bytes(runs: int) -> int:
    return -(-(_CHECKED.size + _HEAD.size + runs * _RUN.size) // _BLOCK_BYTES) * _BLOCK_BYTES
