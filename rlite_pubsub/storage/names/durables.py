"""name -> a durable subscriber, which outlives its connections, with its limits. In data.mdb.

Its names, mailbox and messages have the same layout in data.mdb as a process's have in live.mdb, under its id.

    key    'd' | name part
    value  id u64 | ttl, s u64 | max bytes u64 | max messages u64 (0 for none of each) | made, ms since 1970 u64
           | last seen, ms u64 | messages dropped u64 | expired u8 | the rest of a long name
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from rlite_pubsub.storage import databases, key_parts
from rlite_pubsub.storage.environment import Txn

_RECORD = Struct(">QQQQQQQB")


@dataclass(frozen=True, slots=True)
class Durable:
    """A durable subscriber's record."""

    name: bytes
    id: int
    ttl_s: int
    """How long it may be away; 0 is forever."""
    max_bytes: int
    """The number of messages that may wait for it; 0 is any number."""
    max_messages: int
    made_ms: int
    seen_ms: int
    """When it was last known to be attached."""
    dropped: int = 0
    """How many messages its limits have dropped, ever."""
    is_expired: bool = False
    """It was away for too long: its names and its messages are gone, and it will be told so."""

    @property
    def is_limited(self) -> bool:
        return bool(self.max_bytes or self.max_messages)


def put(txn: Txn, durable: Durable) -> None:
    packed = _RECORD.pack(
        durable.id,
        durable.ttl_s,
        durable.max_bytes,
        durable.max_messages,
        durable.made_ms,
        durable.seen_ms,
        durable.dropped,
        durable.is_expired,
    )
    txn.put(databases.DURABLES + key_parts.key_part(durable.name), packed + key_parts.value_part(durable.name))


def get(txn: Txn, name: bytes) -> Durable | None:
    key = databases.DURABLES + key_parts.key_part(name)
    found = txn.get(key)
    return None if found is None else _unpack(key, found)


def exists(txn: Txn, durable: Durable) -> bool:
    """Return whether it still exists, and is not another one of the same name."""
    recorded = get(txn, durable.name)
    return recorded is not None and recorded.id == durable.id


def remove(txn: Txn, name: bytes) -> bool:
    return txn.delete(databases.DURABLES + key_parts.key_part(name))


def every(txn: Txn) -> list[Durable]:
    """Return all of them, by name."""
    return [_unpack(key, value) for key, value in databases.items(txn, databases.DURABLES)]


def count(txn: Txn) -> int:
    """Return how many there are, by looking at all."""
    return sum(1 for _ in databases.items(txn, databases.DURABLES))


def _unpack(key: bytes, value: bytes) -> Durable:
    id, ttl_s, max_bytes, max_messages, made_ms, seen_ms, dropped, is_expired = _RECORD.unpack_from(value)
    name, _ = key_parts.split(key, 1, value[_RECORD.size :])
    return Durable(name, id, ttl_s, max_bytes, max_messages, made_ms, seen_ms, dropped, bool(is_expired))
