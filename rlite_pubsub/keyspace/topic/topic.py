"""A topic: an ordered log of entries in chunks (storage/topics/chunks.py), appended to in memory during a turn.

What a turn appends, and what it trims, is gathered here and done in the store at its end, or when somebody reads the
topic before. Ids grow: `append` takes one that is above `last_id`. Who may append, and under which id, is the commands'
concern.

Its oldest entries may be in the cold store: sealed_topic.py.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING

from rlite_pubsub.keyspace.topic.nodes import DEFAULT_LIMITS, Limits, Nodes
from rlite_pubsub.keyspace.topic.sealed_topic import SealedTopic
from rlite_pubsub.protocol.encoder import bulk_array
from rlite_pubsub.storage.cold import cold_blocks
from rlite_pubsub.storage.keys import garbage
from rlite_pubsub.storage.keys.key_records import TOPIC, KeyRecord
from rlite_pubsub.storage.topics import chunks, deadlines, deferred, entry_ids, trim_marks
from rlite_pubsub.storage.topics.chunks import Chunk, Part
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.groups.group import Group
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.topics.topic_settings import TopicSettings

_BODY = Struct(">QQQQQQQQIIQQQQQ")
"""What its record has: number, length, bytes of entries, last id, highest deleted id, entries ever added, groups,
highest group, entries trimmed, last trimmed id, limits of a node; behind it, what nodes.py knows."""
_PAUSED, _QUEUE, _COLD = 1, 2, 4
"""Flags."""
_WEIGHT = 6000
"""About how many bytes of memory a topic takes: it holds on to its last page."""
_SMALL_CHUNKS = 16
"""A topic of at most so many chunks is removed at once, without garbage."""


def encode_entry(entry_id: Id, fields: Sequence[bytes]) -> bytes:
    """An entry as XRANGE sends it: an array of its id and the array of its fields and values."""
    text = b"%d-%d" % entry_id
    return b"*2\r\n$%d\r\n%b\r\n%b" % (len(text), text, bulk_array(tuple(fields)))


class Topic(SealedTopic):
    """One topic."""

    __slots__ = (
        "_groups",
        "_is_tail_large",
        "_new_entries",
        "_new_ids",
        "_nodes",
        "_packed_nodes",
        "_tail",
        "_to_trim",
        "entries_added",
        "group_count",
        "is_paused",
        "is_queue",
        "last_group",
        "last_id",
        "max_deleted_id",
        "node_limits",
        "settings",
        "settings_are_known",
    )

    type = TOPIC

    def __init__(self, keyspace: Keyspace, database: int, name: bytes, place: bytes) -> None:
        super().__init__(keyspace, database, name, place)
        self.last_id: Id = entry_ids.MIN  # the highest that was ever given
        self.max_deleted_id: Id = entry_ids.MIN
        self.entries_added = 0  # ever
        self.group_count = 0
        self.last_group = 0  # the highest number that a group was given
        self.is_paused = False  # its groups are given nothing new
        self.is_queue = False  # it was made as one: QUEUE.LIST has it
        self.settings: TopicSettings | None = None  # what retention knows of it (retention.py)
        self.settings_are_known = False
        self.node_limits = DEFAULT_LIMITS  # of the node that the next entry goes into, if it has room
        self._nodes: Nodes | None = None  # what approximate trims have to know
        self._packed_nodes = b""  # as the store has them
        self._new_ids: list[bytes] = []  # appended in this turn, not yet in chunks
        self._new_entries: list[bytes] = []
        self._to_trim = 0  # so many of the oldest entries are still to be removed from the store
        self._tail: Chunk | None = None  # the last chunk, if it is known and no larger than a page
        self._is_tail_large = False  # it is larger, and so nothing can be put into it
        self._groups: dict[bytes, Group] = {}

    # -- in the store

    def loaded(self, stored: KeyRecord) -> None:
        super().loaded(stored)
        (
            self.number,
            self.length,
            self._size_bytes,
            last_ms,
            last_seq,
            deleted_ms,
            deleted_seq,
            self.entries_added,
            self.group_count,
            self.last_group,
            self._trimmed,
            trimmed_ms,
            trimmed_seq,
            node_entries,
            node_bytes,
        ) = _BODY.unpack_from(stored.body)
        self.last_id = last_ms, last_seq
        self.max_deleted_id = deleted_ms, deleted_seq
        self._trimmed_id = trimmed_ms, trimmed_seq
        self.node_limits = Limits((node_entries, node_bytes))
        self._packed_nodes = stored.body[_BODY.size :]
        self.is_paused, self.is_queue = bool(stored.flags & _PAUSED), bool(stored.flags & _QUEUE)
        self.has_cold = bool(stored.flags & _COLD)

    @property
    def flags(self) -> int:
        return _PAUSED * self.is_paused + _QUEUE * self.is_queue + _COLD * self.has_cold

    def body(self, txn: Txn) -> bytes:
        if self._new_ids or self._to_trim:
            self._write(txn)
        if self._cold is not None:
            self._cold.write(txn)
        for group in self._groups.values():
            group.settle(txn)
        retention = self._keyspace.retention
        if retention is not None:
            retention.schedule(txn, self)
        if not self.is_stored:  # it is new, or has a new name
            deadlines.move(txn, self.number, self.place)
        own = _BODY.pack(
            self.number,
            self.length,
            self._size_bytes,
            *self.last_id,
            *self.max_deleted_id,
            self.entries_added,
            self.group_count,
            self.last_group,
            self._trimmed,
            *self._trimmed_id,
            *self.node_limits,
        )
        nodes = self._nodes
        return own + (self._packed_nodes if nodes is None else nodes.pack())

    def _write(self, txn: Txn) -> None:
        count, self._to_trim = self._to_trim, 0
        ids, entries = self._new_ids, self._new_entries
        self._new_ids, self._new_entries = [], []
        if count:
            there = self._hot_length + count - len(ids)  # in the store
            removed = chunks.trim(txn, self.number, min(count, there))
            self._size_bytes -= removed.size_bytes
            last = removed.last
            if count >= there:
                self._tail, self._is_tail_large = None, False
                skipped = count - there
                if skipped:
                    last = ids[skipped - 1]
                    self._size_bytes -= sum(map(len, entries[:skipped]))
                    ids, entries = ids[skipped:], entries[skipped:]
            elif self._tail is not None and self._tail.first <= last:
                self._tail = None
            self._note_trimmed(txn, count, entry_ids.unpack(last))
        if ids:
            tail = self._tail
            if tail is None and not self._is_tail_large and self._hot_length > len(ids):
                tail = chunks.last(txn, self.number)
            tail = chunks.append(txn, self.number, tail, ids, entries)
            self._is_tail_large = len(tail) > chunks.CAPACITY
            self._tail = None if self._is_tail_large else tail

    def settle(self) -> Txn:
        """Bring what this turn appended and trimmed into the open transaction, which is returned."""
        if self._new_ids or self._to_trim:
            self._write(self._keyspace.writing())
        return self._keyspace.reading()

    def drop(self, txn: Txn) -> None:
        """It is removed: its entries and groups are garbage."""
        self._new_ids, self._new_entries, self._to_trim = [], [], 0
        garbage.add(txn, garbage.TOPIC, self.number)
        is_small = self.length <= _SMALL_CHUNKS and not self.group_count and not self.has_cold
        if is_small and deadlines.topic_row(txn, self.number) is None:
            garbage.sweep_topic(txn, self.number)

    def copy_from(self, other: Topic) -> None:
        """Take over all that another topic holds, its groups included; this one is new."""
        txn = self._keyspace.writing()
        other.settle()
        chunks.copy(txn, other.number, self.number)
        if other.has_cold:
            cold_blocks.put_state(txn, other.number, other.cold.state)
            cold_blocks.copy(txn, other.number, self.number)
            self.has_cold = True
        self.length, self._size_bytes = other.length, other.size_bytes
        self.last_id, self.max_deleted_id = other.last_id, other.max_deleted_id
        self.entries_added = other.entries_added
        self._trimmed, self._trimmed_id = other.trimmed, other.trimmed_id
        self.node_limits, self._packed_nodes = other.node_limits, other.nodes.pack()
        if other.group_count:
            from rlite_pubsub.groups.group import copy_groups

            copy_groups(other, self, txn)
        deferred.copy(txn, other.number, self.number)
        deadlines.copy(txn, other.number, self.number, self.place)
        self.is_paused, self.is_queue = other.is_paused, other.is_queue
        if self._keyspace.retention is not None:
            self._keyspace.retention.copy(other, self)
        self._keyspace.changed(self)

    # -- appending

    def append(self, entry_id: Id, entry: bytes) -> None:
        """Put an entry (`encode_entry`) behind all others. The topic comes from `Keyspace.for_change`."""
        self._new_ids.append(entry_ids.pack(entry_id))
        self._new_entries.append(entry)
        self.last_id = entry_id
        self.length += 1
        self.entries_added += 1
        self._size_bytes += len(entry)
        keyspace = self._keyspace  # as `signal`, with a call less for every entry
        keyspace.changed(self)
        keyspace.signal(self.database, self.name)

    def append_all(self, first: Id, entries: list[bytes]) -> None:
        """As `append`, of entries whose ids follow each other within one millisecond, from `first` on."""
        ms, seq = first
        count = len(entries)
        self._new_ids += entry_ids.pack_run(first, count)
        self._new_entries += entries
        self.last_id = ms, seq + count - 1
        self.length += count
        self.entries_added += count
        self._size_bytes += sum(map(len, entries))
        self.signal()

    def signal(self) -> None:
        """It has changed: whoever is blocked on it should look."""
        keyspace = self._keyspace
        keyspace.changed(self)
        keyspace.signal(self.database, self.name)

    def wake(self) -> None:
        """As `signal`, where it is no change in the eyes of WATCH: a group has something to give, or may again."""
        keyspace = self._keyspace
        keyspace.keep(self)
        keyspace.signal(self.database, self.name)

    # -- reading

    def between(self, start: Id = entry_ids.MIN, end: Id = entry_ids.MAX, limit: int | None = None) -> Iterator[Part]:
        """At most `limit` entries from `start` to `end`, both included, oldest first. Change nothing meanwhile."""
        if start > self.last_id or not self.length:
            return iter(())
        return self.read(self.settle(), start, end, limit)

    def backward(self, start: Id = entry_ids.MIN, end: Id = entry_ids.MAX, limit: int | None = None) -> Iterator[Part]:
        """The newest ones in the range, in parts from new to old; each part is in order."""
        if not self.length:
            return iter(())
        txn = self.settle()
        if self.has_cold and start <= self.cold.state.sealed_to:
            return self._backward_all(txn, start, end, limit)
        return chunks.between_backward(txn, self.number, start, end, limit)

    def entries(self, ids: Sequence[bytes]) -> list[bytes | None]:
        """The entries of these ids (packed, in order), as they are sent; None for each that there is none of."""
        return self.read_all(self.settle(), ids)

    def has(self, entry_id: Id) -> bool:
        """Whether there is an entry of this id."""
        return next(self.between(entry_id, entry_id), None) is not None

    def entry(self, entry_id: Id) -> bytes | None:
        """The entry of this id, as XRANGE sends it."""
        part = next(self.between(entry_id, entry_id), None)
        return None if part is None else part.wire

    @property
    def size_bytes(self) -> int:
        """Of the entries, as they are sent."""
        if self._to_trim:
            self.settle()
        return self._size_bytes

    @property
    def trimmed(self) -> int:
        """How many entries were removed from the beginning, ever: whoever was before them has lost them."""
        if self._to_trim:
            self.settle()
        return self._trimmed

    @property
    def trimmed_id(self) -> Id:
        """The last of these."""
        if self._to_trim:
            self.settle()
        return self._trimmed_id

    @property
    def first_id(self) -> Id:
        """The lowest id there is; 0-0 without entries."""
        if self.cold_live:
            return self.cold.first_id(self.settle())
        part = next(self.between(limit=1), None)
        return entry_ids.MIN if part is None else entry_ids.unpack(part.ids)

    # -- removing. The topic comes from `Keyspace.for_change`.

    def delete(self, ids: Iterable[Id]) -> int:
        """Remove these entries; how many there were."""
        txn = self._keyspace.writing()
        self.settle()
        wanted = sorted(set(map(entry_ids.pack, ids)))
        buried = self._bury(txn, wanted) if self.has_cold else []
        found = list(chunks.find(txn, self.number, wanted))
        if not found and not buried:
            return 0
        deleted = [entry_ids.unpack(chunk.id(place)) for chunk, places in found for place in places]
        if deleted:
            self.nodes.note_deleted(self.node_limits, deleted)
            self._is_tail_large = False
        for chunk, places in found:
            left = chunks.remove(txn, chunk, places)
            self._size_bytes -= len(chunk.blob) - (0 if left is None else len(left.blob))
            if self._tail is not None and self._tail.key == chunk.key:
                self._tail = left
        deleted = buried + deleted
        self.length -= len(deleted)
        self.max_deleted_id = max(self.max_deleted_id, deleted[-1])
        self._keyspace.changed(self)
        return len(deleted)

    def trim(self, count: int, below: Id | None = None) -> int:
        """Remove the `count` oldest entries; how many there were. `below`: because their ids are below it."""
        count = min(count, self.length)
        if count <= 0:
            return 0
        self._keyspace.writing()
        removed = self._trim_cold(count) if self.has_cold else 0
        if removed == count:
            return count
        return removed + self._trim_hot(count - removed, below)

    def _trim_hot(self, count: int, below: Id | None) -> int:
        is_followed = self.nodes.note_trimmed(self.node_limits, count, below)
        self._trim_later(count)
        if not is_followed:
            self.settle()
            self.nodes.forget(self._trimmed_id)
        return count

    def retain_less(self, count: int) -> None:
        """Retention removes the `count` oldest entries. Redis has no such thing: its nodes begin anew behind them."""
        self._keyspace.writing()
        count -= self._trim_cold(count) if self.has_cold else 0
        if count:
            self._trim_later(count)
            self.settle()
            self.nodes.forget(self._trimmed_id)

    def trim_first_node(self) -> None:
        """Remove what Redis has in its first node."""
        count = self.nodes.known[0].live
        self._keyspace.writing()
        self.nodes.pop_first()
        self._trim_later(count)

    def _trim_later(self, count: int) -> None:
        self._to_trim += count
        self.length -= count
        self._keyspace.changed(self)

    def begin_anew(self, number: int) -> None:
        """Go on without entries under another number, to which all else has been copied: see emptying.py."""
        self._trimmed_id = self.last_id if self.has_cold else entry_ids.unpack(next(self.backward(limit=1)).ids)
        self.number = number
        trim_marks.note(self.settle(), number, self._trimmed_id, self._trimmed, self._trimmed + self.length)
        self._trimmed += self.length
        self.length = self._size_bytes = 0
        self._tail, self._is_tail_large, self._nodes, self._packed_nodes = None, False, None, b""
        self.has_cold, self._cold = False, None
        self._groups.clear()
        self.settings_are_known = False
        self._keyspace.changed(self)

    @property
    def nodes(self) -> Nodes:
        """How Redis would have laid out the oldest entries."""
        nodes = self._nodes
        if nodes is None:
            self.settle()
            nodes = self._nodes = Nodes(self._after, self._packed_nodes)
        return nodes

    def limit_nodes(self, limits: Limits) -> None:
        """How much a node takes from now on."""
        if self.length:
            self.nodes.learn_all(self.node_limits)
        self.node_limits = limits

    def _after(self, entry_id: Id) -> Iterator[tuple[bytes, bytes]]:
        """(packed id, entry) of what is behind an id, settled or not."""
        packed, ids = entry_ids.pack(entry_id), self._new_ids
        start = entry_ids.after(entry_id)
        if start is not None and (not ids or packed < ids[0]):
            for part in chunks.between(self._keyspace.reading(), self.number, start, entry_ids.MAX):
                chunk = part.chunk
                yield from zip(map(chunk.id, range(part.start, part.stop)), chunk.entries(part.start), strict=True)
        place = bisect_right(ids, packed)
        yield from zip(ids[place:], self._new_entries[place:], strict=True)

    # -- the cold part

    @property
    def lowest_last_id(self) -> Id:
        """What `last_id` can be set back to: the highest id there is, or that a block ends with, deleted or not."""
        if not self.length:
            return entry_ids.MIN
        txn = self.settle()
        block = cold_blocks.last(txn, self.number) if self.has_cold else None
        part = next(chunks.between_backward(txn, self.number, entry_ids.MIN, entry_ids.MAX, 1), None)
        top = entry_ids.MIN if part is None else entry_ids.unpack(part.ids)
        return top if block is None else max(top, block.last)

    def set_last_id(self, last_id: Id) -> None:
        """Ids go on from here. The topic comes from `Keyspace.for_change`. Those who watch it are not told, as Redis
        does not."""
        txn = self._keyspace.writing()
        self.settle()
        while not self.length and self.has_cold:  # a block that was being sealed, and of which nothing is left
            self.trim_first_block()
        if last_id < self._trimmed_id:
            self._trimmed_id = last_id
            trim_marks.forget_behind(txn, self.number, last_id)
        self.last_id = last_id
        self.nodes.step_back(last_id)
        self._keyspace.keep(self)

    def sealed(self, sealed_to: Id) -> None:
        """Entries up to this one are read from blocks from now on: sealing.py has taken them out of the store."""
        self._tail, self._is_tail_large = None, False
        self.nodes.forget(sealed_to)
        self._keyspace.keep(self)
        txn = self._keyspace.writing()
        self.cold.drop_empty(txn)
        self._drop_cold_part(txn)

    # -- groups

    def group(self, name: bytes) -> Group | None:
        """The group of this name."""
        group = self._groups.get(name)
        if group is None and self.group_count:
            from rlite_pubsub.groups.group import load

            group = load(self, name, self._keyspace.reading())
            if group is not None:
                self._groups[name] = group
        return group

    def know_group(self, name: bytes, group: Group | None) -> None:
        """What stands under this name from now on."""
        if group is None:
            self._groups.pop(name, None)
        else:
            self._groups[name] = group

    @property
    def weight(self) -> int:
        return _WEIGHT
