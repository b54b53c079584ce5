"""The members of large sets: one record for each, under its digest (digests.py).

    key    'M', number u64, digest (16 bytes)    value  the member
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.keys import digests, key_bytes

_NUMBER: Final = Struct(">cQ")
_pack_number: Final = _NUMBER.pack
_member_rows: Final = key_bytes.member_rows


class HeldMember:
    """A member in memory, and its key."""

    __slots__ = ("at", "key", "member")

    def __init__(self, key: bytes, member: bytes) -> None:
        self.key = key
        self.member = member
        self.at = -1  # its place in the list from which members are drawn; -1: none


def prefix(number: int) -> bytes:
    """Return the beginning of the keys of a set's members."""
    return _NUMBER.pack(databases.MEMBERS, number)


def key(number: int, member: bytes) -> bytes:
    """Return the key of a member; its record is the member itself."""
    return _pack_number(databases.MEMBERS, number) + digests.digest(member)


def rows(number: int, found: list[bytes]) -> dict[bytes, bytes | None]:
    """Return the records of these members, by their keys."""
    return _member_rows(_pack_number(databases.MEMBERS, number), found)


def stretch_of(key: bytes, bits: int) -> int:
    """Return the stretch (digests.py) of a member, from its key."""
    return digests.stretch_of(key, _NUMBER.size, bits)


def walk(txn: Txn, number: int) -> Iterator[bytes]:
    """Yield every member. Change nothing meanwhile."""
    return digests.walk(txn, prefix(number))
