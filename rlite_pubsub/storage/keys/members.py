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
_pack_number: Final = _NUMBER.pack


class HeldMember:
    """A member in memory, and where it stands."""

    __slots__ = ("at", "key", "member")

    def __init__(self, key: bytes, member: bytes) -> None:
        self.key = key
        self.member = member
        self.at = -1  # in the list from which members are drawn; -1: it is not in there


def prefix(number: int) -> bytes:
    """With which the keys of a set's members begin."""
    return _NUMBER.pack(databases.MEMBERS, number)


def key(number: int, member: bytes) -> bytes:
    """Where a member stands; the record is the member itself."""
    return _pack_number(databases.MEMBERS, number) + digests.digest(member)


def stretch_of(key: bytes, bits: int) -> int:
    """In which of digests.py's stretches a member is, from where it stands."""
    return digests.stretch_of(key, _NUMBER.size, bits)


def walk(txn: Txn, number: int) -> Iterator[bytes]:
    """Every member. Change nothing meanwhile."""
    return digests.walk(txn, prefix(number))
