"""Where to look for entries that have been in flight for too long, in groups with a timeout.

    key    'I', topic u64, group u32, delivered ms u64, kind u8    first id (16 bytes), last id (16 bytes)

It says that entries between these ids were delivered by then, and since the record before. They need not be pending any
more, and others may lie in between: each pending entry's own record decides. New entries (0) are apart from redelivered
ones (1), whose ids may lie far from each other. The time is rounded up, so that there are few of these records, however
many deliveries there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.databases import IN_FLIGHT
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.topics import entry_ids

NEW, AGAIN = range(2)
_GROUP = Struct(">QI")
_WHEN = Struct(">QB")


class FlightBatch(NamedTuple):
    """A record of entries in flight."""

    key: bytes
    delivered_ms: int
    """The latest time of delivery."""
    first: bytes
    """Ids, packed."""
    last: bytes


def note(txn: Txn, topic: int, group: int, delivered_ms: int, kind: int, first: bytes, last: bytes) -> None:
    """Record that something between these ids was delivered by then."""
    key = IN_FLIGHT + _GROUP.pack(topic, group) + _WHEN.pack(delivered_ms, kind)
    found = txn.get(key)
    if found is not None:
        first, last = min(first, found[: entry_ids.BYTES]), max(last, found[entry_ids.BYTES :])
    txn.put(key, first + last)


def walk(txn: Txn, topic: int, group: int) -> Iterator[FlightBatch]:
    """Yield all records, the oldest delivery first. Change nothing meanwhile."""
    of_group = IN_FLIGHT + _GROUP.pack(topic, group)
    for key, value in databases.items(txn, of_group):
        delivered_ms, _ = _WHEN.unpack_from(key, len(of_group))
        yield FlightBatch(key, delivered_ms, value[: entry_ids.BYTES], value[entry_ids.BYTES :])


def go_on_from(txn: Txn, batch: FlightBatch, first: bytes | None) -> None:
    """Shorten a record: everything before this id has been looked at; None: all of it."""
    if first is None:
        txn.delete(batch.key)
    else:
        txn.put(batch.key, first + batch.last)


def delete_all(txn: Txn, topic: int, group: int) -> None:
    databases.delete_all(txn, IN_FLIGHT + _GROUP.pack(topic, group))
