"""The groups of topics.

    key    'G', topic u64, name part
    value  group u32, last id (16 bytes), entries read i64 (-1: unknown), pending u64, consumers u32,
           highest consumer u32, length of the settings u32, the settings (group_settings.py), rest of the name

A group's number is never reused within its topic: the records under it (consumers, pending entries) are removed with
the group.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases, key_parts
from rlite_pubsub.storage.databases import GROUPS
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.groups import group_settings
from rlite_pubsub.storage.groups.group_settings import GroupSettings
from rlite_pubsub.storage.topics.entry_ids import Id

_TOPIC = Struct(">Q")
_BODY = Struct(">IQQqQIII")
_PREFIX_BYTES = 1 + _TOPIC.size
_UNKNOWN = -1
_OF_IDLE_GROUPS = (GROUPS, databases.CONSUMERS)


class GroupRecord(NamedTuple):
    """One group, as it is stored."""

    name: bytes
    number: int
    last_id: Id
    entries_read: int | None
    pending: int
    consumers: int
    last_consumer: int
    settings: GroupSettings


def get(txn: Txn, topic: int, name: bytes) -> GroupRecord | None:
    value = txn.get(_key(topic, name))
    return _unpacked(name, value) if value is not None else None


def put(txn: Txn, topic: int, record: GroupRecord) -> None:
    settings = group_settings.pack(record.settings)
    entries_read = _UNKNOWN if record.entries_read is None else record.entries_read
    body = _BODY.pack(
        record.number,
        *record.last_id,
        entries_read,
        record.pending,
        record.consumers,
        record.last_consumer,
        len(settings),
    )
    txn.put(_key(topic, record.name), body + settings + key_parts.value_part(record.name))


def delete(txn: Txn, topic: int, name: bytes) -> None:
    txn.delete(_key(topic, name))


def of_topic(txn: Txn, topic: int) -> Iterator[GroupRecord]:
    """Yield every group of the topic, in no particular order. Change nothing meanwhile."""
    for key, value in databases.items(txn, GROUPS + _TOPIC.pack(topic)):
        name, _ = key_parts.split(key, _PREFIX_BYTES, value[_BODY.size + _BODY.unpack_from(value)[-1] :])
        yield _unpacked(name, value)


def copy(txn: Txn, old: int, new: int) -> None:
    """Give a topic without groups all groups of another one, with their consumers and pending entries."""
    for database in (*_OF_IDLE_GROUPS, databases.PENDING, databases.RELEASED, databases.IN_FLIGHT):
        databases.copy_all(txn, database + _TOPIC.pack(old), database + _TOPIC.pack(new))


def copy_idle(txn: Txn, old: int, new: int) -> None:
    """Like `copy`, without the pending entries, which the records still count."""
    for database in _OF_IDLE_GROUPS:
        databases.copy_all(txn, database + _TOPIC.pack(old), database + _TOPIC.pack(new))


def _key(topic: int, name: bytes) -> bytes:
    return GROUPS + _TOPIC.pack(topic) + key_parts.key_part(name)


def _unpacked(name: bytes, value: bytes) -> GroupRecord:
    number, ms, seq, entries_read, pending, consumers, last_consumer, length = _BODY.unpack_from(value)
    settings = group_settings.unpack(value[_BODY.size : _BODY.size + length])
    read = None if entries_read == _UNKNOWN else entries_read
    return GroupRecord(name, number, (ms, seq), read, pending, consumers, last_consumer, settings)
