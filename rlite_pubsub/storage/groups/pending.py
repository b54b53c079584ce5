"""What the groups of topics have delivered and nobody has acknowledged: runs of ids with the same consumer and
delivery.

    key    'P', topic u64, group u32, an id (16 bytes) at most the run's first, and above the last of the run before
    value  consumer u32, delivered ms u64, deliveries u64, ids, 16 bytes each, in order

A read of a hundred new entries is one run, copied from the chunks' ids, and its acknowledgement as a whole is one
removal. Runs of a group never overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import TypeAlias

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.databases import PENDING
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.topics import entry_ids

_GROUP = Struct(">QI")
_FATE = Struct(">IQQ")
FATE_BYTES = _FATE.size
MAX_RUN_BYTES = 120 * entry_ids.BYTES
"""The size up to which a run shares its page with another one."""

Fate: TypeAlias = tuple[int, int, int]
"""(consumer's number, time of the last delivery in ms, number of deliveries)."""


class PendingRun:
    """One run, read from the store."""

    __slots__ = ("fate", "ids", "key")

    def __init__(self, key: bytes, value: bytes) -> None:
        self.key = key
        self.fate: Fate = _FATE.unpack_from(value)
        self.ids = value[FATE_BYTES:]

    @property
    def low(self) -> bytes:
        """The packed lower bound: no id of this run is below it."""
        return self.key[-entry_ids.BYTES :]

    @property
    def high(self) -> bytes:
        """The run's last id, packed."""
        return self.ids[-entry_ids.BYTES :]


def prefix(topic: int, group: int) -> bytes:
    """Return the beginning of the keys of a group's runs."""
    return PENDING + _GROUP.pack(topic, group)


def covering(txn: Txn, of_group: bytes, packed: bytes) -> PendingRun | None:
    """Return the run whose bounds this id is in, whether the run holds it or not."""
    run = before(txn, of_group, packed)
    return run if run is not None and run.high >= packed else None


def before(txn: Txn, of_group: bytes, packed: bytes) -> PendingRun | None:
    """Return the last run whose key is at most this id's."""
    found = databases.last_up_to(txn, of_group, of_group + packed)
    return PendingRun(*found) if found is not None else None


def last(txn: Txn, of_group: bytes) -> PendingRun | None:
    return before(txn, of_group, b"\xff" * entry_ids.BYTES)


def walk(txn: Txn, of_group: bytes, packed: bytes = b"\0" * entry_ids.BYTES) -> Iterator[PendingRun]:
    """Yield the runs that may hold ids from this one on, in order. Change nothing meanwhile."""
    run = covering(txn, of_group, packed)
    for key, value in databases.items_from(txn, of_group, of_group + packed if run is None else run.key):
        yield PendingRun(key, value)


def put(txn: Txn, key: bytes, fate: Fate, ids: bytes) -> None:
    """Store a run under a key, new or replacing another; without ids, remove it."""
    if ids:
        txn.put(key, _FATE.pack(*fate) + ids)
    else:
        txn.delete(key)


def add(txn: Txn, of_group: bytes, fate: Fate, ids: bytes) -> None:
    """Store ids, in order, that lie between two runs or after all of them."""
    head = _FATE.pack(*fate)
    for start in range(0, len(ids), MAX_RUN_BYTES):
        txn.put(of_group + ids[start : start + entry_ids.BYTES], head + ids[start : start + MAX_RUN_BYTES])


def delete_all(txn: Txn, topic: int, group: int) -> None:
    databases.delete_all(txn, prefix(topic, group))
