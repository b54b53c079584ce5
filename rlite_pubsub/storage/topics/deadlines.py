"""The times when something is due in a topic, or in one of its groups: one look-up says whether it is time.

    order   'Z', 0 u64, due ms u64, topic u64, group u32    empty
    topics  'Z', topic u64, 0 u32                           due ms u64, deferred entries u64, place (20 bytes)
    groups  'Z', topic u64, group u32 (1, 2, …)             due ms u64, the group's name

Group 0 stands for the topic itself: its deferred entries. A due time of 2^64-1 means never, and is not in the order. A
topic has its row if it has deferred entries or a group with a row; `place` is where its key stands. The order's rows of
a topic or a group that is gone are removed when their time comes.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.databases import DEADLINES
from rlite_pubsub.storage.environment import Txn

NEVER = 2**64 - 1
_ORDER = DEADLINES + bytes(8)
_ORDERED = Struct(">QQI")
_ROW = Struct(">QI")
_TOPIC = Struct(">QQ")
_TOPIC_NUMBER = Struct(">Q")
_GROUP = Struct(">Q")


class Deadline(NamedTuple):
    """A row of the order."""

    due_ms: int
    topic: int
    group: int


class TopicRow(NamedTuple):
    """The row of a topic."""

    due_ms: int
    deferred: int
    place: bytes


class GroupRow(NamedTuple):
    """The row of a group."""

    due_ms: int
    name: bytes


def first(txn: Txn) -> Deadline | None:
    """Return the next deadline."""
    cursor = txn.cursor()
    if not cursor.set_range(_ORDER):
        return None
    key = cursor.key()
    return Deadline(*_ORDERED.unpack_from(key, len(_ORDER))) if key.startswith(_ORDER) else None


def remove(txn: Txn, deadline: Deadline) -> None:
    """Remove a deadline from the order."""
    if deadline.due_ms != NEVER:
        txn.delete(_ORDER + _ORDERED.pack(*deadline))


def topic_row(txn: Txn, topic: int) -> TopicRow | None:
    found = txn.get(DEADLINES + _ROW.pack(topic, 0))
    if found is None:
        return None
    due_ms, deferred = _TOPIC.unpack_from(found)
    return TopicRow(due_ms, deferred, found[_TOPIC.size :])


def put_topic(txn: Txn, topic: int, row: TopicRow) -> None:
    before = topic_row(txn, topic)
    _order(txn, NEVER if before is None else before.due_ms, Deadline(row.due_ms, topic, 0))
    txn.put(DEADLINES + _ROW.pack(topic, 0), _TOPIC.pack(row.due_ms, row.deferred) + row.place)


def group_row(txn: Txn, topic: int, group: int) -> GroupRow | None:
    found = txn.get(DEADLINES + _ROW.pack(topic, group))
    return None if found is None else GroupRow(_GROUP.unpack_from(found)[0], found[_GROUP.size :])


def put_group(txn: Txn, topic: int, place: bytes, group: int, row: GroupRow) -> None:
    """Write a group's row; `place` is the topic's."""
    before = group_row(txn, topic, group)
    if before is None and topic_row(txn, topic) is None:
        put_topic(txn, topic, TopicRow(NEVER, 0, place))
    _order(txn, NEVER if before is None else before.due_ms, Deadline(row.due_ms, topic, group))
    txn.put(DEADLINES + _ROW.pack(topic, group), _GROUP.pack(row.due_ms) + row.name)


def remove_group(txn: Txn, topic: int, group: int) -> None:
    row = group_row(txn, topic, group)
    if row is not None:
        remove(txn, Deadline(row.due_ms, topic, group))
        txn.delete(DEADLINES + _ROW.pack(topic, group))


def remove_all(txn: Txn, topic: int) -> None:
    """Remove all of a topic, and of its groups."""
    of_topic = DEADLINES + _TOPIC_NUMBER.pack(topic)
    for key, value in list(databases.items(txn, of_topic)):
        group = _ROW.unpack_from(key, len(DEADLINES))[1]
        remove(txn, Deadline(_GROUP.unpack_from(value)[0], topic, group))
        txn.delete(key)


def move(txn: Txn, topic: int, place: bytes) -> None:
    """Note where the topic's key stands now, after a move or for the first time."""
    row = topic_row(txn, topic)
    if row is not None and row.place != place:
        put_topic(txn, topic, row._replace(place=place))


def copy(txn: Txn, source: int, target: int, place: bytes) -> None:
    """Give another topic the same deadlines; its key stands at `place`."""
    row = topic_row(txn, source)
    if row is None:
        return
    put_topic(txn, target, row._replace(place=place))
    of_source = DEADLINES + _TOPIC_NUMBER.pack(source)
    for key, _ in list(databases.items(txn, of_source)):
        group = _ROW.unpack_from(key, len(DEADLINES))[1]
        if group:
            found = group_row(txn, source, group)
            assert found is not None
            put_group(txn, target, place, group, found)


def _order(txn: Txn, before_ms: int, deadline: Deadline) -> None:
    if before_ms != deadline.due_ms:
        remove(txn, deadline._replace(due_ms=before_ms))
        if deadline.due_ms != NEVER:
            txn.put(_ORDER + _ORDERED.pack(*deadline), b"")
