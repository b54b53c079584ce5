"""The order of a large sorted set, and how many members are before any place in it: a tree whose nodes are records.

    key    'z', number u64, level u8, bound
    value  words (words.py), in order

    level 0    a word for each member: its *place*
    level n    a word for each node of the level below: how many members it has, u64, and its bound
    place      score (8 bytes that sort as the numbers do), member; of one of more than LONG_BYTES bytes: this many of
               it, its digest, and behind that the member itself

A node holds what stands from its bound on, up to the bound of the next one of its level. The first of a level has an
empty bound, and the highest level has only one: the set's record says which level that is. So finding a rank, or the
member of a rank, reads one record of each level; each has some 40 words, and a hundred million members are five levels.

A node of more than MOST_BYTES is split, one of less than LEAST_BYTES joins its neighbour, if both have the same node
above and there is room. A bound is as short as possible: it need not be the place of a member. Members of more than
LONG_BYTES bytes that begin with the same ones and have one score are in the order of digests. A place does not tell the
two zeros apart: if a negative one was added, the set's record says so, and the member's score is looked up. order.py
has a turn's work on the nodes.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.keys import digests, key_bytes

MOST_BYTES: Final = 1600
"""The size of the words of a node that has more than one: two such records fill a page of LMDB's."""
LEAST_BYTES: Final = 400
JOINED_BYTES: Final = 1200
"""Two nodes that are joined have no more together, so that the next member does not split them."""
WORD_BYTES: Final = 4
"""What a word takes in a record, beside its bytes."""
LONG_BYTES: Final = key_bytes.LONG_BYTES
SCORE_BYTES: Final = key_bytes.SCORE_BYTES
COUNT_BYTES: Final = 8
MOST_BOUND_BYTES: Final = SCORE_BYTES + LONG_BYTES + key_bytes.DIGEST_BYTES
"""The part of a long member that it is sorted by; no bound is longer."""
_LEVEL: Final = Struct(">cQB")
_SCORE: Final = Struct(">d")
_COUNT: Final = Struct(">Q")
PREFIX_BYTES: Final = _LEVEL.size
"""The size of what `prefix` makes."""
_pack_level: Final = _LEVEL.pack
_place: Final = key_bytes.place
pack_posts: Final = key_bytes.posts
"""Makes the record of a node above level 0, out of counts and bounds."""
_OTHER_BITS: Final = bytes(range(255, -1, -1))


def sortable(score: float) -> bytes:
    """Return 8 bytes that sort as scores do; the two zeros are one."""
    return _place(score, b"")


def behind(score: float) -> bytes:
    """Return a place after all members of this score, and before all others."""
    return _COUNT.pack(int.from_bytes(sortable(score), "big") + 1)


def place(score: float, member: bytes) -> bytes:
    """Return where a member stands."""
    if len(member) > LONG_BYTES:
        return _place(score, member[:LONG_BYTES] + digests.digest(member) + member)
    return _place(score, member)


def member_of(place: bytes) -> bytes:
    """Return the member that stands there."""
    return place[SCORE_BYTES:] if len(place) <= SCORE_BYTES + LONG_BYTES else place[MOST_BOUND_BYTES:]


def score_of(place: bytes) -> float:
    """Return the score of a place."""
    if place[0] & 0x80:
        return -float(_SCORE.unpack_from(place)[0])
    return float(_SCORE.unpack(place[:SCORE_BYTES].translate(_OTHER_BITS))[0])


def prefix(number: int, level: int) -> bytes:
    """Return the beginning of a level's keys; it is the key of its first node."""
    return _pack_level(databases.ORDERS, number, level)


def between(left: bytes, right: bytes) -> bytes:
    """Return the bound of a node that begins with `right`, after one that ends with `left`, which is less."""
    at = 0
    while at < len(left) and left[at] == right[at]:
        at += 1
    return right[: at + 1]


def pack_post(members: int, bound: bytes) -> bytes:
    """Return a node's word for one below."""
    return _COUNT.pack(members) + bound


def unpack_post(word: bytes) -> tuple[int, bytes]:
    """Return how many members a node has, and its bound."""
    return int(_COUNT.unpack_from(word)[0]), word[COUNT_BYTES:]
