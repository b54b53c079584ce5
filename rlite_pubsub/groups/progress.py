"""A group's progress: its count of entries read, and its lag, kept or estimated as redis-server 7.0.15 does.

The count of an id is how many entries were ever added up to it. It follows from the topic's own counters at the ends of
the topic only, and nowhere once entries have been deleted in between (a *hole* lies ahead); a group that has had a
valid count goes on counting as long as no hole lies ahead of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.topic.topic import Topic


_MOST_READ = (1 << 63) - 1


def kept(entries_read: int | None) -> int | None:
    """The count as a group keeps it: beyond 63 bits, to which only XSETID and RESTORE can bring it, it is not known."""
    return None if entries_read is None or entries_read > _MOST_READ else entries_read


def lag(topic: Topic, last_id: Id, entries_read: int | None) -> int | None:
    """Return how many entries come after the last one read; None if that cannot be known."""
    if not topic.entries_added:
        return 0
    read = entries_read
    if read is None or hole_ahead(topic, last_id):
        read = count_of(topic, last_id)
    return None if read is None else topic.entries_added - read


def hole_ahead(topic: Topic, entry_id: Id) -> bool:
    """Return whether an entry was deleted from this id on."""
    deleted = topic.max_deleted_id
    if not topic.length or deleted == entry_ids.MIN or entry_id > deleted:
        return False
    return topic.first_id <= deleted


def count_of(topic: Topic, entry_id: Id, first: Id | None = None) -> int | None:
    """Return how many entries were ever added up to this id; None if that cannot be known. `first` is the topic's."""
    added, length = topic.entries_added, topic.length
    if not added:
        return 0
    if entry_id > topic.last_id:
        return None
    if not length or entry_id == topic.last_id:
        return added
    if first is None:
        first = topic.first_id
    deleted = topic.max_deleted_id
    if entry_id <= first and (deleted == entry_ids.MIN or deleted < first):
        return added - length + (entry_id == first)
    return None


def look_behind(topic: Topic, after: Id, entries_read: int | None, count: int | None) -> Id:
    """Read the next entries, at most `count`, for a consumer at this id, and what `read_on` will have to know
    of the topic's cold part. Returns the id up to which it has read then. Raises ColdMiss."""
    start = entry_ids.after(after)
    parts = [] if start is None or start > topic.last_id else list(topic.between(start, limit=count))
    if entries_read is None or hole_ahead(topic, after):
        topic.first_id  # noqa: B018
    return entry_ids.unpack(parts[-1].ids, len(parts[-1].ids) - entry_ids.BYTES) if parts else after


def read_on(topic: Topic, entries_read: int | None, packed_ids: bytes) -> int | None:
    """Return the count after these ids, the next ones of the topic, were delivered."""
    start = entry_ids.unpack(packed_ids)
    if entries_read is not None and not hole_ahead(topic, start):
        return entries_read + len(packed_ids) // entry_ids.BYTES
    first = topic.first_id
    if entries_read is None and start > first:  # only the topic's last id has a count that is known
        end = entry_ids.unpack(packed_ids, len(packed_ids) - entry_ids.BYTES)
        return topic.entries_added if end == topic.last_id else None
    read, deleted = entries_read, topic.max_deleted_id
    has_hole = entry_ids.MIN < deleted >= first
    for entry_id in entry_ids.unpack_all(packed_ids):
        if read is not None and not (has_hole and entry_id <= deleted):
            read += 1
        else:
            read = count_of(topic, entry_id, first)
    return read
