"""Entries that came back to a group: they are no longer in flight, and are to be delivered again.

    by id    'R', topic u64, group u32, 0 u8, id (16 bytes)            due ms u64, deliveries u64, last delivery ms u64
    by time  'R', topic u64, group u32, 1 u8, due ms u64, id (16 bytes)  empty

Due at 0 means at once. Records of earlier versions end before the last delivery. Both rows change together, here.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.databases import RELEASED
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.topics import entry_ids

_GROUP = Struct(">QI")
_FATE = Struct(">QQQ")
_FATE_BEFORE = Struct(">QQ")
_DUE = Struct(">Q")
_BY_ID, _BY_TIME = b"\0", b"\1"
_DUE_BYTES = _DUE.size


class Released(NamedTuple):
    """A released entry."""

    id: bytes
    """Packed."""
    due_ms: int
    deliveries: int
    """So far."""
    delivered_ms: int = 0
    """When it was last delivered; 0: unknown."""


def prefix(topic: int, group: int) -> bytes:
    """Return the beginning of the keys of a group's released entries."""
    return RELEASED + _GROUP.pack(topic, group)


def get(txn: Txn, of_group: bytes, packed: bytes) -> Released | None:
    found = txn.get(of_group + _BY_ID + packed)
    if found is None:
        return None
    return Released(packed, *(_FATE if len(found) == _FATE.size else _FATE_BEFORE).unpack(found))


def put(txn: Txn, of_group: bytes, entry: Released) -> None:
    """Add a released entry."""
    txn.put(of_group + _BY_ID + entry.id, _FATE.pack(entry.due_ms, entry.deliveries, entry.delivered_ms))
    txn.put(of_group + _BY_TIME + _DUE.pack(entry.due_ms) + entry.id, b"")


def delete(txn: Txn, of_group: bytes, entry: Released) -> None:
    txn.delete(of_group + _BY_ID + entry.id)
    txn.delete(of_group + _BY_TIME + _DUE.pack(entry.due_ms) + entry.id)


def due(txn: Txn, of_group: bytes, now_ms: int, limit: int | None) -> list[Released]:
    """Return at most `limit` entries that are due, in the order of their times, then of their ids."""
    found: list[Released] = []
    by_time = of_group + _BY_TIME
    for key, _ in databases.items(txn, by_time):
        due_ms = _due_of(key, by_time)
        if due_ms > now_ms or len(found) == limit:
            break
        packed = key[len(by_time) + _DUE_BYTES :]
        entry = get(txn, of_group, packed)
        assert entry is not None
        found.append(entry)
    return found


def first_due_ms(txn: Txn, of_group: bytes, after_ms: int = -1) -> int | None:
    """Return when the next one after that time is due."""
    by_time = of_group + _BY_TIME
    start = by_time + _DUE.pack(after_ms + 1)
    key = next((key for key, _ in databases.items_from(txn, by_time, start)), None)
    return None if key is None else _due_of(key, by_time)


def count_after(txn: Txn, of_group: bytes, now_ms: int) -> int:
    """Return how many are not due yet."""
    by_time = of_group + _BY_TIME
    return sum(1 for _ in databases.items_from(txn, by_time, by_time + _DUE.pack(now_ms + 1)))


def first_id(txn: Txn, of_group: bytes) -> bytes | None:
    """Return the lowest id, packed."""
    return next(ids_from(txn, of_group), None)


def ids_from(txn: Txn, of_group: bytes, packed: bytes = entry_ids.pack(entry_ids.MIN)) -> Iterator[bytes]:
    """Yield the packed ids from this one on, in order. Change nothing meanwhile."""
    by_id = of_group + _BY_ID
    for key, _ in databases.items_from(txn, by_id, by_id + packed):
        yield key[len(by_id) :]


def delete_all(txn: Txn, topic: int, group: int) -> None:
    databases.delete_all(txn, prefix(topic, group))


def _due_of(key: bytes, by_time: bytes) -> int:
    return int(_DUE.unpack_from(key, len(by_time))[0])
