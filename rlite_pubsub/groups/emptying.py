"""A topic without its entries: nothing is left to be read, delivered, redelivered or appended later. Its groups with
their consumers, its counters and its settings stay.

A small one is trimmed. A large one gets a new number, under which it has what stays, and the old number is garbage:
that costs what its groups and their consumers are, and neither what the topic had nor what was in flight. Closed
segments of a queue are removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.groups.group import all_groups
from rlite_pubsub.keyspace.topic import deferral
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.groups import groups
from rlite_pubsub.storage.keys import garbage, key_records
from rlite_pubsub.storage.topics import segments, topic_settings

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.topic.topic import Topic

SMALL_BYTES = 2 << 20
SMALL_WORK = 10_000
"""Entries in flight, given back and deferred."""
_NUMBER_BYTES = 8


def empty(topic: Topic) -> int:
    """Remove all entries of a topic that `for_change` has found; how many there were. Its groups are at its end then,
    with nothing in flight."""
    removed = topic.length
    if topic.has_segments:
        segments.forsake_all(topic.keyspace.settle(), topic.number)
        topic.has_segments = False
        topic.keyspace.changed(topic)
    if _is_small(topic):
        if removed:
            topic.retain_less(removed)
        deferral.forget_all(topic)
    else:
        _begin_anew(topic)
    for group in all_groups(topic):
        group.start_over()
    return removed


def _is_small(topic: Topic) -> bool:
    if topic.size_bytes > SMALL_BYTES:
        return False
    work = deferral.count(topic)
    for record in topic.stored_groups(topic.keyspace.writing()):
        work += record.pending + record.settings.released
    return work <= SMALL_WORK


def _begin_anew(topic: Topic) -> None:
    keyspace = topic.keyspace
    keyspace.changed(topic)
    txn = keyspace.settle()  # its groups' records, too
    old, new = topic.number, key_records.new_topic(txn)
    before, after = old.to_bytes(_NUMBER_BYTES, "big"), new.to_bytes(_NUMBER_BYTES, "big")
    databases.copy_all(txn, databases.TRIM_MARKS + before, databases.TRIM_MARKS + after)
    groups.copy_idle(txn, old, new)
    settings = topic_settings.get(txn, old)
    if settings is not None:
        topic_settings.remove_due(txn, settings.due_ms, old)
        fresh = settings._replace(due_ms=topic_settings.NEVER)
        topic_settings.put(txn, new, fresh, None)
    garbage.add(txn, garbage.TOPIC, old)
    topic.begin_anew(new)
