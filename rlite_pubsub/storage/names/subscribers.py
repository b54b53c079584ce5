"""subscriber id -> who it is: written when it joins, removed last when it leaves or is reaped.

    key    'u' | subscriber u64
    value  pid u32 | kind u8 | joined, ms since 1970 u64 | start of the process, clock ticks since boot u64 (0: unknown)
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Literal, TypeAlias

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn

Kind: TypeAlias = Literal["server", "embedded"]

_KEY = Struct(">cQ")
_RECORD = Struct(">IBQQ")
_KINDS: tuple[Kind, ...] = ("server", "embedded")


@dataclass(frozen=True, slots=True)
class SubscriberRecord:
    """The identity of a subscriber."""

    pid: int
    kind: Kind
    joined_ms: int
    process_start: int


def put(txn: Txn, subscriber: int, record: SubscriberRecord) -> None:
    packed = _RECORD.pack(record.pid, _KINDS.index(record.kind), record.joined_ms, record.process_start)
    txn.put(_KEY.pack(databases.SUBSCRIBERS, subscriber), packed)


def get(txn: Txn, subscriber: int) -> SubscriberRecord | None:
    found = txn.get(_KEY.pack(databases.SUBSCRIBERS, subscriber))
    return None if found is None else _unpack(found)


def remove(txn: Txn, subscriber: int) -> bool:
    return txn.delete(_KEY.pack(databases.SUBSCRIBERS, subscriber))


def records(txn: Txn) -> dict[int, SubscriberRecord]:
    """Return every subscriber that has joined and has not left."""
    return {_KEY.unpack(key)[1]: _unpack(value) for key, value in databases.items(txn, databases.SUBSCRIBERS)}


def ids(txn: Txn) -> set[int]:
    """Return the ids of all of them."""
    return {_KEY.unpack(key)[1] for key, _ in databases.items(txn, databases.SUBSCRIBERS)}


def _unpack(value: bytes) -> SubscriberRecord:
    pid, kind, joined_ms, process_start = _RECORD.unpack(value)
    return SubscriberRecord(pid, _KINDS[kind], joined_ms, process_start)
