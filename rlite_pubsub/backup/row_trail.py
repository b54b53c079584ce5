"""Following the commits of a store by its log, without asking those who write.

    state N = state of a commit before it, and the rows of each change up to N

What is found is gathered until it is `cut`, however long that is: of each row what came last. Segments of the log are
kept until the next `roll` (storage/log/following.py); who is slow to bring away what was found rolls on meanwhile, or
ends the trail and begins another one later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rlite_pubsub.backup import blocks, layout
from rlite_pubsub.backup.errors import TrailLost
from rlite_pubsub.backup.layout import ChangeName
from rlite_pubsub.backup.manifest import Block
from rlite_pubsub.backup.row_copying import RowCopying
from rlite_pubsub.backup.rows import RowContent
from rlite_pubsub.backup.trail import Change, Standing, Trail
from rlite_pubsub.storage.log.environment import LogEnvironment
from rlite_pubsub.storage.log.following import Following, LogLost

if TYPE_CHECKING:
    from rlite_pubsub.storage.store import Store

MOST_BYTES = 256 << 20
"""Of one change: more is brought away by a new snapshot, from which a megabyte at a time is in memory."""


class RowTrail:
    """One chain of commits, as long as it is not `end`ed. Used by one thread."""

    def __init__(self, store: Store, clock_ms: Callable[[], int]) -> None:
        """Raises StoreError; OSError."""
        if not isinstance(store.data, LogEnvironment):
            raise TypeError("this store has no log")
        self.data = store.data
        self._clock_ms = clock_ms
        self.chain = layout.new_chain(clock_ms())
        self._digest = ""  # of the last change
        self._gathered: dict[bytes, bytes | None] = {}
        self.gathered_bytes = 0
        self._following: Following | None = Following(self.data.log, self.data.path.parent)
        time_ms = clock_ms()
        self.standing = self._cut_at = self.data.read(lambda txn: self._found(txn, time_ms))

    def contents(self) -> Iterator[RowContent]:
        """Return what a snapshot is made of. Raises StoreError."""
        return map(RowContent, RowCopying(self.data).stretches())

    @property
    def commits(self) -> int:
        """How many commits have been made since the last roll."""
        return self.data.last_commit() - self.standing.commit

    def roll(self) -> None:
        """Gather what was committed since the last time. Raises TrailLost, and then it is ended; and StoreError, and
        then it can be tried again."""
        if self._following is None:
            raise TrailLost("it was ended")
        time_ms = max(self._clock_ms(), self.standing.time_ms)  # before it looks: what comes later has a later time
        try:
            self.standing = self.data.read(lambda txn: self._found(txn, time_ms))
        except LogLost as lost:
            self.end()
            raise TrailLost(str(lost)) from lost
        if self.gathered_bytes > MOST_BYTES:
            self.end()
            raise TrailLost(f"more than {MOST_BYTES} bytes were changed")

    def _found(self, txn: Any, time_ms: int) -> Standing:
        assert self._following is not None
        gathered = self._gathered
        for _, committed_ms, rows in self._following.read(txn):
            time_ms = max(time_ms, committed_ms)
            for key, value in rows:
                if key in gathered:
                    self.gathered_bytes -= len(key) + len(gathered[key] or b"")
                gathered[key] = value
                self.gathered_bytes += len(key) + len(value or b"")
        cold, found = blocks.needed(txn)
        return Standing(0, time_ms, txn.id(), b"", cold, found)

    def cut(self) -> Change | None:
        """Return what was gathered, as one change; None if there is nothing."""
        if self.standing.commit == self._cut_at.commit:
            return None
        last, number = self._cut_at, self._cut_at.number + 1
        self.standing = self._cut_at = self.standing._replace(number=number)
        known = set(last.blocks)
        new_blocks = tuple(block for block in self.standing.blocks if block not in known)
        name = ChangeName(self.chain, number, self.standing.time_ms)
        content = RowContent(sorted(self._gathered.items()), self._head(name, last, new_blocks))
        self._digest = content.digest
        self._gathered, self.gathered_bytes = {}, 0
        return Change(name, content.packed(), new_blocks, self.standing)

    def _head(self, name: ChangeName, last: Standing, new_blocks: tuple[Block, ...]) -> dict[str, Any]:
        return {
            **name._asdict(),
            "before": last.commit,
            "commit": self.standing.commit,
            "previous": self._digest,
            "blocks": [block._asdict() for block in new_blocks],
        }

    def end(self) -> None:
        """Keep no segment any more."""
        if self._following is not None:
            self._following.close()
            self._following = None


def begin_trail(store: Store, clock_ms: Callable[[], int]) -> Trail | RowTrail:
    """Begin a chain: of rows if the store has a log, else of pages. Raises StoreError; OSError."""
    return RowTrail(store, clock_ms) if isinstance(store.data, LogEnvironment) else Trail(store, clock_ms)
