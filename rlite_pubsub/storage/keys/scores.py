"""The members of large sorted sets: each one's score, under its digest (digests.py).

    key    'e', number u64, digest (16 bytes)    value  score f64, member

Their order is in ranks.py.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.keys import digests, key_bytes

_NUMBER: Final = Struct(">cQ")
_SCORE: Final = Struct(">d")
pack: Final = key_bytes.scored
_pack_number: Final = _NUMBER.pack


def prefix(number: int) -> bytes:
    """Return the beginning of the keys of a sorted set's members."""
    return _NUMBER.pack(databases.SCORES, number)


def unpack(value: bytes) -> tuple[bytes, float]:
    """Return a member and its score."""
    return value[_SCORE.size :], float(_SCORE.unpack_from(value)[0])


def key(number: int, member: bytes) -> bytes:
    """Return the key of a member's score."""
    return _pack_number(databases.SCORES, number) + digests.digest(member)


class HeldScore:
    """A member's score in memory, and its key."""

    __slots__ = ("key", "place", "score")

    def __init__(self, key: bytes, score: float) -> None:
        self.key = key
        self.score = score
        self.place = b""
        """Where it stands in the order; empty: it was not needed yet."""
