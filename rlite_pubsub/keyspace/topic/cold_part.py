"""The part of a topic that is in the cold store: read like the rest, by row groups, and removed in blocks.

Entries up to `sealed to` are in blocks, those above it in chunks. `across` and its neighbours read on from one into the
other; a topic without blocks has no such part, and costs one look at a flag.

What has to be fetched first is told by ColdMiss (cold_shelf.py), before anything is changed: all that a call needs, as
far as it can be known. What is trimmed, or deleted, was in the block and is passed over.
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
    from rlite_pubsub.keyspace.topic.cold_shelf import Shelf
    from rlite_pubsub.storage.environment import Txn

Place: TypeAlias = tuple[BlockInfo, int]
"""A row group: its block, and its number there."""

MAX_MISSING = 64
"""Row groups that are asked for at once: what a request needs beyond these it asks for when it has them."""
PIECE = 1024
"""Entries of a part."""


class ShelfOwner(Protocol):
    """What it asks of the keyspace."""

    cold: Shelf | None
    """Where what is read from the cold store stands."""

    @property
    def cold_grace_ms(self) -> int:
        """So long files of the cold store stay that nobody needs any more, but who reads them."""

    def open_cold(self, txn: Txn) -> Shelf | None:
        """Makes one where there is none; None: it can't be."""

    def clock_ms(self) -> int: ...

    def reading(self) -> Txn:
        """The turn's transaction."""


class Sealed(Protocol):
    """What it asks of its topic."""

    @property
    def number(self) -> int: ...

    @property
    def keyspace(self) -> ShelfOwner: ...

    @property
    def trimmed_id_stored(self) -> Id:
        """The last entry that was trimmed, as far as the store has it."""

    def settle(self) -> Txn:
        """Bring what this turn appended and trimmed into the open transaction, which is returned."""


