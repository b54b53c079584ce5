"""A topic without its entries: its groups, what they have pending, its counters and its settings stay.

A small one is trimmed. A large one gets a new number, under which it has everything but entries, and the old number is
garbage: that costs what the groups have, and not what the topic had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.groups import groups
from rlite_pubsub.storage.keys import garbage, key_records
from rlite_pubsub.storage.topics import deadlines, topic_settings

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.topic.topic import Topic

SMALL_BYTES = 2 << 20
_NUMBER_BYTES = 8
_KEPT = (databases.DEFERRED, databases.TRIM_MARKS)


def empty(topic: Topic) -> int:
    """Remove all entries of a topic that `for_change` has found; how many there were."""
    if topic.size_bytes <= SMALL_BYTES:
        removed = topic.length
        if removed:
            topic.retain_less(removed)
        return removed
    removed = topic.length
    keyspace = topic.keyspace
    keyspace.changed(topic)
    txn = keyspace.settle()  # its groups' records, too
    old, new = topic.number, key_records.new_topic(txn)
    before, after = old.to_bytes(_NUMBER_BYTES, "big"), new.to_bytes(_NUMBER_BYTES, "big")
    for database in _KEPT:
        databases.copy_all(txn, database + before, database + after)
    groups.copy(txn, old, new)
    deadlines.copy(txn, old, new, topic.place)
    settings = topic_settings.get(txn, old)
    if settings is not None:
        topic_settings.remove_due(txn, settings.due_ms, old)
        fresh = settings._replace(due_ms=topic_settings.NEVER)
        topic_settings.put(txn, new, fresh, None)
    garbage.add(txn, garbage.TOPIC, old)
    topic.begin_anew(new)
    return removed
