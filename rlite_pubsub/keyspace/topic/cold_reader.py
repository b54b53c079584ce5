"""A topic's entries in the cold store, read like the rest, by row groups.

Entries up to `sealed to` are in blocks, those above it in chunks; `across` and its neighbours read on from one into the
other. ColdMiss (cold_shelf.py) says what has to be fetched first: all that a call needs, as far as it can be
known. What is trimmed, or deleted, was in the block and is passed over.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from rlite_pubsub.keyspace.topic.cold_shelf import ColdMiss, ColdUnreadable
from rlite_pubsub.storage.cold import cold_blocks
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo, ColdState
from rlite_pubsub.storage.topics import chunks, entry_ids, entry_lookup
from rlite_pubsub.storage.topics.chunks import Chunk, ChunkSlice
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.topic.cold_shelf import ColdAccess, Shelf
    from rlite_pubsub.storage.environment import Txn

Place: TypeAlias = tuple[BlockInfo, int]
"""A row group: its block, and its number there."""

MAX_MISSING = 64
"""Row groups that are asked for at once: what a request needs beyond these it asks for when it has them."""
PIECE = 1024
"""Entries of a part."""


class ShelfOwner(Protocol):
    """What the cold reader asks of the part of the keyspace that the topic is in."""

    @property
    def cold(self) -> ColdAccess: ...

    def clock_ms(self) -> int: ...

    def reading(self) -> Txn:
        """Return the turn's transaction."""


class Sealed(Protocol):
    """What the cold reader asks of its topic."""

    @property
    def number(self) -> int: ...

    @property
    def keyspace(self) -> ShelfOwner: ...

    @property
    def trimmed_id_stored(self) -> Id:
        """The last entry known to have been trimmed."""

    def settle(self) -> Txn:
        """Bring what this turn appended and trimmed into the open transaction, which is returned."""


