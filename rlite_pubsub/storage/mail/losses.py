"""subscriber -> what it has lost and has not been told of yet, by channel.

Of a durable subscriber in data.mdb. Of a process in live.mdb: there a byte stands before each channel, its kind as in
letters.py.

key 'g' | subscriber u64 | name part of the channel value messages u64 | since, ms since 1970 u64 | the rest of a long
name
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases, key_parts
from rlite_pubsub.storage.environment import Txn

_HEAD = Struct(">cQ")
_VALUE = Struct(">QQ")


class LostMessages(NamedTuple):
    """Lost messages of one channel."""

    channel: bytes
    messages: int
    since_ms: int


def add(txn: Txn, durable: int, channel: bytes, messages: int, since_ms: int) -> bool:
    """Count this many more; `since_ms` counts if nothing was lost before. Returns True if nothing was."""
    before = _get(txn, durable, channel)
    if before is not None:
        messages += before.messages
        since_ms = before.since_ms
    _put(txn, durable, LostMessages(channel, messages, since_ms))
    return before is None


def told(txn: Txn, durable: int, channel: bytes, messages: int) -> None:
    """Note that the subscriber was told of this many; what was lost meanwhile stays."""
    before = _get(txn, durable, channel)
    if before is None:
        return
    if before.messages > messages:
        _put(txn, durable, before._replace(messages=before.messages - messages))
    else:
        txn.delete(_key(durable, channel))


def of(txn: Txn, durable: int, limit: int | None = None) -> list[LostMessages]:
    """Return what it must be told of, at most this many channels."""
    prefix = _HEAD.pack(databases.LOSSES, durable)
    found: list[LostMessages] = []
    for key, value in databases.items(txn, prefix):
        if len(found) == limit:
            break
        channel, _ = key_parts.split(key, len(prefix), value[_VALUE.size :])
        found.append(LostMessages(channel, *_VALUE.unpack_from(value)))
    return found


def drop(txn: Txn, durable: int, limit: int) -> int:
    """Forget at most this many; return how many there were."""
    lost = of(txn, durable, limit)
    for one in lost:
        txn.delete(_key(durable, one.channel))
    return len(lost)


def _key(durable: int, channel: bytes) -> bytes:
    return _HEAD.pack(databases.LOSSES, durable) + key_parts.key_part(channel)


def _get(txn: Txn, durable: int, channel: bytes) -> LostMessages | None:
    found = txn.get(_key(durable, channel))
    return None if found is None else LostMessages(channel, *_VALUE.unpack_from(found))


def _put(txn: Txn, durable: int, lost: LostMessages) -> None:
    packed = _VALUE.pack(lost.messages, lost.since_ms) + key_parts.value_part(lost.channel)
    txn.put(_key(durable, lost.channel), packed)
