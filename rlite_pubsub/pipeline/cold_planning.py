"""The cold part of what is read: blocks, which executors read straight from the cold store.

The seam is what the server said in one moment: entries up to and with `sealed-to` from the blocks that it named,
without those that are gone, all others from the server. Blocks are immutable, so this stays true while sealing goes on.
A block whose file is gone by the time that it is read (compacted, or dropped) is asked of the server instead, which has
its entries elsewhere, or says that they are lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlite_pubsub.cold import block
from rlite_pubsub.pipeline.jobs.cold_topic import ColdTopic, cold_topic, place_of
from rlite_pubsub.pipeline.partition import ColdPiece, Span
from rlite_pubsub.storage import entry_ids

if TYPE_CHECKING:
    import redis

    from rlite_pubsub.cold.place import Place
    from rlite_pubsub.pipeline.planning import Window
    from rlite_pubsub.storage.cold_blocks import BlockInfo
    from rlite_pubsub.storage.entry_ids import Id


class ColdPlan:
    """Of one topic's window: what is in blocks, and what is left to the server."""

    def __init__(self, client: redis.Redis, window: Window, cold_path: str | None) -> None:
        name, after, upto = window
        cold = cold_topic(client, name)
        self._cold = cold
        self._name = name
        self._low = max(after, cold.floor) if cold.blocks else after
        self._high = min(upto, cold.sealed_to)
        self._blocks = [one for one in cold.blocks if one.first <= self._high and one.last > self._low]
        self._place = place_of(client, cold, cold_path) if self._blocks else None
        self.hot: Window = (name, max(self._low, cold.sealed_to) if self._blocks else after, upto)

    @property
    def entries(self) -> int:
        """About how many are in its blocks."""
        return sum(one.count for one in self._blocks)

    def spans(self, per_task: int) -> Iterator[Span]:
        """Blocks, and row groups of those that are more than one task's share."""
        assert self._place is not None or not self._blocks
        for one in self._blocks:
            assert self._place is not None
            yield from _of_block(self._name, self._place, self._cold, one, self._low, self._high, per_task)


def _of_block(
    name: bytes, place: Place, cold: ColdTopic, info: BlockInfo, low: Id, high: Id, per_task: int
) -> Iterator[Span]:
    deleted = tuple(sorted(one for one in cold.deleted if info.first <= one <= info.last))
    after = max(low, entry_ids.before(info.first) or entry_ids.MIN)
    upto = min(high, info.last)
    piece = ColdPiece(place, info, deleted)
    if info.count <= per_task:
        yield Span(name, after, upto, info.count, piece)
        return
    taken, edge = 0, after
    for group in block.complete(place, info).groups:
        if group.last <= after:
            continue
        taken += group.count
        if taken >= per_task or group.last >= upto:
            yield Span(name, edge, min(group.last, upto), taken, piece)
            taken, edge = 0, group.last
        if group.last >= upto:
            return
