"""Following the commits of data.mdb without asking those who write.

LMDB never changes a page that somebody may read. So whoever pins the last commit, and pins the next one before
releasing it, finds the changes between the two (storage/pages/tree.py), and that takes as long as there was changed
something, however large the file is. Pages that were put over each other make any commit on the way:

    state N = state of a commit before it, and the pages of each change up to N

Law 10: a pin is as old as the last `roll`, and the pages that others have freed since then are all that it holds. What
is found is gathered until it is `cut`, however long that is; who is slow to bring it away rolls on meanwhile, or ends
the trail and begins another one later.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rlite_pubsub.backup import blocks, layout
from rlite_pubsub.backup.copying import Copying
from rlite_pubsub.backup.errors import TrailLost
from rlite_pubsub.backup.layout import ChangeName
from rlite_pubsub.backup.manifest import Block
from rlite_pubsub.backup.piece import Content
from rlite_pubsub.storage.checkpoints.checkpoint import Pinned
from rlite_pubsub.storage.handle import PAGE_BYTES
from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment
from rlite_pubsub.storage.pages import meta
from rlite_pubsub.storage.pages.tree import Runs, Unknown, changed_pages
from rlite_pubsub.storage.store import Store

MOST_PAGES = 64 << 10
"""Of one change, 256 MB: more are brought away by a new snapshot, from which this much at a time is in memory."""


class Standing(NamedTuple):
    """A commit, and what must be known of it to restore it."""

    number: int
    """Of the last change of the chain that it has, once that is cut; 0: none."""
    time_ms: int
    """All that it has was committed before."""
    commit: int
    meta: bytes
    """LMDB's page that describes it; nothing where a store has a log."""
    cold: str
    blocks: tuple[Block, ...]

    @property
    def used_bytes(self) -> int:
        return meta.unpacked(self.meta).used_bytes if self.meta else 0


class Change(NamedTuple):
    """The change that leads from one commit to the next."""

    name: ChangeName
    packed: bytes
    new_blocks: tuple[Block, ...]
    standing: Standing


class Trail:
    """One chain of commits, as long as it is not `end`ed. Used by one thread."""

    def __init__(self, store: Store, clock_ms: Callable[[], int]) -> None:
        """Raises StoreError."""
        if not isinstance(store.data, LmdbEnvironment):
            raise TypeError("a chain is of pages, and this store has a log")
        self.data = store.data
        self._clock_ms = clock_ms
        self.chain = layout.new_chain(clock_ms())
        self._digest = ""  # of the last change
        self._gathered: dict[tuple[int, int], bytes] = {}  # runs, by first page and size: what comes later counts
        self.gathered_bytes = 0
        self._pinned: Pinned | None = self.data.safety.pin_last()
        self.standing = self._cut_at = self._standing(self._pinned, clock_ms())

    def contents(self) -> Iterator[Content]:
        """Return what a snapshot is made of. Raises OSError."""
        return map(Content, Copying(self.data.path, self.standing.meta).stretches())

    @property
    def commits(self) -> int:
        """How many commits have been made since the last roll: the pages they have freed are held."""
        return self.data.last_commit() - self._pinned.number if self._pinned is not None else 0

    def roll(self) -> None:
        """Gather what was committed since the last time, and pin what is there now instead. Raises TrailLost, and then
        it is ended; and StoreError, and then it can be tried again."""
        before = self._pinned
        if before is None:
            raise TrailLost("it was ended")
        if self.data.last_commit() == before.number:
            return
        now = self.data.safety.pin_last()
        time_ms = self._clock_ms()  # behind the pin: what is not in it was committed later
        try:
            runs = self._changed(before, now)
            standing = self._standing(now, max(time_ms, self.standing.time_ms))
        except BaseException as failure:
            now.pin.abort()
            if isinstance(failure, TrailLost):
                self.end()
            raise
        self._pinned, self.standing = now, standing
        before.pin.abort()
        for first, pages in runs:
            self.gathered_bytes += len(pages) - len(self._gathered.pop((first, len(pages)), b""))
            self._gathered[first, len(pages)] = pages

    def cut(self) -> Change | None:
        """Return what was gathered, as one change; None if there is nothing."""
        if self.standing.commit == self._cut_at.commit:
            return None
        last, number = self._cut_at, self._cut_at.number + 1
        self.standing = self._cut_at = self.standing._replace(number=number)
        known = set(last.blocks)
        new_blocks = tuple(block for block in self.standing.blocks if block not in known)
        name = ChangeName(self.chain, number, self.standing.time_ms)
        head = self._head(name, last, new_blocks)
        content = Content([(first, pages) for (first, _), pages in self._gathered.items()], head)
        self._digest = content.digest
        self._gathered, self.gathered_bytes = {}, 0
        return Change(name, content.packed(), new_blocks, self.standing)

    def _changed(self, before: Pinned, now: Pinned) -> Runs:
        with open(self.data.path, "rb", buffering=0) as file:

            def read(first: int, pages: int) -> bytes:
                return os.pread(file.fileno(), pages * PAGE_BYTES, first * PAGE_BYTES)

            try:
                runs = changed_pages(read, before.meta, now.meta, PAGE_BYTES, MOST_PAGES)
            except Unknown as trouble:
                raise TrailLost(str(trouble)) from trouble
        if runs is None:
            raise TrailLost(f"more than {MOST_PAGES} pages were changed")
        return runs

    def _head(self, name: ChangeName, last: Standing, new_blocks: tuple[Block, ...]) -> dict[str, Any]:
        return {
            **name._asdict(),
            "before": last.commit,
            "commit": self.standing.commit,
            "previous": self._digest,
            "meta": self.standing.meta.hex(),
            "blocks": [block._asdict() for block in new_blocks],
        }

    def _standing(self, pinned: Pinned, time_ms: int) -> Standing:
        cold, found = blocks.needed(pinned.pin)
        return Standing(0, time_ms, pinned.number, pinned.meta, cold, found)

    def end(self) -> None:
        """Hold no page any more."""
        if self._pinned is not None:
            self._pinned.pin.abort()
            self._pinned = None

    @property
    def is_ended(self) -> bool:
        return self._pinned is None
