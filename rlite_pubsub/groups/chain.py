"""A queue that is spread over several stores: a chain of segments, of which the last one is the queue's own key.

A *closed segment* is a topic under a key of its own, in a slot of its own, so that it can be moved to another member
as any key can, with its blocks as files. It never grows. The queue's own key has what was pushed since, the places of
all subscribers, and the directory: which segments there are, and which ids each of them has
(storage/topics/segments.py).

Laws:
 1. Ids order the chain: a segment has all entries up to its last id that are above the last id of the one before. So a
    subscriber's place is one id, wherever that is, and there is nothing to hand over at a seam.
 2. A place is kept under the queue's own key, and moves in one commit there. Entries may come from another member; they
    are popped by that commit, and by nothing else. Whoever is killed before it has popped nothing.
 3. `cut` is one commit: before it there is one key, after it there are two and the directory that names them. It costs
    what the queue's groups are, and nothing for each entry: the entries stay under their number, which becomes the
    segment's.
 4. The directory forgets a segment before its key is removed (`Topic.lose_segment`), and notes in the same commit that
    it is to be removed; that may be repeated.
 5. A group with consumers works on a stream, which is the queue's own key. What it has not finished with stays there.
    A subscriber's leases do not keep it: QUEUE.POP alone delivers those, and finds them in any segment.

A queue that was never cut has no directory, and its pops and pushes do not look for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlite_pubsub.groups import progress
from rlite_pubsub.keyspace.topic.topic import COLD_FLAG
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.groups import consumers, groups, pending, released
from rlite_pubsub.storage.keys import key_records
from rlite_pubsub.storage.topics import deadlines, entry_ids, publications, segments, topic_settings
from rlite_pubsub.storage.topics.segments import Segment
from rlite_pubsub.storage.topics.topic_settings import NO_LIMITS, AppendRules, TopicSettings

if TYPE_CHECKING:
    from rlite_pubsub.groups.group import Group
    from rlite_pubsub.keyspace.part import Part
    from rlite_pubsub.keyspace.topic.topic import Topic
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.groups.groups import GroupRecord
    from rlite_pubsub.storage.topics.chunks import ChunkSlice
    from rlite_pubsub.storage.topics.entry_ids import Id

MOST_STAYING: Final = 10_000
"""Entries that can be copied within a turn."""
_NUMBER_BYTES: Final = 8
_STAY_WITH_THE_QUEUE: Final = (databases.DEFERRED, databases.TRIM_MARKS)
_BESIDE_ENTRIES: Final = (
    databases.GROUPS,
    databases.CONSUMERS,
    databases.PENDING,
    databases.RELEASED,
    databases.IN_FLIGHT,
    databases.DEFERRED,
    databases.PUBLICATIONS,
)


class StillNeeded(Exception):
    """Groups with consumers have not finished with what a cut would take from them."""


def cut(part: Part, queue: Topic, name: bytes) -> Segment | None:
    """Close the queue's entries, from `Keyspace.for_change`, as a segment of this name, which is free; None if it has
    none, and nothing was done. Raises StillNeeded."""
    if not queue.length:
        return None
    part.changed(queue)
    txn = part.settle()  # its groups' records, too
    needed = _needed_from(txn, queue)
    staying = _staying(queue, needed)
    if len(staying) == queue.length:
        raise StillNeeded("its groups need all of its entries")
    old, new = queue.number, key_records.new_topic(txn)
    closed = _described(txn, queue, name, needed, staying)
    last_id, added, deleted = queue.last_id, queue.entries_added, queue.max_deleted_id
    if staying:
        queue.delete([entry_id for entry_id, _ in staying])
        txn = part.settle()
    stored = key_records.get(txn, queue.place)
    assert stored is not None
    _move_rows(txn, queue, new)
    queue.begin_anew(new, closed.last)
    segment = part.adopt_topic(queue.database, name, stored.flags & COLD_FLAG, 0, stored.body)
    _close(txn, segment, old)
    for entry_id, entry in staying:
        queue.append(entry_id, entry)
    queue.restate(last_id=last_id, entries_added=added, max_deleted_id=deleted)
    queue.has_segments = True
    segments.put(part.settle(), new, closed)
    failpoint("queue-cut")
    return closed


def _described(txn: Txn, queue: Topic, name: bytes, needed: Id | None, staying: list[tuple[Id, bytes]]) -> Segment:
    last = queue.last_id if needed is None or not staying else entry_ids.before(needed)
    assert last is not None
    entries = queue.length - len(staying)
    size_bytes = queue.size_bytes - sum(len(entry) for _, entry in staying)
    so_far = segments.latest(txn, queue.number)
    return Segment(
        name,
        queue.first_id,
        last,
        entries,
        size_bytes,
        entries + (so_far.entries_so_far if so_far is not None else 0),
        size_bytes + (so_far.bytes_so_far if so_far is not None else 0),
        queue.entries_added - queue.length,
        queue.entries_added - len(staying),
    )


def _needed_from(txn: Txn, queue: Topic) -> Id | None:
    """Return the first id that a group with consumers has not finished with."""
    bounds = []
    for record in queue.stored_groups(txn):
        if _only_leases(txn, queue, record):
            continue  # QUEUE.POP finds its values along the chain
        if record.consumers or record.pending or record.settings.released:
            bounds.append(entry_ids.after(record.last_id) or entry_ids.MAX)
            oldest = next(pending.walk(txn, pending.prefix(queue.number, record.number)), None)
            given_back = released.first_id(txn, released.prefix(queue.number, record.number))
            bounds += [entry_ids.unpack(ids) for ids in (oldest.ids if oldest else None, given_back) if ids is not None]
    return min(bounds, default=None)


def _only_leases(txn: Txn, queue: Topic, record: GroupRecord) -> bool:
    """Return whether a group has no other consumer than a queue's subscriber has (queue_reading.py)."""
    return record.consumers == 1 and consumers.number_of(txn, queue.number, record.number, record.name) is not None