class ColdPart:
    """Of one topic."""

    __slots__ = ("_is_changed", "_last_block", "_topic", "state")

    def __init__(self, topic: Sealed, state: ColdState) -> None:
        self._topic = topic
        self.state = state
        self._is_changed = False
        self._last_block: BlockInfo | None = None  # the one that was looked at last

    def write(self, txn: Txn) -> None:
        """Bring what has changed into the store."""
        if self._is_changed:
            self._is_changed = False
            cold_blocks.put_state(txn, self._topic.number, self.state)

    def change(self, **fields: object) -> None:
        """The state is another one. The topic is told to be changed by who calls."""
        self.state = self.state._replace(**fields)  # type: ignore[arg-type]
        self._is_changed = True

    def begin(self, sealed_to: Id) -> None:
        """There is nothing in it."""
        self.state = ColdState(sealed_to)
        self._last_block = None
        self._is_changed = True

    # -- where it is

    @property
    def _floor(self) -> Id:
        """The lowest id that can be there."""
        return entry_ids.after(self._topic.trimmed_id_stored) or entry_ids.MAX

    def _shelf(self) -> Shelf:
        keyspace = self._topic.keyspace
        shelf = keyspace.cold
        if shelf is None:
            shelf = keyspace.cold = keyspace.open_cold(keyspace.reading())
        if shelf is None:
            raise ColdUnreadable(
                "The oldest entries of this topic are in the cold store, which this process does not have: it needs "
                "rlite-pubsub[cold]"
            )
        return shelf

    def _blocks(self, txn: Txn, low: Id, high: Id) -> Iterator[BlockInfo]:
        """The blocks that may hold something from `low` to `high`."""
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
        """How many of these ids (packed, in order) can be here."""
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
        """The row groups that may hold something from `low` to `high`."""
        for block in self._blocks(txn, low, high):
            for number in range(_place(block, low), len(block.groups)):
                if block.groups[number].first > high:
                    return
                yield block, number

    def _groups_backward(self, txn: Txn, low: Id, high: Id) -> Iterator[Place]:
        """The same, last to first."""
        for block in cold_blocks.backward(txn, self._topic.number, high):
            for number in range(len(block.groups) - 1, -1, -1):
                if block.groups[number].last < low:
                    return
                if block.groups[number].first <= high:
                    yield block, number

    def _look_ahead(self, shelf: Shelf, txn: Txn, block: BlockInfo, number: int) -> None:
        """Whoever reads this row group reads the next one next."""
        if number + 1 < len(block.groups):
            shelf.look_ahead(block, number + 1)
            return
        behind = entry_ids.after(block.last)
        if behind is not None and behind <= self.state.sealed_to:
            following = next(cold_blocks.forward(txn, self._topic.number, behind), None)
            if following is not None:
                shelf.look_ahead(following, 0)

    def _parts(self, txn: Txn, chunk: Chunk, low: Id, high: Id) -> Iterator[ChunkSlice]:
        """What of a row group is between these, and not deleted."""
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
        """Those of these ids (packed, in order) that there are entries of, with these. Raises ColdMiss."""
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

    # -- what goes. Before these nothing of the turn's own is left to be written (`Topic.settle`).

    def delete(self, txn: Txn, found: dict[bytes, bytes]) -> None:
        """Remove these entries, which `find` has found."""
        topic, state = self._topic, self.state
        first = cold_blocks.first(txn, topic.number)
        end = entry_ids.pack(first.last) if first is not None else b""
        size_bytes = in_first = first_bytes = 0
        for packed, wire in found.items():
            cold_blocks.bury(txn, topic.number, packed, len(wire))
            size_bytes += len(wire)
            if packed <= end:
                in_first += 1
                first_bytes += len(wire)
        self.change(
            live=state.live - len(found),
            live_bytes=state.live_bytes - size_bytes,
            first_live=state.first_live - in_first,
            first_bytes=state.first_bytes - first_bytes,
        )
        self.drop_empty(txn)

    def drop_empty(self, txn: Txn) -> None:
        """The first block has an entry, or is being sealed."""
        while not self.state.first_live:
            block = cold_blocks.first(txn, self._topic.number)
            if block is None or block.last > self.state.sealed_to:
                return
            self.drop_first(txn)

    def look_at_trim(self, count: int) -> None:
        """Read what `trim` will read. Raises ColdMiss."""
        self._cut(self._topic.settle(), count)

    def _cut(self, txn: Txn, count: int) -> tuple[int, int, Id] | None:
        """Where the `count` oldest entries end in the midst of a block: how many of its own are among them, how many
        bytes, and the last id; None: they end with a block, or all there are are no more. Raises ColdMiss."""
        if count >= self.state.live:
            return None
        left, live, before = count, self.state.first_live, 0
        for block in cold_blocks.forward(txn, self._topic.number):
            if left <= 0 or left == live:
                return None
            if left < live:
                parts = list(self.between(txn, block.first, block.last, left))
                last = parts[-1].chunk.id(parts[-1].stop - 1)
                return left, sum([len(part.wire) for part in parts]), entry_ids.unpack(last)
            left -= live
            before += live
            live = self._live(txn, block, before, 0)[0]
        return None

    def trim(self, txn: Txn, count: int) -> tuple[int, int, Id]:
        """Remove the `count` oldest entries, or all there are: how many, how many bytes, and the last id that is gone.
        Raises ColdMiss, before anything is changed."""
        removed = removed_bytes = 0
        highest = entry_ids.MIN
        cut = self._cut(txn, count)
        while removed < count and self.state.live:
            if cut is None or count - removed > cut[0]:
                gone, gone_bytes, highest = self.drop_first(txn)
                removed += gone
                removed_bytes += gone_bytes
                continue
            left, gone_bytes, last = cut
            state = self.state
            self.change(
                live=state.live - left,
                live_bytes=state.live_bytes - gone_bytes,
                first_live=state.first_live - left,
                first_bytes=state.first_bytes - gone_bytes,
            )
            return count, removed_bytes + gone_bytes, last
        self.drop_empty(txn)
        return removed, removed_bytes, highest

    def drop_first(self, txn: Txn) -> tuple[int, int, Id]:
        """Remove the first block: its entries, their bytes, and the last id. Nothing is read for it."""
        topic, state = self._topic, self.state
        block = cold_blocks.first(txn, topic.number)
        assert block is not None
        live, live_bytes = self._live(txn, block, state.first_live, state.first_bytes)
        due_ms = topic.keyspace.clock_ms() + topic.keyspace.cold_grace_ms
        cold_blocks.remove(txn, topic.number, block, due_ms)
        self._last_block = None
        self.change(
            live=state.live - state.first_live,
            live_bytes=state.live_bytes - state.first_bytes,
            first_live=live,
            first_bytes=live_bytes,
        )
        return state.first_live, state.first_bytes, min(block.last, state.sealed_to)

    def swap(self, txn: Txn, old_firsts: Sequence[Id], new: BlockInfo) -> bool:
        """Have one block instead of a run of them, as cold_blocks.swap; whether it was done. The topic is told to be
        changed by who calls."""
        topic, state = self._topic, self.state
        self.write(txn)
        first = cold_blocks.first(txn, topic.number)
        due_ms = topic.keyspace.clock_ms() + topic.keyspace.cold_grace_ms
        old = cold_blocks.swap(txn, topic.number, old_firsts, new, due_ms)
        if old is None:
            return False
        self._last_block = None
        if first is not None and first.first == new.first:  # nothing was trimmed of the others
            gone = list(cold_blocks.buried(txn, topic.number, old[0].last, new.last))
            dead = [size for packed, size in gone if entry_ids.unpack(packed) > old[0].last]
            self.change(
                first_live=state.first_live + sum(block.count for block in old[1:]) - len(dead),
                first_bytes=state.first_bytes + sum(block.wire_bytes for block in old[1:]) - sum(dead),
            )
        return True

    def _live(self, txn: Txn, behind: BlockInfo, before: int, bytes_before: int) -> tuple[int, int]:
        """Entries and bytes of the block behind this one, before which there are so many. Nothing was trimmed of it."""
        start = entry_ids.after(behind.last)
        block = next(cold_blocks.forward(txn, self._topic.number, start), None) if start is not None else None
        if block is None:
            return 0, 0
        if block.last > self.state.sealed_to:  # it is the last one, and the sealing of it goes on
            return self.state.live - before, self.state.live_bytes - bytes_before
        gone = list(cold_blocks.buried(txn, self._topic.number, block.first, block.last))
        return block.count - len(gone), block.wire_bytes - sum(size for _, size in gone)

    @property
    def first_block(self) -> BlockInfo | None:
        """The one with the oldest entries."""
        return cold_blocks.first(self._topic.settle(), self._topic.number)

    def first_id(self, txn: Txn) -> Id:
        """The lowest id there is. Raises ColdMiss only where entries of the first block are gone."""
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
    """What these row groups have, at most `limit` entries. Raises ColdMiss, of all that will be needed as far as it can
    be known, once the first of them is not here."""
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
    """The first row group that may hold ids from `low` on."""
    return bisect_left(block.groups, low, key=_last_of)


def _pieces(chunk: Chunk, start: int, stop: int) -> Iterator[ChunkSlice]:
    """No larger than readers who take a little at a time can bear."""
    for at in range(start, stop, PIECE):
        yield ChunkSlice(chunk, at, min(at + PIECE, stop))


def _last_of(group: cold_blocks.GroupInfo) -> Id:
    return group.last
