"""The part of a topic that is in the cold store, as the topic has it: entries are read across the seam, and removed in
blocks as they are elsewhere.

Below `sealed to` entries are in blocks (cold_part.py), above it in chunks; a topic without blocks costs one look at a
flag. Whoever reads what is in blocks, or removes it, may have to fetch it first: ColdMiss says so, before anything is
changed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rlite_pubsub.keyspace.records import Record
from rlite_pubsub.keyspace.topic.cold_part import ColdPart
from rlite_pubsub.storage.cold import cold_blocks
from rlite_pubsub.storage.topics import chunks, entry_ids, entry_lookup, trim_marks
from rlite_pubsub.storage.topics.chunks import Part
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.storage.environment import Txn


class SealedTopic(Record):
    """What a topic (topic.py) knows that matters to its blocks."""

    __slots__ = (
        "_cold",
        "_keyspace",
        "_size_bytes",
        "_trimmed",
        "_trimmed_id",
        "has_cold",
        "length",
        "number",
    )

    def __init__(self, keyspace: Keyspace, database: int, name: bytes, place: bytes) -> None:
        super().__init__(database, name, place)
        self._keyspace = keyspace
        self.number = 0
        self.length = 0
        self._size_bytes = 0
        self._trimmed = 0
        self._trimmed_id: Id = entry_ids.MIN
        self.has_cold = False  # it has blocks in the cold store
        self._cold: ColdPart | None = None

    @property
    def keyspace(self) -> Keyspace:
        """Whose it is."""
        return self._keyspace

    def settle(self) -> Txn:
        """Bring what this turn appended and trimmed into the open transaction, which is returned."""
        raise NotImplementedError

    @property
    def trimmed_id_stored(self) -> Id:
        """The last entry that was trimmed, as far as the store has it."""
        return self._trimmed_id

    def _note_trimmed(self, txn: Txn, count: int, last: Id) -> None:
        self._trimmed_id = last
        trim_marks.note(txn, self.number, last, self._trimmed, self._trimmed + count)
        self._trimmed += count

    @property
    def cold(self) -> ColdPart:
        """What of it is in the cold store. To be asked where it has such a part, or is to have one."""
        cold = self._cold
        if cold is None:
            state = cold_blocks.state(self._keyspace.reading(), self.number)
            cold = self._cold = ColdPart(self, state)
        return cold

    def see_cold(self, txn: Txn) -> None:
        """Have the cold part that this transaction sees, where that is not the turn's."""
        if self.has_cold:
            self._cold = ColdPart(self, cold_blocks.state(txn, self.number))

    @property
    def cold_live(self) -> int:
        """How many entries are read from blocks."""
        return self.cold.state.live if self.has_cold else 0

    @property
    def _hot_length(self) -> int:
        return self.length - self.cold_live

    # -- reading across the seam

    def read(
        self, txn: Txn, start: Id = entry_ids.MIN, end: Id = entry_ids.MAX, limit: int | None = None
    ) -> Iterator[Part]:
        """The entries from `start` to `end`, as this transaction sees them: chunks.between."""
        if self.has_cold and start <= self.cold.state.sealed_to:
            return self._between_all(txn, start, end, limit)
        return chunks.between(txn, self.number, start, end, limit)

    def _between_all(self, txn: Txn, start: Id, end: Id, limit: int | None) -> Iterator[Part]:
        for part in self.cold.between(txn, start, end, limit):
            yield part
            if limit is not None:
                limit -= part.count
        behind = entry_ids.after(self.cold.state.sealed_to)
        if limit != 0 and behind is not None:
            yield from chunks.between(txn, self.number, behind, end, limit)

    def _backward_all(self, txn: Txn, start: Id, end: Id, limit: int | None) -> Iterator[Part]:
        for part in chunks.between_backward(txn, self.number, start, end, limit):
            yield part
            if limit is not None:
                limit -= part.count
        if limit != 0:
            yield from self.cold.backward(txn, start, end, limit)

    def read_all(self, txn: Txn, ids: Sequence[bytes]) -> list[bytes | None]:
        """The entries of these ids, as this transaction sees them: entry_lookup.entries."""
        if not self.has_cold or not ids or entry_ids.unpack(ids[0]) > self.cold.state.sealed_to:
            return entry_lookup.entries(txn, self.number, ids)
        place = bisect_right(ids, entry_ids.pack(self.cold.state.sealed_to))
        return self.cold.entries(txn, ids[:place]) + entry_lookup.entries(txn, self.number, ids[place:])

    # -- removing. The topic comes from `Keyspace.for_change`.

    def _bury(self, txn: Txn, ids: Sequence[bytes]) -> list[Id]:
        """Delete those of these ids that are in the cold part. `length` is the caller's to put right."""
        found = self.cold.find(txn, ids[: bisect_right(ids, entry_ids.pack(self.cold.state.sealed_to))])
        if found:
            self.cold.delete(txn, found)
            self._drop_cold_part(txn)
            self._size_bytes -= sum(map(len, found.values()))
        return list(map(entry_ids.unpack, found))

    def trim_first_block(self) -> int:
        """Remove the oldest block of the cold part; how many entries it had."""
        self._keyspace.writing()
        return self._note_gone(*self.cold.drop_first(self.settle()))

    def _trim_cold(self, count: int) -> int:
        """Remove the oldest `count` entries, as far as they are in the cold part; how many that were."""
        return self._note_gone(*self.cold.trim(self.settle(), count))

    def _note_gone(self, removed: int, removed_bytes: int, last: Id) -> int:
        txn = self._keyspace.writing()
        if removed:
            self.length -= removed
            self._size_bytes -= removed_bytes
            self._note_trimmed(txn, removed, last)
            self._keyspace.changed(self)
        self._drop_cold_part(txn)
        return removed

    def _drop_cold_part(self, txn: Txn) -> None:
        """Without a block it is none."""
        if self.cold.first_block is None:
            self.cold.write(txn)
            self.has_cold, self._cold = False, None
            self._keyspace.keep(self)
