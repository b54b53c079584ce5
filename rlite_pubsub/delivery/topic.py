"""A topic: an ordered log of entries in chunks (storage/chunks.py), appended to in memory during a turn.

What a turn appends is gathered here and written as chunks at its end, or when somebody reads the topic before. Ids
grow: `append` takes one that is above `last_id`. Who may append, and under which id, is the commands' concern.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING

from rlite_pubsub.delivery.records import Record
from rlite_pubsub.protocol.encoder import bulk_array
from rlite_pubsub.storage import chunks, entry_ids, garbage, trim_marks
from rlite_pubsub.storage.chunks import Chunk, Part
from rlite_pubsub.storage.entry_ids import Id
from rlite_pubsub.storage.key_records import TOPIC, KeyRecord

if TYPE_CHECKING:
    from rlite_pubsub.delivery.group import Group
    from rlite_pubsub.delivery.keyspace import Keyspace
    from rlite_pubsub.storage.environment import Txn

_BODY = Struct(">QQQQQQQQIIQQQ")
_SMALL_CHUNKS = 16
"""A topic of at most so many chunks is removed at once, without garbage."""


def encode_entry(entry_id: Id, fields: Sequence[bytes]) -> bytes:
    """An entry as XRANGE sends it: an array of its id and the array of its fields and values."""
    text = b"%d-%d" % entry_id
    return b"*2\r\n$%d\r\n%b\r\n%b" % (len(text), text, bulk_array(tuple(fields)))


class Topic(Record):
    """One topic."""

    __slots__ = (
        "_groups",
        "_keyspace",
        "_new_entries",
        "_new_ids",
        "_tail",
        "entries_added",
        "first_node",
        "group_count",
        "last_group",
        "last_id",
        "length",
        "max_deleted_id",
        "number",
        "size_bytes",
        "trimmed",
        "trimmed_id",
    )

    type = TOPIC

    def __init__(self, keyspace: Keyspace, database: int, name: bytes, place: bytes) -> None:
        super().__init__(database, name, place)
        self._keyspace = keyspace
        self.number = 0
        self.length = 0
        self.size_bytes = 0  # of the entries, as they are sent
        self.last_id: Id = entry_ids.MIN  # the highest that was ever given
        self.max_deleted_id: Id = entry_ids.MIN
        self.entries_added = 0  # ever
        self.trimmed = 0  # entries that were removed from the beginning, ever: whoever was before them has lost them
        self.trimmed_id: Id = entry_ids.MIN  # the last of these
        self.group_count = 0
        self.last_group = 0  # the highest number that a group was given
        self.first_node: object = None  # what an approximate trim knows of the beginning; dropped where that changes
        self._new_ids: list[bytes] = []  # appended in this turn, not yet in chunks
        self._new_entries: list[bytes] = []
        self._tail: Chunk | None = None  # the last chunk, if it is known
        self._groups: dict[bytes, Group] = {}

    # -- in the store

    def loaded(self, stored: KeyRecord) -> None:
        super().loaded(stored)
        (
            self.number,
            self.length,
            self.size_bytes,
            last_ms,
            last_seq,
            deleted_ms,
            deleted_seq,
            self.entries_added,
            self.group_count,
            self.last_group,
            self.trimmed,
            trimmed_ms,
            trimmed_seq,
        ) = _BODY.unpack_from(stored.body)
        self.last_id = last_ms, last_seq
        self.max_deleted_id = deleted_ms, deleted_seq
        self.trimmed_id = trimmed_ms, trimmed_seq

    def body(self, txn: Txn) -> bytes:
        if self._new_ids:
            self._write_new(txn)
        for group in self._groups.values():
            group.settle(txn)
        return _BODY.pack(
            self.number,
            self.length,
            self.size_bytes,
            *self.last_id,
            *self.max_deleted_id,
            self.entries_added,
            self.group_count,
            self.last_group,
            self.trimmed,
            *self.trimmed_id,
        )

    def _write_new(self, txn: Txn) -> None:
        ids, entries = self._new_ids, self._new_entries
        self._new_ids, self._new_entries = [], []
        tail = self._tail or chunks.last(txn, self.number)
        key = None
        if tail is not None and chunks.has_room(tail, entries[0]):
            key = tail.key
            ids = [tail.id(place) for place in range(tail.count)] + ids
            entries = tail.entries() + entries
        self._tail = chunks.write(txn, self.number, key, ids, entries)

    def settle(self) -> Txn:
        """Bring what this turn appended into the open transaction, which is returned."""
        if self._new_ids:
            self._write_new(self._keyspace.writing())
        return self._keyspace.reading()

    def drop(self, txn: Txn) -> None:
        """It is removed: its entries and groups are garbage."""
        self._new_ids, self._new_entries = [], []
        garbage.add(txn, garbage.TOPIC, self.number)
        if self.length <= _SMALL_CHUNKS and not self.group_count:
            garbage.sweep_topic(txn, self.number)

    def copy_from(self, other: Topic) -> None:
        """Take over all that another topic holds, its groups included; this one is new."""
        txn = self._keyspace.writing()
        other.settle()
        chunks.copy(txn, other.number, self.number)
        self.length, self.size_bytes = other.length, other.size_bytes
        self.last_id, self.max_deleted_id = other.last_id, other.max_deleted_id
        self.entries_added = other.entries_added
        self.trimmed, self.trimmed_id = other.trimmed, other.trimmed_id
        if other.group_count:
            from rlite_pubsub.delivery.group import copy_groups

            copy_groups(other, self, txn)
        self._keyspace.changed(self)

    # -- appending

    def append(self, entry_id: Id, entry: bytes) -> None:
        """Put an entry (`encode_entry`) behind all others. The topic comes from `Keyspace.for_change`."""
        self._new_ids.append(entry_ids.pack(entry_id))
        self._new_entries.append(entry)
        self.last_id = entry_id
        self.length += 1
        self.entries_added += 1
        self.size_bytes += len(entry)
        self.signal()

    def signal(self) -> None:
        """It has changed: whoever is blocked on it should look, here and in other processes."""
        key = self.database, self.name
        keyspace = self._keyspace
        keyspace.changed(self)
        keyspace.ready[key] = None
        keyspace.touched[key] = None

    # -- reading

    def between(self, start: Id = entry_ids.MIN, end: Id = entry_ids.MAX, limit: int | None = None) -> Iterator[Part]:
        """At most `limit` entries from `start` to `end`, both included, oldest first. Change nothing meanwhile."""
        if start > self.last_id or not self.length:
            return iter(())
        return chunks.between(self.settle(), self.number, start, end, limit)

    def backward(self, start: Id = entry_ids.MIN, end: Id = entry_ids.MAX, limit: int | None = None) -> Iterator[Part]:
        """The newest ones in the range, in parts from new to old; each part is in order."""
        if not self.length:
            return iter(())
        return chunks.between_backward(self.settle(), self.number, start, end, limit)

    def has(self, entry_id: Id) -> bool:
        """Whether there is an entry of this id."""
        return next(self.between(entry_id, entry_id), None) is not None

    def entry(self, entry_id: Id) -> bytes | None:
        """The entry of this id, as XRANGE sends it."""
        part = next(self.between(entry_id, entry_id), None)
        return None if part is None else part.wire

    @property
    def first_id(self) -> Id:
        """The lowest id there is; 0-0 without entries."""
        part = next(self.between(limit=1), None)
        return entry_ids.MIN if part is None else entry_ids.unpack(part.ids)

    # -- removing. The topic comes from `Keyspace.for_change`.

    def delete(self, ids: Iterable[Id]) -> int:
        """Remove these entries; how many there were."""
        txn = self._keyspace.writing()
        self.settle()
        deleted = 0
        for entry_id in ids:
            part = next(chunks.between(txn, self.number, entry_id, entry_id), None)
            if part is not None:
                self.size_bytes -= len(part.wire)
                chunks.remove(txn, part.chunk, {part.start})
                self._tail = None
                self.length -= 1
                self.max_deleted_id = max(self.max_deleted_id, entry_id)
                deleted += 1
        if deleted:
            self.first_node = None
            self._keyspace.changed(self)
        return deleted

    def trim(self, count: int) -> int:
        """Remove the `count` oldest entries; how many there were. Redis does not count them as deleted ids."""
        txn = self._keyspace.writing()
        self.settle()
        left = min(count, self.length)
        removed = left
        while left:
            chunk = next(chunks.forward(txn, self.number, entry_ids.MIN))
            if chunk.count <= left:
                self.size_bytes -= len(chunk.blob)
                self.trimmed_id = entry_ids.unpack(chunk.last)
                txn.delete(chunk.key)
                left -= chunk.count
            else:
                self.size_bytes -= chunk.ends[left - 1]
                self.trimmed_id = entry_ids.unpack(chunk.id(left - 1))
                chunks.remove(txn, chunk, set(range(left)))
                left = 0
        if removed:
            self.length -= removed
            trim_marks.note(txn, self.number, self.trimmed_id, self.trimmed, self.trimmed + removed)
            self.trimmed += removed
            self._tail = None
            self._keyspace.changed(self)
        return removed

    # -- groups

    def group(self, name: bytes) -> Group | None:
        """The group of this name."""
        group = self._groups.get(name)
        if group is None and self.group_count:
            from rlite_pubsub.delivery.group import load

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
    def keyspace(self) -> Keyspace:
        """Whose it is."""
        return self._keyspace
