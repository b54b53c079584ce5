"""A piece: pages of data.mdb, as they go to a target (envelope.py).

    magic   "rlitepages"
    head    JSON: of changes what they are (trail.py), of a stretch of the file nothing
    body    count of runs u32 | of each run: number of the first page u64, pages u32 | the pages

All numbers are big-endian.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, NamedTuple

from rlite_pubsub.backup.envelope import UNREADABLE, Envelope, Kind, opened
from rlite_pubsub.backup.errors import PieceDamaged
from rlite_pubsub.storage.handle import PAGE_BYTES
from rlite_pubsub.storage.pages.tree import Runs

FORMAT = 1
_KIND = Kind(b"rlitepages", FORMAT)
_COUNT = Struct(">I")
_RUN = Struct(">QI")
MOST_PAGES = 1 << 18
"""Of any piece, 1 GB: a stretch of a snapshot has 256, and a change is in memory when it is written."""


class Piece(NamedTuple):
    """Before it is written, or as it was read."""

    digest: str
    head: dict[str, Any]
    runs: Runs


class Content(Envelope):
    """The contents of a new piece."""

    def __init__(self, runs: Runs, head: dict[str, Any] | None = None) -> None:
        places = b"".join(_RUN.pack(first, len(pages) // PAGE_BYTES) for first, pages in runs)
        super().__init__(_KIND, head, b"".join((_COUNT.pack(len(runs)), places, *(pages for _, pages in runs))))
        self.pages = sum(len(pages) for _, pages in runs) // PAGE_BYTES

    @property
    def size(self) -> int:
        """How many bytes of pages it has."""
        return self.pages * PAGE_BYTES


def unpack(path: str, data: bytes, most_pages: int = MOST_PAGES) -> Piece:
    """Unpack a piece, of so many pages at the most. Raises PieceDamaged and FormatNewer, which name the file."""
    most_bytes = _COUNT.size + most_pages * (_RUN.size + PAGE_BYTES)
    digest, head, body = opened(_KIND, path, data, most_bytes, f"{most_pages} pages")
    try:
        return Piece(digest, head, _runs(body))
    except UNREADABLE as failure:
        raise PieceDamaged(path, f"it is not what was written ({failure})") from failure


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
