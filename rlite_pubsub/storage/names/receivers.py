"""name -> subscriber ids, each with its count of sessions: five databases that differ by a record.

`set_counts` is the one place that changes who receives what. It changes both directions of the index and moves the
routes version, in the caller's transaction. It states what is, not what changed: repeating it changes nothing.

    key    'c' | 'p' | 's' | 'w' | 'k', name part, subscriber u64
    value  sessions u32 | the rest of a long name
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases, key_parts
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.journal.recording import change_rows
from rlite_pubsub.storage.names import subscriptions, version

_SUBSCRIBER = Struct(">Q")
_SESSIONS = Struct(">I")


@dataclass(frozen=True, slots=True)
class Database:
    """One kind of live name, in the store."""

    name: str
    byte: bytes


CHANNELS = Database("channels", databases.CHANNELS)
PATTERNS = Database("patterns", databases.PATTERNS)
SHARDS = Database("shards", databases.SHARDS)
WAITS = Database("waits", databases.WAITS)
"""Processes by the keys that their sessions wait for."""
TRACKERS = Database("trackers", databases.TRACKERS)
"""Processes whose sessions track keys, under one empty name."""
DATABASES = {database.name: database for database in (CHANNELS, PATTERNS, SHARDS, WAITS, TRACKERS)}
_BY_BYTE = {database.byte: database for database in DATABASES.values()}


class Receiver(NamedTuple):
    """A subscriber that receives what is published to a name."""

    name: bytes
    subscriber: int
    sessions: int


def set_counts(txn: Txn, subscriber: int, counts: Mapping[tuple[str, bytes], int]) -> bool:
    """Set how many sessions of this subscriber hold each (database name, name), 0 for none. Returns True if that
    changes anything."""
    changed: dict[bytes, bytes | None] = {}
    who = _SUBSCRIBER.pack(subscriber)
    for (database, name), count in counts.items():
        byte, part = DATABASES[database].byte, key_parts.key_part(name)
        key = byte + part + who
        before = txn.get(key)
        if count <= 0:
            if before is not None:
                changed[key] = changed[subscriptions.key(subscriber, byte, part)] = None
            continue
        rest = key_parts.value_part(name)
        value = _SESSIONS.pack(count) + rest
        if before != value:
            changed[key] = value
            if before is None:
                changed[subscriptions.key(subscriber, byte, part)] = rest
    if not changed:
        return False
    change_rows(txn, changed)
    version.bump(txn)
    return True


def drop_subscriber(txn: Txn, subscriber: int, limit: int) -> int:
    """Remove it from at most `limit` of its names; return how many there were."""
    held = subscriptions.held(txn, subscriber, limit)
    set_counts(txn, subscriber, {(_BY_BYTE[byte].name, name): 0 for byte, name in held})
    return len(held)


def subscribers(txn: Txn, database: Database, name: bytes) -> list[tuple[int, int]]:
    """Return (subscriber, its count of sessions) for each that receives what is published to this name."""
    prefix = database.byte + key_parts.key_part(name)
    at = len(prefix)
    return [
        (_SUBSCRIBER.unpack_from(key, at)[0], _SESSIONS.unpack_from(value)[0])
        for key, value in databases.items(txn, prefix)
    ]


def receivers(txn: Txn, database: Database) -> list[Receiver]:
    """Return all receivers of the database; those of one name stand together."""
    found = []
    for key, value in databases.items(txn, database.byte):
        name, end = key_parts.split(key, 1, value[_SESSIONS.size :])
        found.append(Receiver(name, _SUBSCRIBER.unpack_from(key, end)[0], _SESSIONS.unpack_from(value)[0]))
    return found


def distinct_names(txn: Txn, database: Database) -> list[bytes]:
    """Return each name that anybody holds, once."""
    return list(dict.fromkeys(receiver.name for receiver in receivers(txn, database)))


def total_sessions(txn: Txn, database: Database, name: bytes) -> int:
    """Return how many sessions hold this name, over all subscribers."""
    return sum(sessions for _, sessions in subscribers(txn, database, name))
