"""The consumers of groups, by number, as pending entries name them, and the numbers by name.

key    'C', topic u64, group u32, consumer u32 (1, 2, …)     value  seen ms u64, pending u64, the name
key    'C', topic u64, group u32, 0 (u32), name part         value  consumer u32, rest of the name
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases, key_parts
from rlite_pubsub.storage.databases import CONSUMERS
from rlite_pubsub.storage.environment import Txn

_GROUP = Struct(">QI")
_NUMBER = Struct(">I")
_BODY = Struct(">QQ")
_NAMES = _NUMBER.pack(0)
_FIRST = _NUMBER.pack(1)


class ConsumerRecord(NamedTuple):
    """One consumer, as it is stored."""

    number: int
    name: bytes
    seen_ms: int
    pending: int


def number_of(txn: Txn, topic: int, group: int, name: bytes) -> int | None:
    """Return the number of the consumer of this name."""
    value = txn.get(_of_group(topic, group) + _NAMES + key_parts.key_part(name))
    return _NUMBER.unpack_from(value)[0] if value is not None else None


def get(txn: Txn, topic: int, group: int, number: int) -> ConsumerRecord | None:
    value = txn.get(_of_group(topic, group) + _NUMBER.pack(number))
    return ConsumerRecord(number, value[_BODY.size :], *_BODY.unpack_from(value)) if value is not None else None


def put(txn: Txn, topic: int, group: int, record: ConsumerRecord) -> None:
    """Write a consumer that `add` has made known, or is about to."""
    body = _BODY.pack(record.seen_ms, record.pending)
    txn.put(_of_group(topic, group) + _NUMBER.pack(record.number), body + record.name)


def add(txn: Txn, topic: int, group: int, record: ConsumerRecord) -> None:
    """Add a consumer, under a number that was never used."""
    put(txn, topic, group, record)
    by_name = _of_group(topic, group) + _NAMES + key_parts.key_part(record.name)
    txn.put(by_name, _NUMBER.pack(record.number) + key_parts.value_part(record.name))


def delete(txn: Txn, topic: int, group: int, number: int, name: bytes) -> None:
    of_group = _of_group(topic, group)
    txn.delete(of_group + _NUMBER.pack(number))
    txn.delete(of_group + _NAMES + key_parts.key_part(name))


def delete_all(txn: Txn, topic: int, group: int) -> None:
    databases.delete_all(txn, _of_group(topic, group))


def of_group(txn: Txn, topic: int, group: int) -> Iterator[ConsumerRecord]:
    """Yield every consumer of the group, in the order in which they were added. Change nothing meanwhile."""
    prefix = _of_group(topic, group)
    for key, value in databases.items_from(txn, prefix, prefix + _FIRST):
        number = _NUMBER.unpack_from(key, len(prefix))[0]
        yield ConsumerRecord(number, value[_BODY.size :], *_BODY.unpack_from(value))


def _of_group(topic: int, group: int) -> bytes:
    return CONSUMERS + _GROUP.pack(topic, group)
