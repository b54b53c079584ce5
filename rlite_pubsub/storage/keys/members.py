"""What large sets hold: one record for each member, under its digest (digests.py).

    key    'M', number u64, digest (16 bytes)    value  the member
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.keys import digests

_NUMBER: Final = Struct(">cQ")


def prefix(number: int) -> bytes:
    """With which the keys of a set's members begin."""
    return _NUMBER.pack(databases.MEMBERS, number)


def _key(number: int, member: bytes) -> bytes:
    return prefix(number) + digests.digest(member)


def add(txn: Txn, number: int, member: bytes) -> bool:
    """False if it was there."""
    return bool(txn.put(_key(number, member), member, overwrite=False))


def has(txn: Txn, number: int, member: bytes) -> bool:
    return txn.get(_key(number, member)) is not None


def remove(txn: Txn, number: int, member: bytes) -> bool:
    """False if it was not there."""
    return bool(txn.delete(_key(number, member)))


def walk(txn: Txn, number: int) -> Iterator[bytes]:
    """Every member. Change nothing meanwhile."""
    return digests.walk(txn, prefix(number))
