"""Unreachable records, removed a little at a time: flushed spaces and deleted topics.

    key  'X', kind u8, number u64    value empty

Deleting a topic of a million entries, or flushing a database, writes one record here; `sweep` does the rest in steps.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.cold import cold_blocks
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.keys import fields, key_records

SPACE: Final = 0
TOPIC: Final = 1
_NUMBER: Final = Struct(">BQ")
_SPACE: Final = Struct(">I")
_TOPIC: Final = Struct(">Q")
OF_A_TOPIC: Final = (
    databases.TOMBSTONES,
    databases.EVENT_TYPES,
    databases.ENTRIES,
    databases.GROUPS,
    databases.CONSUMERS,
    databases.PENDING,
    databases.RELEASED,
    databases.IN_FLIGHT,
    databases.DEFERRED,
    databases.DEADLINES,
    databases.TOPIC_SETTINGS,
    databases.TRIM_MARKS,
    databases.PUBLICATIONS,
    databases.SEGMENTS,
    databases.ELEMENTS,
    databases.MEMBERS,
    databases.FIELDS,
    databases.FIELD_EXPIRIES,
    databases.SCORES,
    databases.ORDERS,
)
"""Databases whose keys go on with the topic's number."""


def add(txn: Txn, kind: int, number: int) -> None:
    txn.put(databases.GARBAGE + _NUMBER.pack(kind, number), b"")


def exists(txn: Txn) -> bool:
    return next(databases.items(txn, databases.GARBAGE), None) is not None


def sweep(txn: Txn, limit: int, cold_due_ms: int) -> int:
    """Remove about `limit` records at most; return how many, None if there is no garbage. Files of the cold store
    become due."""
    removed = 0
    for key, _ in list(databases.items(txn, databases.GARBAGE)):
        kind, number = _NUMBER.unpack_from(key, 1)
        if kind == SPACE:
            removed += _sweep_space(txn, number, limit - removed)
        else:
            removed += _sweep_topic(txn, number, limit - removed, cold_due_ms)
        if removed >= limit:
            break
        txn.delete(key)
    return removed


def _sweep_space(txn: Txn, space: int, limit: int) -> int:
    """Remove a space's keys, and what belongs to them."""
    found = []
    for key, value in databases.items(txn, databases.KEYS + _SPACE.pack(space)):
        found.append((key, key_records.unpack(value)))
        if len(found) >= limit:
            break
    for key, record in found:
        number = _TOPIC.unpack_from(record.body)[0] if record.type in key_records.NUMBERED else 0
        if number:
            add(txn, TOPIC, number)
        if record.type == key_records.HASH:
            fields.set_expiring(txn, fields.row_of(record.body, key[1:]), b"")
        key_records.set_expiry(txn, key[1:], record.expires_ms, 0)
        txn.delete(key)
    return len(found)


def sweep_topic(txn: Txn, number: int) -> None:
    """Remove a topic at once: it is known to be small, and to have no blocks."""
    _sweep_topic(txn, number, 1 << 62, 0)
    txn.delete(databases.GARBAGE + _NUMBER.pack(TOPIC, number))


def _sweep_topic(txn: Txn, number: int, limit: int, cold_due_ms: int) -> int:
    removed = cold_blocks.remove_all(txn, number, cold_due_ms, limit)
    if removed >= limit:
        return removed
    for database in OF_A_TOPIC:
        found: list[bytes] = []
        for key, _ in databases.items(txn, database + _TOPIC.pack(number)):
            if len(found) >= limit - removed:
                break
            found.append(key)
        for key in found:
            txn.delete(key)
        removed += len(found)
        if removed >= limit:
            break
    return removed