class ColdReader:
    """Reads the cold part of a topic, as long as its state is this."""

    __slots__ = ("_last_block", "_topic", "state")

    def __init__(self, topic: Sealed, state: ColdState) -> None:
        self._topic = topic
        self.state = state
        self._last_block: BlockInfo | None = None  # the one that was looked at last

    @property
    def _floor(self) -> Id:
        """The lowest id that can be there."""
        return entry_ids.after(self._topic.trimmed_id_stored) or entry_ids.MAX

    def _shelf(self) -> Shelf:
        keyspace = self._topic.keyspace
        cold = keyspace.cold
        if cold.shelf is None:
            cold.begin(keyspace.reading())
        shelf = cold.shelf
        if shelf is None:
            raise ColdUnreadable(
                "The oldest entries of this topic are in the cold store, which this process does not have: it needs "
                "rlite-pubsub[cold]"
            )
        return shelf

    def _blocks(self, txn: Txn, low: Id, high: Id) -> Iterator[BlockInfo]:
        """Yield the blocks that may hold something from `low` to `high`."""
        last = self._last_block
        if last is not None and last.first <= low <= last.last:
            yield last
            behind = entry_ids.after(last.last)
            if behind is None or behind > high:
                return
            low = behind
        for block in cold_blocks.forward(txn, self._topic.number, low):
            if block.first > high:
                return
            self._last_block = block
            yield block

    def _clipped(self, start: Id, end: Id) -> tuple[Id, Id]:
        return max(start, self._floor), min(end, self.state.sealed_to)

    # -- reading across the seam

    def across(self, txn: Txn, start: Id, end: Id, limit: int | None) -> Iterator[ChunkSlice]:
        """As `between`, and what is behind it in chunks."""
        for part in self.between(txn, start, end, limit):
            yield part
            if limit is not None:
                limit -= part.count
        behind = entry_ids.after(self.state.sealed_to)
        if limit != 0 and behind is not None:
            yield from chunks.between(txn, self._topic.number, max(start, behind), end, limit)

    def across_backward(self, txn: Txn, start: Id, end: Id, limit: int | None) -> Iterator[ChunkSlice]:
        """As `backward`, after what is behind it in chunks."""
        for part in chunks.between_backward(txn, self._topic.number, start, end, limit):
            yield part
            if limit is not None:
                limit -= part.count
        if limit != 0:
            yield from self.backward(txn, start, end, limit)

    def entries(self, txn: Txn, ids: Sequence[bytes]) -> list[bytes | None]:
        """As entry_lookup.entries, wherever they are. Raises ColdMiss."""
        here = ids[: self.place_behind(ids)]
        found = self.find(txn, here) if here else {}
        return [*map(found.get, here), *entry_lookup.entries(txn, self._topic.number, ids[len(here) :])]

    def place_behind(self, ids: Sequence[bytes]) -> int:
        """Return how many of these ids (packed, in order) can be here."""
        return bisect_right(ids, entry_ids.pack(self.state.sealed_to))

    # -- reading what is here

    def between(self, txn: Txn, start: Id, end: Id, limit: int | None = None) -> Iterator[ChunkSlice]:
        """As chunks.between. Raises ColdMiss."""
        low, high = self._clipped(start, end)
        if low > high or (limit is not None and limit <= 0):
            return
        shelf = self._shelf()

        def parts(block: BlockInfo, number: int, chunk: Chunk) -> Iterable[ChunkSlice]:
            self._look_ahead(shelf, txn, block, number)
            return self._parts(txn, chunk, low, high)

        yield from _read(shelf, self._groups(txn, low, high), parts, limit, newest=False)

    def backward(self, txn: Txn, start: Id, end: Id, limit: int | None = None) -> Iterator[ChunkSlice]:
        """As chunks.between_backward. Raises ColdMiss."""
        low, high = self._clipped(start, end)
        if low > high or (limit is not None and limit <= 0):
            return

        def parts(block: BlockInfo, number: int, chunk: Chunk) -> Iterable[ChunkSlice]:
            return reversed(list(self._parts(txn, chunk, low, high)))

        yield from _read(self._shelf(), self._groups_backward(txn, low, high), parts, limit, newest=True)

    def _groups(self, txn: Txn, low: Id, high: Id) -> Iterator[Place]:
        """Yield the row groups that may hold something from `low` to `high`."""
        for block in self._blocks(txn, low, high):
            for number in range(_place(block, low), len(block.groups)):
                if block.groups[number].first > high:
                    return
                yield block, number

    def _groups_backward(self, txn: Txn, low: Id, high: Id) -> Iterator[Place]:
        """Yield the same, last to first."""
        for block in cold_blocks.backward(txn, self._topic.number, high):
            for number in range(len(block.groups) - 1, -1, -1):
                if block.groups[number].last < low:
                    return
                if block.groups[number].first <= high:
                    yield block, number

    def _look_ahead(self, shelf: Shelf, txn: Txn, block: BlockInfo, number: int) -> None:
        """A reader of this row group will want the next one."""
        if number + 1 < len(block.groups):
            shelf.look_ahead(block, number + 1)
            return
        behind = entry_ids.after(block.last)
        if behind is not None and behind <= self.state.sealed_to:
            following = next(cold_blocks.forward(txn, self._topic.number, behind), None)
            if following is not None:
                shelf.look_ahead(following, 0)

    def _parts(self, txn: Txn, chunk: Chunk, low: Id, high: Id) -> Iterator[ChunkSlice]:
        """Yield the entries of a row group between these ids, without the deleted ones."""
        start, stop = chunk.place_of(entry_ids.pack(low)), chunk.place_behind(entry_ids.pack(high))
        if start >= stop:
            return
        one, other = entry_ids.unpack(chunk.id(start)), entry_ids.unpack(chunk.id(stop - 1))
        for packed, _ in list(cold_blocks.buried(txn, self._topic.number, one, other)):
            place = chunk.place_of(packed)
            yield from _pieces(chunk, start, place)
            start = place + 1
        yield from _pieces(chunk, start, stop)

    def find(self, txn: Txn, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return those of these ids (packed, in order) that there are entries of, with these. Raises ColdMiss."""
        low, high = self._clipped(entry_ids.MIN, entry_ids.MAX)
        found: dict[bytes, bytes] = {}
        missing: list[Place] = []
        shelf = self._shelf()
        block: BlockInfo | None = None
        for packed in ids:
            wanted = entry_ids.unpack(packed)
            if not low <= wanted <= high:
                continue
            if block is None or not block.first <= wanted <= block.last:
                block = next(self._blocks(txn, wanted, wanted), None)
                if block is None:
                    continue
            number = _place(block, wanted)
            if number == len(block.groups) or block.groups[number].first > wanted:
                continue
            if missing and missing[-1] == (block, number):
                continue
            chunk = shelf.get(block, number)
            if chunk is None:
                missing.append((block, number))
                continue
            place = chunk.place_of(packed)
            if place < chunk.count and chunk.id(place) == packed:
                found[packed] = chunk.slice(place, place + 1)
        if missing:
            raise ColdMiss(shelf, missing)
        if found:
            of_all = list(found)
            one, other = entry_ids.unpack(of_all[0]), entry_ids.unpack(of_all[-1])
            for packed, _ in cold_blocks.buried(txn, self._topic.number, one, other):
                found.pop(packed, None)
        return found

    def first_id(self, txn: Txn) -> Id:
        """Return the lowest id there is. Raises ColdMiss only where entries of the first block are gone."""
        block = cold_blocks.first(txn, self._topic.number)
        assert block is not None
        if self.state.first_live == block.count and block.last <= self.state.sealed_to:
            return block.first
        part = next(self.between(txn, entry_ids.MIN, entry_ids.MAX, 1))
        return entry_ids.unpack(part.ids)


def _read(
    shelf: Shelf,
    places: Iterator[Place],
    parts: Callable[[BlockInfo, int, Chunk], Iterable[ChunkSlice]],
    limit: int | None,
    *,
    newest: bool,
) -> Iterator[ChunkSlice]:
    """Yield at most `limit` entries of these row groups. Raises ColdMiss once the first group is missing, naming all
    that will be needed, as far as that is known."""
    missing: list[Place] = []
    for block, number in places:
        chunk = shelf.get(block, number)
        if chunk is None:
            missing.append((block, number))
        if missing or chunk is None:
            if limit is not None:
                limit -= block.groups[number].count
            if len(missing) == MAX_MISSING or (limit is not None and limit <= 0):
                raise ColdMiss(shelf, missing)
            continue
        for part in parts(block, number, chunk):
            if limit is None or part.count <= limit:
                some = part
            elif newest:
                some = ChunkSlice(chunk, part.stop - limit, part.stop)
            else:
                some = ChunkSlice(chunk, part.start, part.start + limit)
            yield some
            if limit is not None:
                limit -= some.count
                if not limit:
                    return
    if missing:
        raise ColdMiss(shelf, missing)


def _place(block: BlockInfo, low: Id) -> int:
    """Return the first row group that may hold ids from `low` on."""
    return bisect_left(block.groups, low, key=_last_of)


def _pieces(chunk: Chunk, start: int, stop: int) -> Iterator[ChunkSlice]:
    """No larger than readers who take a little at a time can bear."""
    for at in range(start, stop, PIECE):
        yield ChunkSlice(chunk, at, min(at + PIECE, stop))


def _last_of(group: cold_blocks.GroupInfo) -> Id:
    return group.last
