"""Changes of a topic, as requests of Redis Streams: XADD with the id, XDEL, XTRIM to what is left, XGROUP, and for
pending entries XCLAIM with owner, time and count, or XACK.

What only topics have (retention, pauses, what is deferred or released) has no request. An entry that a group has given
back is pending with nobody, and so it is for a replica.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlite_pubsub.groups.group import group_of
from rlite_pubsub.keyspace.topic.nodes import words_of
from rlite_pubsub.storage.groups import pending
from rlite_pubsub.storage.topics import entry_ids

if TYPE_CHECKING:
    from rlite_pubsub.groups.group import Group
    from rlite_pubsub.keyspace.effects import GroupEffects, TopicEffects
    from rlite_pubsub.keyspace.topic.topic import Topic
    from rlite_pubsub.storage.groups.pending import Fate

_AT_ONCE = 1000
"""Ids in a request."""


def requests_of(topic: Topic, effects: TopicEffects) -> Iterator[list[bytes]]:
    """Yield the requests in an order in which a replica can execute them. Raises StoreError."""
    name = topic.name
    found = 0
    if effects.appended:
        for part in reversed(list(topic.backward(limit=effects.appended))):
            found += part.count
            for packed, entry in zip(_each(part.ids), part.chunk.entries(part.start, part.stop), strict=True):
                yield [b"XADD", name, entry_ids.text(entry_ids.unpack(packed)), *words_of(entry)]
    for some in _some([entry_ids.text(entry_id) for entry_id in effects.deleted]):
        yield [b"XDEL", name, *some]
    if effects.was_trimmed:
        if topic.length:
            yield [b"XTRIM", name, b"MINID", b"=", entry_ids.text(topic.first_id)]
        else:
            yield [b"XTRIM", name, b"MAXLEN", b"=", b"0"]
    is_mixed = bool(effects.appended) + bool(effects.deleted) + effects.was_trimmed > 1
    if effects.was_restated or is_mixed or found < effects.appended:
        added, deleted = b"%d" % topic.entries_added, entry_ids.text(topic.max_deleted_id)
        last = entry_ids.text(topic.last_id)
        yield [b"XSETID", name, last, b"ENTRIESADDED", added, b"MAXDELETEDID", deleted]
    for group_name, of_group in effects.groups.items():
        yield from _of_group(topic, group_name, of_group)


def _of_group(topic: Topic, name: bytes, effects: GroupEffects) -> Iterator[list[bytes]]:
    key = topic.name
    group = group_of(topic, name)
    if effects.was_removed:
        yield [b"XGROUP", b"DESTROY", key, name]
    if group is None:
        return
    if effects.was_made:
        yield [b"XGROUP", b"CREATE", key, name, *_progress(group)]
    elif effects.has_moved:
        yield [b"XGROUP", b"SETID", key, name, *_progress(group)]
    for consumer, was_removed in effects.consumers.items():
        if was_removed:
            yield [b"XGROUP", b"DELCONSUMER", key, name, consumer]
        if group.consumer(consumer) is not None:
            yield [b"XGROUP", b"CREATECONSUMER", key, name, consumer]
    yield from _of_pending(group, sorted({one for packed in effects.ids for one in _each(packed)}))


def _progress(group: Group) -> list[bytes]:
    read = -1 if group.entries_read is None else group.entries_read
    return [entry_ids.text(group.last_id), b"ENTRIESREAD", b"%d" % read]


def _of_pending(group: Group, ids: list[bytes]) -> Iterator[list[bytes]]:
    """As they are now, those of one fate together."""
    alike: dict[Fate | None, list[bytes]] = {}
    for packed, fate in _fates(group, ids):
        alike.setdefault(fate, []).append(entry_ids.text(entry_ids.unpack(packed)))
    key = group.topic.name
    for fate, texts in alike.items():
        for some in _some(texts):
            if fate is None:
                yield [b"XACK", key, group.name, *some]
                continue
            owner, delivered_ms, deliveries = fate
            said = [b"TIME", b"%d" % delivered_ms, b"RETRYCOUNT", b"%d" % deliveries, b"FORCE", b"JUSTID"]
            yield [b"XCLAIM", key, group.name, group.numbered(owner).name, b"0", *some, *said]


def _fates(group: Group, ids: list[bytes]) -> Iterator[tuple[bytes, Fate | None]]:
    txn = group.topic.keyspace.settle()
    known: set[bytes] = set()
    run = None
    for packed in ids:
        if run is None or not run.low <= packed <= run.high:
            run = pending.covering(txn, group.of_group, packed)
            known = set() if run is None else set(_each(run.ids))
        yield packed, run.fate if run is not None and packed in known else None


def _each(packed_ids: bytes) -> list[bytes]:
    return [packed_ids[at : at + entry_ids.BYTES] for at in range(0, len(packed_ids), entry_ids.BYTES)]


def _some(texts: list[bytes]) -> Iterator[list[bytes]]:
    for at in range(0, len(texts), _AT_ONCE):
        yield texts[at : at + _AT_ONCE]
