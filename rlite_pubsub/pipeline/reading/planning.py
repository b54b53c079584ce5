"""Ranges of topics are shared out among tasks: equal counts of entries, each topic's in order.

A range is cut at ids, and what was planned stays what it is: wherever its entries are by the time a task reads it, on
the server or sealed into blocks, it reads all with these ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from rlite_pubsub.cold import block
from rlite_pubsub.pipeline.cold_topic import ColdTopic
from rlite_pubsub.pipeline.reading.spans import ColdPiece, EntrySpan
from rlite_pubsub.pipeline.topics import Marks
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.cold.place import Place
    from rlite_pubsub.pipeline.catalog import Catalog
    from rlite_pubsub.storage.cold.cold_blocks import BlockInfo

TASKS = 8
"""Of a large read: each costs about 10 ms, this many small ones are slower than few."""
ENTRIES_PER_TASK = 250_000
"""At least, unless minPartitions says that more tasks are wanted."""
MOST_ENTRIES_PER_TASK = 4_000_000
_FINE_STEP = 5_000

Window = tuple[bytes, Id, Id]
"""A topic, above which id, up to and with which."""


# -- The cold part of what is read: blocks, which executors read straight from the cold store. The seam is what the
# server said in one moment: entries up to and with `sealed-to` from the blocks that it named, without those that are
# gone, all others from the server. Blocks are immutable, so this stays true while sealing goes on. A block whose file
# is gone by the time that it is read (compacted, or dropped) is asked of the server instead, which has its entries
# elsewhere, or says that they are lost.


class ColdPlan:
    """The part of one topic's window that is in blocks, and the part that is left to the server."""

    def __init__(self, catalog: Catalog, window: Window) -> None:
        name, after, upto = window
        cold = catalog.cold(name)
        self._cold = cold
        self._name = name
        self._low = max(after, cold.floor) if cold.blocks else after
        self._high = min(upto, cold.sealed_to)
        self._blocks = [one for one in cold.blocks if one.first <= self._high and one.last > self._low]
        self._place = catalog.place(cold) if self._blocks else None
        self.hot: Window = (name, max(self._low, cold.sealed_to) if self._blocks else after, upto)

    @property
    def entries(self) -> int:
        """About how many are in its blocks."""
        return sum(one.count for one in self._blocks)

    def spans(self, per_task: int) -> Iterator[EntrySpan]:
        """Blocks, and row groups of those that are more than one task's share."""
        assert self._place is not None or not self._blocks
        for one in self._blocks:
            assert self._place is not None
            yield from _of_block(self._name, self._place, self._cold, one, self._low, self._high, per_task)


def _of_block(
    name: bytes, place: Place, cold: ColdTopic, info: BlockInfo, low: Id, high: Id, per_task: int
) -> Iterator[EntrySpan]:
    deleted = tuple(sorted(one for one in cold.deleted if info.first <= one <= info.last))
    after = max(low, entry_ids.before(info.first) or entry_ids.MIN)
    upto = min(high, info.last)
    piece = ColdPiece(place, info, deleted)
    if info.count <= per_task:
        yield EntrySpan(name, after, upto, info.count, piece)
        return
    taken, edge = 0, after
    for group in block.complete(place, info).groups:
        if group.last <= after:
            continue
        taken += group.count
        if taken >= per_task or group.last >= upto:
            yield EntrySpan(name, edge, min(group.last, upto), taken, piece)
            taken, edge = 0, group.last
        if group.last >= upto:
            return


def plan(catalog: Catalog, windows: Iterable[Window], min_partitions: int | None) -> list[list[EntrySpan]]:
    """The shares of tasks, which hold these windows, and nothing else."""
    cold = [ColdPlan(catalog, window) for window in windows if window[1] < window[2]]
    hot = [catalog.marks(*one.hot, _FINE_STEP) if one.hot[1] < one.hot[2] else None for one in cold]
    total = sum(one.entries for one in cold) + sum(told.entries for told in hot if told is not None)
    if not total:
        return []
    tasks = max(min(TASKS, total // ENTRIES_PER_TASK), total // MOST_ENTRIES_PER_TASK, min_partitions or 1, 1)
    per_task = -(-total // min(tasks, total))
    if -(-total // per_task) < min(min_partitions or 1, total):  # of few entries, one more or less is much
        per_task = max(1, total // tasks)
    spans: list[EntrySpan] = []
    for one, told in zip(cold, hot, strict=True):
        spans += one.spans(per_task)
        if told is not None and told.entries:
            spans += _hot_spans(catalog, one.hot, told, per_task)
    return _shared_out(spans, per_task)


def _hot_spans(catalog: Catalog, window: Window, told: Marks, per_task: int) -> Iterator[EntrySpan]:
    """Yield the server's part, cut finely enough for tasks of this size."""
    name, after, upto = window
    if told.step * 4 > per_task < told.entries:
        told = catalog.marks(name, after, upto, max(1, min(per_task, told.entries)))
    edges = [after, *told.ids]
    if told.last is not None and edges[-1] >= told.last:
        edges.pop()
    edges.append(upto)
    left = told.entries
    for low, high in pairwise(edges):
        yield EntrySpan(name, low, high, min(told.step, left))
        left -= told.step


def _shared_out(spans: list[EntrySpan], per_task: int) -> list[list[EntrySpan]]:
    """Join neighbours, up to a task's share."""
    shares: list[list[EntrySpan]] = []
    entries = 0
    for span in spans:
        if not shares or entries + span.entries > per_task:
            shares.append([])
            entries = 0
        taken = shares[-1]
        entries += span.entries
        if taken and _is_next(taken[-1], span):
            before = taken.pop()
            taken.append(before._replace(upto=span.upto, entries=before.entries + span.entries))
        else:
            taken.append(span)
    return shares


def _is_next(one: EntrySpan, other: EntrySpan) -> bool:
    """Return whether the server has both in one piece."""
    return one.cold is None and other.cold is None and (one.topic, one.upto) == (other.topic, other.after)
