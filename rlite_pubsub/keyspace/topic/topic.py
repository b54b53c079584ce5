"""A topic: an ordered log of entries, appended to in memory during a turn (hot_log.py).

Ids grow: `append` takes one that is above `last_id` (append.py has the next one). Who may append is the commands'
concern. Its oldest entries may be in the cold store (cold_part.py): to read or remove these, one may have to
fetch them first. ColdMiss says so, before anything is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final

from rlite_pubsub.keyspace.effects import WHOLE
from rlite_pubsub.keyspace.records import Record
from rlite_pubsub.keyspace.topic.cold_part import ColdPart
from rlite_pubsub.keyspace.topic.hot_log import HotLog
from rlite_pubsub.keyspace.topic.nodes import DEFAULT_LIMITS, NodeLimits, Nodes
from rlite_pubsub.storage.cold import cold_blocks
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.groups import groups
from rlite_pubsub.storage.groups.groups import GroupRecord
from rlite_pubsub.storage.keys import garbage
from rlite_pubsub.storage.keys.key_records import TOPIC, KeyRecord, new_topic, pack
from rlite_pubsub.storage.topics import (
    chunks,
    deadlines,
    deferred,
    entry_ids,
    entry_lookup,
    publications,
    segments,
    trim_marks,
)
from rlite_pubsub.storage.topics.chunks import ChunkSlice
from rlite_pubsub.storage.topics.entry_ids import Id, pack_parts

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.topic.home import Attached, Home
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.topics.segments import Segment
    from rlite_pubsub.storage.topics.topic_settings import TopicSettings

_BODY: Final = Struct(">QQQQQQQQIIQQQQQ")
"""What its record has: number, length, bytes of entries, last id, highest deleted id, entries ever added, groups,
highest group, entries trimmed, last trimmed id, limits of a node; behind it, what nodes.py knows."""
_pack_body: Final = _BODY.pack
_PAUSED: Final = 1
_QUEUE: Final = 2
COLD_FLAG: Final = 4
_APPEND_RULES: Final = 8
SEGMENTS_FLAG: Final = 16
"""Flags."""
_WEIGHT: Final = 6000
"""About how many bytes of memory a topic takes: it holds on to its last page."""
_SMALL_CHUNKS: Final = 16
"""A topic of at most this many chunks is removed at once, without garbage."""


class Topic(Record):
    """One topic."""

    __slots__ = (
        "_cold",
        "_hot",
        "_keyspace",
        "_nodes",
        "_packed_nodes",
        "_size_bytes",
        "_trimmed",
        "_trimmed_id",
        "attached",
        "_entries_packed",
        "entries_added",
        "group_count",
        "has_append_rules",
        "has_cold",
        "has_segments",
        "is_paused",
        "is_queue",
        "last_group",
        "last_id",
        "length",
        "max_deleted_id",
        "node_limits",
        "number",
        "settings",
        "settings_are_known",
    )

    type = TOPIC

    def __init__(self, keyspace: Home, database: int, name: bytes, place: bytes) -> None:
        super().__init__(database, name, place)
        self._keyspace = keyspace
        self.number = 0
        self.length = 0
        self._size_bytes = 0
        self._trimmed = 0
        self._trimmed_id: Id = entry_ids.MIN
        self._hot = HotLog()
        self.has_cold = False  # it has blocks in the cold store
        self._cold: ColdPart | None = None  # what of it is there, if it is known
        self.last_id: Id = entry_ids.MIN  # the highest that was ever given
        self.max_deleted_id: Id = entry_ids.MIN
        self.entries_added = 0  # ever
        self._entries_packed = 0  # of these, when it was written last
        self.has_append_rules = False  # its settings say something of what may be appended (append_rules.py)
        self.group_count = 0
        self.last_group = 0  # the highest number that a group was given
        self.is_paused = False  # its groups are given nothing new
        self.is_queue = False  # it was made as one: QUEUE.LIST has it
        self.has_segments = False  # entries that were its own are under other keys (groups/chain.py)
        self.settings: TopicSettings | None = None  # what retention knows it (retention.py)
        self.settings_are_known = False
        self.node_limits = DEFAULT_LIMITS  # of the node that the next entry goes into, if it has room
        self._nodes: Nodes | None = None  # what approximate trims have to know
        self._packed_nodes = b""  # as the store has them
        self.attached: Attached | None = None

    @property
    def keyspace(self) -> Home:
        """The part of the keyspace that it is in."""
        return self._keyspace

    # -- in the store

    def begin(self, txn: Txn) -> None:
        """It is new, and has a number of its own."""
        self.number = new_topic(txn)

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
        limits = DEFAULT_LIMITS
        if node_entries != limits.entries or node_bytes != limits.size_bytes:
            limits = NodeLimits(node_entries, node_bytes)
        self.node_limits = limits
        self._packed_nodes = stored.body[_BODY.size :]
        self.is_paused, self.is_queue = bool(stored.flags & _PAUSED), bool(stored.flags & _QUEUE)
        self.has_cold = bool(stored.flags & COLD_FLAG)
        self.has_append_rules = bool(stored.flags & _APPEND_RULES)
        self.has_segments = bool(stored.flags & SEGMENTS_FLAG)
        self._entries_packed = self.entries_added

    def packed(self, txn: Txn, modified: int) -> bytes:
        self.modified = modified
        hot = self._hot
        if hot.ids or hot.to_trim:
            gone = hot.write(txn, self.number, self.length - self.cold_live if self.has_cold else self.length)
            if gone is not None:
                self._note_trimmed(txn, *gone)
        if self._cold is not None:
            self._cold.write(txn)
        if self.attached is not None:
            self.attached.settle(txn)
        retention = self._keyspace.retention
        if retention is not None and not (self.settings is None and self.settings_are_known and self.is_stored):
            retention.schedule(txn, self)
        if self.has_append_rules and retention is not None:
            retention.count(self, self._entries_packed)
        self._entries_packed = self.entries_added
        if not self.is_stored:  # it is new, or has a new name
            deadlines.move(txn, self.number, self.place)
        self.is_stored = True
        last_id, deleted_id, trimmed_id, limits = self.last_id, self.max_deleted_id, self._trimmed_id, self.node_limits
        own = _pack_body(
            self.number,
            self.length,
            self._size_bytes,
            last_id[0],
            last_id[1],
            deleted_id[0],
            deleted_id[1],
            self.entries_added,
            self.group_count,
            self.last_group,
            self._trimmed,
            trimmed_id[0],
            trimmed_id[1],
            limits[0],
            limits[1],
        )
        nodes = self._packed_nodes if self._nodes is None else self._nodes.pack()
        flags = _PAUSED * self.is_paused + _QUEUE * self.is_queue + COLD_FLAG * self.has_cold
        flags += _APPEND_RULES * self.has_append_rules + SEGMENTS_FLAG * self.has_segments
        return pack(TOPIC, flags, self.expires_ms, modified, self.name, own + nodes)

    def _note_trimmed(self, txn: Txn, count: int, size_bytes: int, last: Id) -> None:
        self._size_bytes -= size_bytes
        self._trimmed_id = last
        trim_marks.note(txn, self.number, last, self._trimmed, self._trimmed + count)
        self._trimmed += count

    def settle(self) -> Txn:
        """Bring what this turn appended and trimmed into the open transaction, which is returned."""
        hot = self._hot
        if hot.ids or hot.to_trim:
            txn = self._keyspace.writing()
            gone = hot.write(txn, self.number, self.length - self.cold_live)
            if gone is not None:
                self._note_trimmed(txn, *gone)
        return self._keyspace.reading()

    def drop(self, txn: Txn) -> None:
        """Make its entries and groups garbage: it is removed. Its closed segments are, too, if it was this member's."""
        self._hot.drop()
        if self.has_segments and self._keyspace.is_ours(self.name):
            segments.forsake_all(txn, self.number)
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
            if other.attached is not None:
                other.attached.settle(txn)
            groups.copy(txn, other.number, self.number)
            self.group_count, self.last_group = other.group_count, other.last_group
        deferred.copy(txn, other.number, self.number)
        publications.copy(txn, other.number, self.number)
        deadlines.copy(txn, other.number, self.number, self.place)
        self.is_paused, self.is_queue = other.is_paused, other.is_queue
        if self._keyspace.retention is not None:
            self._keyspace.retention.copy(other, self)
        self._keyspace.changed(self)

    # -- appending

    def append(self, entry_id: Id, entry: bytes) -> None:
        """Put an entry (`encode_entry`) behind all others. The topic comes from `Keyspace.for_change`."""
        hot = self._hot
        hot.ids.append(pack_parts(entry_id[0], entry_id[1]))
        hot.entries.append(entry)
        self.last_id = entry_id
        self.length += 1
        self.entries_added += 1
        self._size_bytes += len(entry)
        self._keyspace.appended(self, 1)

    def append_all(self, first: Id, entries: list[bytes]) -> None:
        """As `append`, of entries whose ids follow each other within one millisecond, from `first` on."""
        ms, seq = first
        count = len(entries)
        self._hot.ids += entry_ids.pack_run(first, count)
        self._hot.entries += entries
        self.last_id = ms, seq + count - 1
        self.length += count
        self.entries_added += count
        size_bytes = self._size_bytes
        for entry in entries:
            size_bytes += len(entry)
        self._size_bytes = size_bytes
        self._keyspace.appended(self, count)

    def append_these(self, ids: list[Id], entries: list[bytes]) -> None:
        """As `append`, of entries with these ids, which are in order; there is one at least."""
        hot = self._hot
        size_bytes = self._size_bytes
        for entry_id in ids:
            hot.ids.append(pack_parts(*entry_id))
        for entry in entries:
            size_bytes += len(entry)
        hot.entries += entries
        self.last_id = ids[-1]
        self.length += len(entries)
        self.entries_added += len(entries)
        self._size_bytes = size_bytes
        self._keyspace.appended(self, len(entries))

    def signal(self) -> None:
        """Wake the clients that are blocked on it: it has changed."""
        self._keyspace.appended(self)

    def wake(self) -> None:
        """As `signal`, where it is no change in the eyes of WATCH: a group has something to give, or may again."""
        keyspace = self._keyspace
        keyspace.keep(self)
        keyspace.news.signal(self.database, self.name)

    # -- reading

    def between(
        self, start: Id = entry_ids.MIN, end: Id = entry_ids.MAX, limit: int | None = None
    ) -> Iterator[ChunkSlice]:
        """Return at most `limit` entries from `start` to `end`, inclusive, oldest first. Change nothing meanwhile."""
        if start > self.last_id or not self.length:
            return iter(())
        return self.read(self.settle(), start, end, limit)

    def backward(
        self, start: Id = entry_ids.MIN, end: Id = entry_ids.MAX, limit: int | None = None
    ) -> Iterator[ChunkSlice]:
        """Return the newest ones in the range, in parts from new to old; each part is in order."""
        if not self.length:
            return iter(())
        txn = self.settle()
        if self.has_cold and start <= self.cold.state.sealed_to:
            return self.cold.reader.across_backward(txn, start, end, limit)
        return chunks.between_backward(txn, self.number, start, end, limit)

    def read(
        self, txn: Txn, start: Id = entry_ids.MIN, end: Id = entry_ids.MAX, limit: int | None = None
    ) -> Iterator[ChunkSlice]:
        """Return the entries from `start` to `end`, as this transaction sees them: chunks.between."""
        if self.has_cold and start <= self.cold.state.sealed_to:
            return self.cold.reader.across(txn, start, end, limit)
        return chunks.between(txn, self.number, start, end, limit)

    def entries(self, ids: Sequence[bytes]) -> list[bytes | None]:
        """Return the entries of these ids (packed, in order), as they are sent; None for each that there is none of."""
        return self.read_all(self.settle(), ids)

    def read_all(self, txn: Txn, ids: Sequence[bytes]) -> list[bytes | None]:
        """Return the entries of these ids, as this transaction sees them: entry_lookup.entries."""
        return self.cold.reader.entries(txn, ids) if self.has_cold else entry_lookup.entries(txn, self.number, ids)

    def has(self, entry_id: Id) -> bool:
        """Return whether there is an entry of this id."""
        return next(self.between(entry_id, entry_id), None) is not None

    def entry(self, entry_id: Id) -> bytes | None:
        """Return the entry of this id, as XRANGE sends it."""
        part = next(self.between(entry_id, entry_id), None)
        return None if part is None else part.wire

    @property
    def size_bytes(self) -> int:
        """The size of the entries as they are sent."""
        if self._hot.to_trim:
            self.settle()
        return self._size_bytes

    @property
    def trimmed(self) -> int:
        """How many entries were ever removed from the beginning: a reader that was before them has lost them."""
        if self._hot.to_trim:
            self.settle()
        return self._trimmed

    @property
    def trimmed_id(self) -> Id:
        """The last of these."""
        if self._hot.to_trim:
            self.settle()
        return self._trimmed_id

    @property
    def first_id(self) -> Id:
        """The lowest id there is; 0-0 without entries."""
        if self.cold_live:
            return self.cold.reader.first_id(self.settle())
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
            self._size_bytes -= self._hot.remove(txn, found)
        deleted = buried + deleted
        self.length -= len(deleted)
        self.max_deleted_id = max(self.max_deleted_id, deleted[-1])
        self._keyspace.changed(self)
        effects = self._keyspace.effects
        if effects is not None:
            effects.deleted(self, deleted)
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
        """Retention removes the `count` oldest entries. Redis has no such thing: new nodes begin after them."""
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
        self._hot.to_trim += count
        self.length -= count
        self._keyspace.changed(self)
        self._tell_trimmed()

    def _tell_trimmed(self) -> None:
        effects = self._keyspace.effects
        if effects is not None:
            effects.trimmed(self)

    def begin_anew(self, number: int, up_to: Id | None = None) -> None:
        """Go on without entries under another number, to which all else has been copied: see groups/emptying.py and
        groups/chain.py. `up_to`: none of them was above this id, and there may be some again."""
        if up_to is not None:
            self._trimmed_id = up_to
        elif self.has_cold:
            self._trimmed_id = self.last_id
        elif self.length:
            self._trimmed_id = entry_ids.unpack(next(self.backward(limit=1)).ids)
        self.number = number
        trim_marks.note(self.settle(), number, self._trimmed_id, self._trimmed, self._trimmed + self.length)
        self._trimmed += self.length
        self.length = self._size_bytes = 0
        self._hot.forget_tail()
        self._nodes, self._packed_nodes = None, b""
        self.has_cold, self._cold = False, None
        self.attached = None
        self.settings_are_known = False
        self._keyspace.changed(self)
        effects = self._keyspace.effects
        if effects is not None:
            effects.changed(self, WHOLE)

    @property
    def nodes(self) -> Nodes:
        """The nodes in which Redis would have laid out the oldest entries."""
        nodes = self._nodes
        if nodes is None:
            self.settle()
            nodes = self._nodes = Nodes(self._after, self._packed_nodes)
        return nodes

    def limit_nodes(self, limits: NodeLimits) -> None:
        """Set the size of nodes from now on."""
        if self.length:
            self.nodes.learn_all(self.node_limits)
        self.node_limits = limits

    def _after(self, entry_id: Id) -> Iterator[tuple[bytes, bytes]]:
        return self._hot.after(self._keyspace.reading(), self.number, entry_id)

    def lose_segment(self, segment: Segment) -> None:
        """Forget a closed segment, and have its key removed. The topic comes from `Keyspace.for_change`."""
        txn = self._keyspace.writing()
        segments.remove(txn, self.number, segment)
        self.has_segments = segments.oldest(txn, self.number) is not None
        self._keyspace.changed(self)
        failpoint("segment-lost")

    # -- the cold part

    @property
    def trimmed_id_stored(self) -> Id:
        """The last entry known to have been trimmed."""
        return self._trimmed_id

    @property
    def cold(self) -> ColdPart:
        """Its cold part. Ask only if it has one, or is about to get one."""
        cold = self._cold
        if cold is None:
            state = cold_blocks.state(self._keyspace.reading(), self.number)
            cold = self._cold = ColdPart(self, state)
        return cold

    def see_cold(self, txn: Txn) -> None:
        """Have the cold part that this transaction sees, where that is not the turn's."""
        if self.has_cold:
            self._cold = ColdPart(self, cold_blocks.state(txn, self.number))

    def begin_cold(self, sealed_to: Id) -> None:
        """Give it a cold part, which is empty so far."""
        if not self.has_cold:
            self.cold.begin(sealed_to)
            self.has_cold = True

    @property
    def cold_live(self) -> int:
        """How many entries are read from blocks."""
        return self.cold.state.live if self.has_cold else 0

    @property
    def lowest_last_id(self) -> Id:
        """The lowest id that `last_id` can be set back to: the highest existing id, or the end of a block, deleted or
        not."""
        closed = segments.latest(self.settle(), self.number) if self.has_segments else None
        if closed is not None:
            return max(closed.last, self._highest)
        return self._highest

    @property
    def _highest(self) -> Id:
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
        effects = self._keyspace.effects
        if effects is not None:
            effects.restated(self)

    def restate(
        self, *, last_id: Id | None = None, entries_added: int | None = None, max_deleted_id: Id | None = None
    ) -> None:
        """Set facts about its past; None leaves a fact as it is known."""
        self.last_id = self.last_id if last_id is None else last_id
        self.entries_added = self.entries_added if entries_added is None else entries_added
        self.max_deleted_id = self.max_deleted_id if max_deleted_id is None else max_deleted_id

    def sealed(self, sealed_to: Id) -> None:
        """Entries up to this one are read from blocks from now on: sealing.py has taken them out of the store."""
        self._hot.forget_tail()
        self.nodes.forget(sealed_to)
        self._keyspace.keep(self)
        txn = self._keyspace.writing()
        self.cold.drop_empty(txn)
        self._drop_cold_part(txn)

    def _bury(self, txn: Txn, ids: Sequence[bytes]) -> list[Id]:
        """Delete those of these ids that are in the cold part. `length` is the caller's to put right."""
        found = self.cold.reader.find(txn, ids[: self.cold.reader.place_behind(ids)])
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
            self._note_trimmed(txn, removed, removed_bytes, last)
            self._keyspace.changed(self)
            self._tell_trimmed()
        self._drop_cold_part(txn)
        return removed

    def _drop_cold_part(self, txn: Txn) -> None:
        """Drop the cold part if it has no block."""
        if self.cold.first_block is None:
            self.cold.write(txn)
            self.has_cold, self._cold = False, None
            self._keyspace.keep(self)

    # -- what is kept with it

    def know_settings(self, settings: TopicSettings | None) -> None:
        """Note the settings that retention has for it."""
        self.settings = settings
        self.settings_are_known = True

    def attach(self, part: Attached) -> None:
        """Keep this with it, and have it written with it."""
        self.attached = part

    def count_group(self) -> int:
        """It has one more group, of this number."""
        self.last_group += 1
        self.group_count += 1
        return self.last_group

    def discount_group(self) -> None:
        """Count one group less."""
        self.group_count -= 1

    def stored_groups(self, txn: Txn) -> Iterator[GroupRecord]:
        """Return its groups, as they are. Change nothing meanwhile."""
        if self.attached is not None:
            self.attached.settle(txn)
        return groups.of_topic(txn, self.number)

    @property
    def weight(self) -> int:
        return _WEIGHT
