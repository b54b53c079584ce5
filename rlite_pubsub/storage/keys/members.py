"""What sets hold: one record for each member, under its digest.

    key    'M', number u64, digest (16 bytes)    value  the member
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from struct import Struct

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn

DIGEST_BYTES = 16
_NUMBER = Struct(">cQ")


def _key(number: int, member: bytes) -> bytes:
    return _NUMBER.pack(databases.MEMBERS, number) + blake2b(member, digest_size=DIGEST_BYTES).digest()


def add(txn: Txn, number: int, member: bytes) -> bool:
    """False if it was there."""
    return bool(txn.put(_key(number, member), member, overwrite=False))


def has(txn: Txn, number: int, member: bytes) -> bool:
    return txn.get(_key(number, member)) is not None


def remove(txn: Txn, number: int, member: bytes) -> bool:
    """False if it was not there."""
    return bool(txn.delete(_key(number, member)))


def walk(txn: Txn, number: int, digest: bytes = b"") -> Iterator[bytes]:
    """Every member whose digest is this one or above. Change nothing meanwhile."""
    of_set = _NUMBER.pack(databases.MEMBERS, number)
    for _, member in databases.items_from(txn, of_set, of_set + digest):
        yield member