def _staying(queue: Topic, needed: Id | None) -> list[tuple[Id, bytes]]:
    """Return the entries from this id on. Raises StillNeeded if they are too many to be copied."""
    if needed is None or needed > queue.last_id:
        return []
    if queue.has_cold and needed <= queue.cold.state.sealed_to:
        raise StillNeeded("its groups need entries of the cold store")
    staying: list[tuple[Id, bytes]] = []
    for part in queue.between(needed, limit=MOST_STAYING + 1):
        ids = entry_ids.unpack_all(part.ids)
        staying += zip(ids, part.chunk.entries(part.start, part.stop), strict=True)
    if len(staying) > MOST_STAYING:
        raise StillNeeded(f"its groups need more than {MOST_STAYING} of its entries")
    return staying


def _move_rows(txn: Txn, queue: Topic, new: int) -> None:
    """Give the new number all but the entries."""
    old = queue.number
    before, after = old.to_bytes(_NUMBER_BYTES, "big"), new.to_bytes(_NUMBER_BYTES, "big")
    groups.copy(txn, old, new)
    publications.copy(txn, old, new)
    for database in _STAY_WITH_THE_QUEUE:
        databases.copy_all(txn, database + before, database + after)
    deadlines.copy(txn, old, new, queue.place)
    deadlines.remove_all(txn, old)
    for database in _BESIDE_ENTRIES:
        databases.delete_all(txn, database + before)
    segments.move(txn, old, new)
    settings = topic_settings.get(txn, old)
    if settings is not None:
        topic_settings.remove_due(txn, settings.due_ms, old)
        topic_settings.put(txn, new, settings._replace(due_ms=topic_settings.NEVER), None)


def _close(txn: Txn, segment: Topic, number: int) -> None:
    """Have a segment take nothing more, and keep what it has for as long as its queue wants it."""
    settings = TopicSettings(segment.place, own=NO_LIMITS, appends=AppendRules(is_closed=1))
    topic_settings.put(txn, number, settings, None)
    segment.know_settings(settings)
    segment.has_append_rules = True
    segment.group_count = 0


# -- subscribers


def is_behind(subscriber: Group) -> bool:
    """Return whether a subscriber's next entries are in a closed segment."""
    return is_closed_behind(subscriber.topic, subscriber.last_id)


def is_closed_behind(queue: Topic, entry_id: Id) -> bool:
    """Return whether the entries that come after this id are in a closed segment."""
    return queue.has_segments and segments.behind(queue.keyspace.reading(), queue.number, entry_id) is not None


def count_up_to(queue: Topic, entry_id: Id) -> int | None:
    """Return how many entries were ever added to a chain up to this id; None if that cannot be known."""
    segment = segments.behind(queue.keyspace.reading(), queue.number, entry_id) if queue.has_segments else None
    if segment is None:
        return progress.count_of(queue, entry_id)
    return segment.added_before if entry_id < segment.first else None


def lag(subscriber: Group) -> int | None:
    """Return how many entries come after a subscriber's place; None if that cannot be known."""
    queue = subscriber.topic
    if not is_behind(subscriber):
        return subscriber.lag
    read = count_up_to(queue, subscriber.last_id)
    if read is None:
        read = subscriber.entries_read
    return None if read is None else queue.entries_added - read


def advance(subscriber: Group, parts: list[ChunkSlice]) -> None:
    """Move a subscriber's place past these entries, the next ones of its chain."""
    ids = parts[-1].ids
    last = entry_ids.unpack(ids, len(ids) - entry_ids.BYTES)
    read = count_up_to(subscriber.topic, last)
    if read is None and subscriber.entries_read is not None:
        read = subscriber.entries_read + sum(part.count for part in parts)
    subscriber.move(last, progress.kept(read))
