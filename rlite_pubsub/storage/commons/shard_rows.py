"""What a member of a sharded store knows of it. In data.mdb.

    key  '\\0' "member"     value  id (20 bytes), random: by it the others know this store
    key  '\\0' "shards"     value  the directory: which member has which slots (engine/shards/directory.py), JSON
    key  '\\0' "leaving"    value  slots that this store has given away, and whose keys are not known to have arrived:
                                  JSON, [[slot, ...], id of the member], and so on
    key  'v', topic u64    value  empty: a topic that is on its way in, and belongs to no key yet

A store without a directory is not sharded.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from struct import Struct

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.databases import ARRIVING, LEAVING, MEMBER, SHARD_DIRECTORY
from rlite_pubsub.storage.environment import Txn

_ID_BYTES = 20
_TOPIC = Struct(">Q")


def member(txn: Txn) -> bytes | None:
    """Return the store's 40 hex digits; None if nobody has asked for them yet."""
    found = txn.get(MEMBER)
    return None if found is None else found.hex().encode()


def settle_member(txn: Txn) -> bytes:
    """Return the store's id, making it if it has none."""
    if txn.get(MEMBER) is None:
        txn.put(MEMBER, secrets.token_bytes(_ID_BYTES))
    found = member(txn)
    assert found is not None
    return found


def directory(txn: Txn) -> bytes | None:
    """Return the directory as it was written; None if the store is not sharded."""
    return txn.get(SHARD_DIRECTORY)


def put_directory(txn: Txn, text: bytes) -> None:
    txn.put(SHARD_DIRECTORY, text)


def leaving(txn: Txn) -> bytes:
    """Return the slots on their way out, as they were written; empty if there are none."""
    return txn.get(LEAVING) or b""


def put_leaving(txn: Txn, text: bytes) -> None:
    if text:
        txn.put(LEAVING, text)
    else:
        txn.delete(LEAVING)


def begin_arrival(txn: Txn, topic: int) -> None:
    """Note that a topic of this number is on its way in."""
    txn.put(ARRIVING + _TOPIC.pack(topic), b"")


def end_arrival(txn: Txn, topic: int) -> None:
    """Note that a topic has arrived: it belongs to a key now, or is garbage."""
    txn.delete(ARRIVING + _TOPIC.pack(topic))


def is_arriving(txn: Txn, topic: int) -> bool:
    """Return whether a topic of this number is on its way in."""
    return txn.get(ARRIVING + _TOPIC.pack(topic)) is not None


def arriving(txn: Txn) -> Iterator[int]:
    """Yield the numbers of topics that are on their way in. Change nothing meanwhile."""
    for key, _ in databases.items(txn, ARRIVING):
        yield _TOPIC.unpack_from(key, len(ARRIVING))[0]
