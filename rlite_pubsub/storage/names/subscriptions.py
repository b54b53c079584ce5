"""subscriber id -> every name it holds: the other direction of receivers, needed to reap it.

Only receivers.py changes it, so that the two cannot differ.

    key    'n' | subscriber u64 | database u8 | name part
    value  the rest of a long name
"""

from __future__ import annotations

from struct import Struct

from rlite_pubsub.storage import databases, key_parts
from rlite_pubsub.storage.environment import Txn

_HEAD = Struct(">cQ")


def key(subscriber: int, database: bytes, name_part: bytes) -> bytes:
    """Return the key of a name that the subscriber holds; its value is the rest of a long one."""
    return _HEAD.pack(databases.SUBSCRIPTIONS, subscriber) + database + name_part


def held(txn: Txn, subscriber: int, limit: int | None = None) -> list[tuple[bytes, bytes]]:
    """Return (database's byte, name) of each name that the subscriber holds, at most `limit` of them."""
    prefix = _HEAD.pack(databases.SUBSCRIPTIONS, subscriber)
    found: list[tuple[bytes, bytes]] = []
    for key, value in databases.items(txn, prefix):
        if limit is not None and len(found) == limit:
            break
        name, _ = key_parts.split(key, len(prefix) + 1, value)
        found.append((key[len(prefix) : len(prefix) + 1], name))
    return found


def names_of(txn: Txn, subscriber: int, database: bytes, limit: int | None = None) -> list[bytes]:
    """Return the names of one kind that it holds, at most `limit` of them."""
    prefix = _HEAD.pack(databases.SUBSCRIPTIONS, subscriber) + database
    found: list[bytes] = []
    for key, value in databases.items(txn, prefix):
        if limit is not None and len(found) >= limit:
            break
        found.append(key_parts.split(key, len(prefix), value)[0])
    return found


def count_of(txn: Txn, subscriber: int, database: bytes, limit: int | None = None) -> int:
    """Return how many names of one kind it holds, counting no further than `limit`."""
    prefix = _HEAD.pack(databases.SUBSCRIPTIONS, subscriber) + database
    cursor = txn.cursor()
    count = 0
    if cursor.set_range(prefix):
        for key in cursor.iternext(values=False):
            if count == limit or not key.startswith(prefix):
                break
            count += 1
    return count


def subscribers(txn: Txn) -> list[int]:
    """Return all subscribers that hold a name."""
    return [int.from_bytes(head, "big") for head in databases.heads(txn, databases.SUBSCRIPTIONS, 8)]


def are_any(txn: Txn) -> bool:
    """Return whether any subscriber holds a name."""
    cursor = txn.cursor()
    return bool(cursor.set_range(databases.SUBSCRIPTIONS)) and bytes(cursor.key()).startswith(databases.SUBSCRIPTIONS)
