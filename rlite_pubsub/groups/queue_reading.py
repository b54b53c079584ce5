"""A queue's subscribers: each has a place in the queue's whole history.

A subscriber is a group. What is popped is done with: its place is in the group's record, so that a pop is one look-up
among the chunks and one record written, and a peek is the look-up alone, however long the history is. Asleep or awake,
a subscriber that reads nothing takes no memory.

What is leased is pending with a consumer of the subscriber's own name, within the group's timeout; what is given back
is released (release.py), whether it was leased or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlite_pubsub.groups import chain, flights, pending, release
from rlite_pubsub.groups import group as groups
from rlite_pubsub.groups.pending import Amendment
from rlite_pubsub.groups.progress import look_behind
from rlite_pubsub.storage.groups import released
from rlite_pubsub.storage.groups.released import Released
from rlite_pubsub.storage.topics import entry_ids, segments

if TYPE_CHECKING:
    from rlite_pubsub.groups.consumer import Consumer
    from rlite_pubsub.groups.group import Group
    from rlite_pubsub.groups.release import Again
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


LEASE_MS: Final = 30_000
"""The timeout of a subscriber that leases and was given no other."""


def lease(subscriber: Group, consumer: Consumer, packed_ids: bytes, now_ms: int) -> None:
    """Lease values that were popped just now."""
    _have_timeout(subscriber)
    pending.deliver(subscriber, consumer, packed_ids, now_ms)


def lease_again(subscriber: Group, consumer: Consumer, again: list[Again], now_ms: int) -> None:
    """Lease values that came back, one more time."""
    _have_timeout(subscriber)
    amendment = Amendment(subscriber)
    for one in sorted(again):
        amendment.put(one.id, (consumer.number, now_ms, one.deliveries + 1))
    amendment.close()


def _have_timeout(subscriber: Group) -> None:
    if not subscriber.settings.timeout_ms:
        subscriber.change(timeout_ms=LEASE_MS)
        flights.note_all(subscriber)
        flights.reckon(subscriber)


def leased(subscriber: Group, ids: list[bytes]) -> list[tuple[bytes, int]]:
    """Return those of these packed ids that are pending, with the number of their deliveries."""
    amendment = Amendment(subscriber)
    fates = [(packed, amendment.fate(packed)) for packed in ids]
    return [(packed, fate[2]) for packed, fate in fates if fate is not None]


def give_back(subscriber: Group, ids: list[bytes], delay_ms: int, *, was_read: bool) -> int:
    """Release these packed ids, in order, if they were popped; return how many. The subscriber comes from
    `Keyspace.for_change`. What `was_read` was delivered; with a lease, that has been counted."""
    topic = subscriber.topic
    txn = topic.keyspace.writing()
    due_ms = topic.keyspace.clock_ms() + delay_ms if delay_ms else release.AT_ONCE
    amendment = Amendment(subscriber)
    back: list[Released] = []
    for packed in ids:
        fate = amendment.fate(packed)
        if fate is not None:
            amendment.remove(packed)
            back.append(Released(packed, due_ms, fate[2] if was_read else max(fate[2] - 1, 0), fate[1]))
        elif entry_ids.unpack(packed) <= subscriber.last_id:
            if released.get(txn, release.of_group(subscriber), packed) is None and _is_there(topic, packed):
                back.append(Released(packed, due_ms, int(was_read), topic.keyspace.clock_ms() if was_read else 0))
    amendment.close()
    if back:
        subscriber.change(requeued=subscriber.settings.requeued + len(back))
        release.release(subscriber, back)
        if delay_ms:
            flights.bring_forward(subscriber, due_ms)
    return len(back)


def _is_there(queue: Topic, packed: bytes) -> bool:
    entry_id = entry_ids.unpack(packed)
    before = entry_ids.before(entry_id)
    if queue.has(entry_id) or not queue.has_segments or before is None:
        return queue.has(entry_id)
    segment = segments.behind(queue.keyspace.reading(), queue.number, before)
    return segment is not None and segment.first <= entry_id


def set_asleep(subscriber: Group, is_asleep: bool) -> bool:
    """Put it to sleep, or wake it; False if nothing changed. Clients that wait in its name should look again."""
    if subscriber.settings.is_asleep == is_asleep:
        return False
    subscriber.change(is_asleep=is_asleep)
    subscriber.topic.wake()
    return True
