"""What was done to keys, as requests that have a replica's keys become what they are here now.

Of a key as it is: SET, RESTORE, or DEL where it is gone; and PEXPIREAT or PERSIST where only its time is another one.
Of a topic what was done to it: topic_requests.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlite_pubsub.engine.payloads import payload_for_replicas
from rlite_pubsub.engine.replicas.topic_requests import requests_of
from rlite_pubsub.keyspace.effects import EXPIRY, GONE, WHOLE, Effects
from rlite_pubsub.keyspace.records import Record, Text
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.topics import entry_ids

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.effects import TopicEffects
    from rlite_pubsub.keyspace.keyspace import Keyspace


def settle(keyspace: Keyspace, effects: Effects) -> None:
    """Turn all that is noted into requests. Raises StoreError."""
    while effects.keys:
        noted, of_topics = effects.keys, effects.topics
        effects.keys, effects.topics = {}, {}
        for (database, name), what in noted.items():
            record = keyspace.stored.get(database, name)
            of_topic = of_topics.get((database, name))
            for words in _requests(record, name, what, of_topic):
                effects.requests.append((database, words))


def _requests(
    record: Record | None, name: bytes, what: int, of_topic: TopicEffects | None
) -> Iterator[list[bytes]]:
    if record is None:
        yield [b"DEL", name]
    elif isinstance(record, Topic) and (not what & WHOLE or _is_begun(record, what, of_topic)):
        if of_topic is not None:
            yield from requests_of(record, of_topic)
        if what & EXPIRY:
            yield _expiry(record)
    elif what == EXPIRY:
        yield _expiry(record)
    elif isinstance(record, Text):
        at = [b"PXAT", b"%d" % record.expires_ms] if record.expires_ms else []
        yield [b"SET", name, record.value, *at]
    else:
        yield [b"RESTORE", name, b"%d" % record.expires_ms, payload_for_replicas(record), b"REPLACE", b"ABSTTL"]


def _is_begun(topic: Topic, what: int, of_topic: TopicEffects | None) -> bool:
    """Whether it was made by the entries that it has, so that a replica makes it as well."""
    if what & GONE or of_topic is None or not of_topic.are_additions:
        return False
    return of_topic.appended == topic.length == topic.entries_added and topic.max_deleted_id == entry_ids.MIN


def _expiry(record: Record) -> list[bytes]:
    if not record.expires_ms:
        return [b"PERSIST", record.name]
    return [b"PEXPIREAT", record.name, b"%d" % record.expires_ms]
