"""The part of a topic that is in the cold store: what is there, and what goes. A topic without blocks has none.

It goes in blocks, as nodes go elsewhere. Who removes entries out of the midst of one may have to read it first:
ColdMiss says so, before anything is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlite_pubsub.keyspace.topic.cold_reader import ColdReader, Sealed
from rlite_pubsub.storage.cold import cold_blocks
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo, ColdState
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Txn


class ColdPart:
    """The part of a topic that is in the cold store."""

    __slots__ = ("_is_changed", "_topic", "reader")

    def __init__(self, topic: Sealed, state: ColdState) -> None:
        self._topic = topic
        self.reader = ColdReader(topic, state)
        self._is_changed = False

    @property
    def state(self) -> ColdState:
        """As `reader` has it."""
        return self.reader.state

    def write(self, txn: Txn) -> None:
        """Bring what has changed into the store."""
        if self._is_changed:
            self._is_changed = False
            cold_blocks.put_state(txn, self._topic.number, self.state)

    def change(self, **fields: object) -> None:
        """Change the state. The caller marks the topic as changed."""
        self._become(self.state._replace(**fields))  # type: ignore[arg-type]

    def begin(self, sealed_to: Id) -> None:
        """Begin with nothing in it."""
        self._become(ColdState(sealed_to))

    def _become(self, state: ColdState) -> None:
        self.reader = ColdReader(self._topic, state)
        self._is_changed = True

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

    def read_for_trim(self, count: int) -> None:
        """Read what `trim` will read. Raises ColdMiss."""
        self._cut(self._topic.settle(), count)

    def _cut(self, txn: Txn, count: int) -> tuple[int, int, Id] | None:
        """Return where the `count` oldest entries end in the middle of a block: how many of its own are among them, how
        many bytes, and the last id; None if they end with a block, or there are no more. Raises ColdMiss."""
        if count >= self.state.live:
            return None
        left, live, before = count, self.state.first_live, 0
        for block in cold_blocks.forward(txn, self._topic.number):
            if left <= 0 or left == live:
                return None
            if left < live:
                parts = list(self.reader.between(txn, block.first, block.last, left))
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
        due_ms = topic.keyspace.clock_ms() + topic.keyspace.cold.grace_ms
        cold_blocks.remove(txn, topic.number, block, due_ms)
        self.change(
            live=state.live - state.first_live,
            live_bytes=state.live_bytes - state.first_bytes,
            first_live=live,
            first_bytes=live_bytes,
        )
        return state.first_live, state.first_bytes, min(block.last, state.sealed_to)

    def swap(self, txn: Txn, old_firsts: Sequence[Id], new: BlockInfo) -> bool:
        """Have one block instead of a run of them, as cold_blocks.swap; whether it was done. The topic is told to be
        changed by the caller."""
        topic, state = self._topic, self.state
        self.write(txn)
        first = cold_blocks.first(txn, topic.number)
        due_ms = topic.keyspace.clock_ms() + topic.keyspace.cold.grace_ms
        old = cold_blocks.swap(txn, topic.number, old_firsts, new, due_ms)
        if old is None:
            return False
        self.reader = ColdReader(topic, state)  # which knows none of the old ones
        if first is not None and first.first == new.first:  # nothing was trimmed of the others
            gone = list(cold_blocks.buried(txn, topic.number, old[0].last, new.last))
            dead = [size for packed, size in gone if entry_ids.unpack(packed) > old[0].last]
            self.change(
                first_live=state.first_live + sum(block.count for block in old[1:]) - len(dead),
                first_bytes=state.first_bytes + sum(block.wire_bytes for block in old[1:]) - sum(dead),
            )
        return True

    def _live(self, txn: Txn, behind: BlockInfo, before: int, bytes_before: int) -> tuple[int, int]:
        """Entries and bytes of the block behind this one, before which there are this many. Nothing was trimmed of
        it."""
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
