"""The order of a large sorted set, and how many members are before any place in it.

    key    'q', number u64, level u8, place
    place  score (8 bytes that sort as the numbers do), member; one of more than LONG_BYTES bytes: this many of it,
    digest

    level 0    a record for each member, in order              value  score f64, and a long member itself
    level n    a record for each *post* of the level, and      value  members from this post up to the next, u64
               one for the beginning, with an empty place

A member is a post of a level by chance, but always the same one: of level n where its digest ends in n times
POST_BITS zeros. So one in 32 members is a post of level 1, one in 1,024 of level 2, and every post of a level is one
of all levels below. To find a rank is to walk along the posts of the highest level, to go down a level, and so on:
some 16 steps a level, whatever the size. To add or to remove a member changes one count on each level. It is a skip
list whose towers need no chance and no balance: what it looks like depends on its members alone, not on how they
came.

A level begins to be kept once the one below has some posts (`levels_for`); the set's record says how many there are.
Members of more than LONG_BYTES bytes that begin with the same ones and have one score are in the order of digests.
How a turn works with them is in order.py.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.keys import digests, key_bytes

POST_BITS: Final = 5
LONG_BYTES: Final = 440
_FIRST_POST_BITS: Final = (1 << POST_BITS) - 1
_LEVEL: Final = Struct(">cQB")
_SCORE: Final = Struct(">d")
_pack_score: Final = _SCORE.pack
_place: Final = key_bytes.place
_BITS: Final = Struct(">Q")
_COUNT: Final = Struct(">Q")
SCORE_BYTES: Final = 8
_FEW_POSTS: Final = 4


def levels_for(count: int) -> int:
    """How many levels this many members deserve, beside level 0."""
    levels = 0
    while count > _FEW_POSTS << (POST_BITS * (levels + 1)):
        levels += 1
    return levels


def sortable(score: float) -> bytes:
    """8 bytes that sort as scores do; the two zeros are one."""
    return _place(score, b"")


def behind(score: float) -> bytes:
    """A place behind all members of this score, and before all others."""
    return _BITS.pack(int.from_bytes(sortable(score), "big") + 1)


def place(score: float, member: bytes) -> bytes:
    """Where a member stands."""
    if len(member) > LONG_BYTES:
        return _place(score, member[:LONG_BYTES] + digests.digest(member))
    return _place(score, member)


def height(at: bytes) -> int:
    """On how many levels the member at this place is a post."""
    member = at[SCORE_BYTES:]
    return height_of(digests.digest(member) if len(member) <= LONG_BYTES else member[LONG_BYTES:])


def height_of(digest: bytes) -> int:
    """On how many levels a member is a post: one with this digest, or whose key ends in it."""
    if digest[-1] & _FIRST_POST_BITS:
        return 0  # as nearly all
    bits = int.from_bytes(digest[-8:], "big")
    return ((bits & -bits).bit_length() - 1) // POST_BITS if bits else 64 // POST_BITS


def prefix(number: int, level: int) -> bytes:
    """With which the keys of a level begin."""
    return _LEVEL.pack(databases.RANKS, number, level)


def pack(score: float, member: bytes) -> bytes:
    """The record of a member on level 0."""
    return _pack_score(score) + member if len(member) > LONG_BYTES else _pack_score(score)


def unpack(at: bytes, value: bytes) -> tuple[bytes, float]:
    """The member at a place of level 0, and its score."""
    return value[SCORE_BYTES:] or at[SCORE_BYTES:], float(_SCORE.unpack_from(value)[0])


def pack_count(members: int) -> bytes:
    """The record of a post."""
    return _COUNT.pack(members)


def unpack_count(value: bytes) -> int:
    """How many members a post has."""
    return int(_COUNT.unpack(value)[0])
