"""What large sorted sets hold: the score of each member, under the member's digest (digests.py).

    key    'e', number u64, digest (16 bytes)    value  score f64, member

Their order is in ranks.py.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.keys import digests

_NUMBER: Final = Struct(">cQ")
_SCORE: Final = Struct(">d")


def prefix(number: int) -> bytes:
    """With which the keys of a sorted set's members begin."""
    return _NUMBER.pack(databases.SCORES, number)


def unpack(value: bytes) -> tuple[bytes, float]:
    """A member and its score."""
    return value[_SCORE.size :], float(_SCORE.unpack_from(value)[0])


def put(txn: Txn, number: int, member: bytes, score: float) -> None:
    """Set a member's score."""
    txn.put(prefix(number) + digests.digest(member), _SCORE.pack(score) + member)


def get(txn: Txn, number: int, member: bytes) -> float | None:
    """A member's score; None: there is no such member."""
    found = txn.get(prefix(number) + digests.digest(member))
    return None if found is None else float(_SCORE.unpack_from(found)[0])


def delete(txn: Txn, number: int, member: bytes) -> None:
    txn.delete(prefix(number) + digests.digest(member))
