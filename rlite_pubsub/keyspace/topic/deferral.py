"""Entries that are appended later: a topic has them already, and nobody sees them.

An entry is appended and ceases to be deferred in one transaction: so it is appended once, however many processes have
the store, and whichever of them dies.
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING

from rlite_pubsub.keyspace.topic.append import next_id
from rlite_pubsub.storage.topics import deadlines, deferred, entry_ids
from rlite_pubsub.storage.topics.deadlines import NEVER, TopicRow
from rlite_pubsub.storage.topics.deferred import FIRST, Deferred, Ticket

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.topic.topic import Topic

log = logging.getLogger("rlite_pubsub")

STEP_ENTRIES = 200
STEP_BYTES = 1 << 20
_AGAIN_MS = 60_000
"""A topic that takes no more entries is asked again after so long."""


def defer(topic: Topic, due_ms: int, words: bytes) -> int:
    """Append an entry of these fields and values (an array in wire format) at that time. Its number among those of
    this time. The topic comes from `Keyspace.for_change`."""
    txn = topic.keyspace.writing()
    number = deferred.add(txn, topic.number, due_ms, words)
    row = _row(topic)
    fresh = TopicRow(min(row.due_ms, due_ms), row.deferred + 1, topic.place)
    deadlines.put_topic(txn, topic.number, fresh)
    topic.keyspace.changed(topic)
    topic.keyspace.news.on_deadline(fresh.due_ms)
    return number


def count(topic: Topic) -> int:
    """Return how many there are."""
    return _row(topic).deferred


def next_due_ms(topic: Topic) -> int | None:
    """Return when the next one is appended; None if there is none."""
    first = next(deferred.walk(topic.keyspace.reading(), topic.number), None)
    return None if first is None else first.due_ms


def waiting(topic: Topic, limit: int, ticket: Ticket = FIRST) -> list[Deferred]:
    """Return at most `limit` of them from a ticket on, the next one first."""
    return list(islice(deferred.walk(topic.keyspace.reading(), topic.number, ticket), limit))


def cancel(topic: Topic, ticket: Ticket) -> bytes | None:
    """It is not appended. Its fields and values; None if there is no such entry. The topic comes from
    `Keyspace.for_change`."""
    txn = topic.keyspace.writing()
    words = deferred.get(txn, topic.number, ticket)
    if words is not None:
        deferred.delete(txn, topic.number, ticket)
        row = TopicRow(next_due_ms(topic) or NEVER, _row(topic).deferred - 1, topic.place)
        deadlines.put_topic(txn, topic.number, row)
        topic.keyspace.changed(topic)
    return words


def append_due(topic: Topic, now_ms: int) -> None:
    """Append some of those whose time has come."""
    keyspace = topic.keyspace
    txn = keyspace.writing()
    row = _row(topic)
    found: list[Deferred] = []
    size = 0
    for one in islice(deferred.walk(txn, topic.number), STEP_ENTRIES):
        if one.due_ms > now_ms or size > STEP_BYTES:
            break
        found.append(one)
        size += len(one.words)
    appended = 0
    for one in found:
        entry_id = next_id(topic.last_id, keyspace.clock_ms())
        if entry_id is None:
            break
        text = entry_ids.text(entry_id)
        topic.append(entry_id, b"*2\r\n$%d\r\n%b\r\n%b" % (len(text), text, one.words))
        deferred.delete(txn, topic.number, one.ticket)
        appended += 1
        keyspace.news.listener.appended(topic.database, topic.name)
    due_ms = next_due_ms(topic) or NEVER
    if appended < len(found):
        log.warning("Deferred entries of topic %r wait: it has no id left for them", topic.name)
        due_ms = now_ms + _AGAIN_MS
    deadlines.put_topic(txn, topic.number, TopicRow(due_ms, row.deferred - appended, topic.place))


def forget_all(topic: Topic) -> None:
    """None of them is appended. The topic comes from `Keyspace.for_change`."""
    if count(topic):
        txn = topic.keyspace.writing()
        deferred.delete_all(txn, topic.number)
        deadlines.put_topic(txn, topic.number, TopicRow(NEVER, 0, topic.place))
        topic.keyspace.changed(topic)


def _row(topic: Topic) -> TopicRow:
    row = deadlines.topic_row(topic.keyspace.reading(), topic.number)
    return TopicRow(NEVER, 0, topic.place) if row is None else row
