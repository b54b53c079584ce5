"""The beginning of a snapshot: the pages of data.mdb as they stand in the file, while others write to it.

The file is read from its beginning to its end, a stretch at a time, as slowly as it must be, and no pin is needed for
that: the trail is rolled meanwhile, and what it finds goes over what was read. A page of the last commit was either
written before its stretch was read, by a commit that somebody had pinned then, and has been left alone since: so it was
read as it is. Or it was written later, and is in a change. What was read of all other pages is never looked at, be it
torn.

Pages that are free when it begins are left out: a backup is as large as what is in the store.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rlite_pubsub.storage.handle import PAGE_BYTES
from rlite_pubsub.storage.pages import free_list, meta
from rlite_pubsub.storage.pages.tree import Runs
from rlite_pubsub.storage.room import META_PAGES

STRETCH_PAGES = 256
"""1 MB. A stretch in which nothing was changed is not brought away again by the next snapshot."""
_FREE = 1


class Copying:
    """Reads the pages of one snapshot. Made while the commit with this meta page is pinned."""

    def __init__(self, path: Path, meta_page: bytes) -> None:
        """Raises OSError."""
        self._path = path
        first = meta.unpacked(meta_page)
        self._pages = first.last_page + 1
        self._free = bytearray(self._pages)
        self._free[:META_PAGES] = bytes([_FREE]) * min(META_PAGES, self._pages)
        with open(path, "rb", buffering=0) as file:
            for record in free_list.records(file.fileno(), first):
                for page in record.pages(0, record.size):
                    if page < self._pages:
                        self._free[page] = _FREE

    def stretches(self) -> Iterator[Runs]:
        """One after the other. Raises OSError."""
        with open(self._path, "rb", buffering=0) as file:
            for first in range(0, self._pages, STRETCH_PAGES):
                runs = list(self._runs(file.fileno(), first, min(first + STRETCH_PAGES, self._pages)))
                if runs:
                    yield runs

    def _runs(self, descriptor: int, first: int, end: int) -> Iterator[tuple[int, bytes]]:
        at = self._free.find(0, first, end)
        while at >= 0:
            behind = self._free.find(_FREE, at, end)
            behind = end if behind < 0 else behind
            pages = os.pread(descriptor, (behind - at) * PAGE_BYTES, at * PAGE_BYTES)
            yield at, pages.ljust((behind - at) * PAGE_BYTES, b"\0")  # the file may end in pages never written
            at = self._free.find(0, behind, end)
