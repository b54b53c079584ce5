"""What large sorted sets hold: the score of each member, under the member's digest (digests.py).

    key    'e', number u64, digest (16 bytes)    value  score f64, member

Their order is in ranks.py.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.keys import digests

_NUMBER: Final = Struct(">cQ")
_SCORE: Final = Struct(">d")
_pack_score: Final = _SCORE.pack
_pack_number: Final = _NUMBER.pack


def prefix(number: int) -> bytes:
    """With which the keys of a sorted set's members begin."""
    return _NUMBER.pack(databases.SCORES, number)


def unpack(value: bytes) -> tuple[bytes, float]:
    """A member and its score."""
    return value[_SCORE.size :], float(_SCORE.unpack_from(value)[0])


def key(number: int, member: bytes) -> bytes:
    """Where a member's score stands."""
    return _pack_number(databases.SCORES, number) + digests.digest(member)


def pack(score: float, member: bytes) -> bytes:
    """The record of a member."""
    return _pack_score(score) + member


class HeldScore:
    """A member's score in memory, and where it stands."""

    __slots__ = ("key", "score")

    def __init__(self, key: bytes, score: float) -> None:
        self.key = key
        self.score = score
