"""subscriber id -> who it is: written when it joins, removed last when it leaves or is reaped.

    key    'u' | subscriber u64
    value  pid u32 | kind u8 | joined, ms since 1970 u64 | start of the process, clock ticks since boot u64 (0: unknown)
           | its pid namespace u64 (0: unknown) | its host's name

The id of the process is for people: in another pid namespace (a container) another process has it. Whether a subscriber
lives is said by its lock alone (wakeups/liveness.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Literal, TypeAlias

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn

Kind: TypeAlias = Literal["server", "embedded"]

_KEY = Struct(">cQ")
_RECORD = Struct(">IBQQQ")
_SHORT_RECORD = Struct(">IBQQ")
"""Without the namespace, of processes that were there before it was noted."""
_KINDS: tuple[Kind, ...] = ("server", "embedded")


@dataclass(frozen=True, slots=True)
class SubscriberRecord:
    """The identity of a subscriber."""

    pid: int
    kind: Kind
    joined_ms: int
    process_start: int
    namespace: int = 0
    host: str = ""


def put(txn: Txn, subscriber: int, record: SubscriberRecord) -> None:
    kind = _KINDS.index(record.kind)
    packed = _RECORD.pack(record.pid, kind, record.joined_ms, record.process_start, record.namespace)
    txn.put(_KEY.pack(databases.SUBSCRIBERS, subscriber), packed + record.host.encode())


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
    if len(value) == _SHORT_RECORD.size:
        pid, kind, joined_ms, process_start = _SHORT_RECORD.unpack(value)
        return SubscriberRecord(pid, _KINDS[kind], joined_ms, process_start)
    pid, kind, joined_ms, process_start, namespace = _RECORD.unpack_from(value)
    host = value[_RECORD.size :].decode(errors="replace")
    return SubscriberRecord(pid, _KINDS[kind], joined_ms, process_start, namespace, host)
