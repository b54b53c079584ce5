"""A queue's subscribers: each has a place in the queue's whole history, and nothing else.

A subscriber is a group without consumers and without anything pending: what is popped is done with. Its place is in the
group's record, so that a pop is one look-up among the chunks and one record written, and a peek is the look-up alone,
however long the history is. Asleep or awake, a subscriber that reads nothing takes no memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlite_pubsub.groups import chain
from rlite_pubsub.groups import group as groups
from rlite_pubsub.groups.progress import look_behind
from rlite_pubsub.storage.topics import entry_ids

if TYPE_CHECKING:
    from rlite_pubsub.groups.group import Group
    from rlite_pubsub.keyspace.topic.topic import Topic
    from rlite_pubsub.storage.topics.chunks import ChunkSlice
    from rlite_pubsub.storage.topics.entry_ids import Id


MOST_COUNTED: Final = 50_000
"""Entries between a place and the nearer end of the queue."""


def create(queue: Topic, name: bytes, after: Id) -> Group:
    """Create a subscriber that reads what comes after this id; its name is free."""
    return groups.create(queue, name, after, read_before(queue, after))


def read_before(queue: Topic, after: Id) -> int | None:
    """Return how many entries were ever added up to this id, which may lie anywhere. None if that cannot be known, or
    would have to be counted over more than `MOST_COUNTED` entries from either end, or in the cold store."""
    known = chain.count_up_to(queue, after)
    if known is not None or after > queue.last_id or chain.is_closed_behind(queue, after):
        return known
    start = entry_ids.after(after)
    if start is None or (queue.has_cold and after < queue.cold.state.sealed_to):
        return None
    behind = sum(part.count for part in queue.between(start, limit=MOST_COUNTED + 1))
    if behind <= MOST_COUNTED:
        return queue.entries_added - behind
    if queue.has_cold or queue.has_segments:
        return None
    before = sum(part.count for part in queue.between(entry_ids.MIN, after, limit=MOST_COUNTED + 1))
    return queue.entries_added - queue.length + before if before <= MOST_COUNTED else None


def peek(subscriber: Group, count: int) -> list[ChunkSlice]:
    """Return at most `count` of the next entries."""
    start = entry_ids.after(subscriber.last_id)
    queue = subscriber.topic
    if start is None or start > queue.last_id:
        return []
    return list(queue.between(start, limit=count))


def look_at(subscriber: Group, count: int) -> None:
    """Read what a pop will read."""
    look_behind(subscriber.topic, subscriber.last_id, subscriber.entries_read, count)


def pop(subscriber: Group, count: int) -> list[ChunkSlice]:
    """Like `peek`, and move the subscriber's place past them. Its queue comes from `Keyspace.for_change`."""
    parts = peek(subscriber, count)
    if parts:
        subscriber.advance(b"".join([part.ids for part in parts]))
    return parts


def set_asleep(subscriber: Group, is_asleep: bool) -> bool:
    """Put it to sleep, or wake it; False if nothing changed. Clients that wait in its name should look again."""
    if subscriber.settings.is_asleep == is_asleep:
        return False
    subscriber.change(is_asleep=is_asleep)
    subscriber.topic.wake()
    return True
