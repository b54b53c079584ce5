"""The order of a large sorted set, and how many members are before any place in it.

    key    'q', number u64, level u8, place
    place  score (8 bytes that sort as the numbers do), member; one of more than LONG_BYTES bytes: so many of it, digest

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
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from struct import Struct
from typing import Final

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Cursor, Txn
from rlite_pubsub.storage.keys import digests

POST_BITS: Final = 5
LONG_BYTES: Final = 440
_LEVEL: Final = Struct(">cQB")
_SCORE: Final = Struct(">d")
_BITS: Final = Struct(">Q")
_COUNT: Final = Struct(">Q")
_OTHER_BITS: Final = bytes(range(255, -1, -1))
"""For each byte the one with all other bits."""
_SCORE_BYTES: Final = 8
_FEW_POSTS: Final = 4
_AT_ONCE: Final = 128
"""Members that are read before the first of them is looked at."""


def levels_for(count: int) -> int:
    """How many levels so many members deserve, beside level 0."""
    levels = 0
    while count > _FEW_POSTS << (POST_BITS * (levels + 1)):
        levels += 1
    return levels


def sortable(score: float) -> bytes:
    """8 bytes that sort as scores do; the two zeros are one."""
    score = score or 0.0
    return _SCORE.pack(-score) if score >= 0 else _SCORE.pack(score).translate(_OTHER_BITS)


def behind(score: float) -> bytes:
    """A place behind all members of this score, and before all others."""
    return _BITS.pack(int.from_bytes(sortable(score), "big") + 1)


def place(score: float, member: bytes) -> bytes:
    """Where a member stands."""
    if len(member) > LONG_BYTES:
        return sortable(score) + member[:LONG_BYTES] + digests.digest(member)
    return sortable(score) + member


def height(at: bytes) -> int:
    """Of how many levels the member at this place is a post."""
    member = at[_SCORE_BYTES:]
    return _height(digests.digest(member) if len(member) <= LONG_BYTES else member[LONG_BYTES:])


def _height(digest: bytes) -> int:
    """Of how many levels a member with this digest is a post."""
    bits = int.from_bytes(digest[-8:], "big")
    return ((bits & -bits).bit_length() - 1) // POST_BITS if bits else 64 // POST_BITS


def prefix(number: int, level: int) -> bytes:
    """With which the keys of a level begin."""
    return _LEVEL.pack(databases.RANKS, number, level)


# -- changing


def add(txn: Txn, number: int, levels: int, score: float, member: bytes) -> None:
    """A member that is not there."""
    at = place(score, member)
    rest = member if len(member) > LONG_BYTES else b""
    txn.put(prefix(number, 0) + at, _SCORE.pack(score) + rest)
    if not levels:
        return
    own_height = _height(digests.digest(member))
    cursor = txn.cursor()
    for level in range(1, levels + 1):
        key = prefix(number, level)
        post, count = _post_before(cursor, key, at)
        if own_height < level:
            txn.put(key + post, _COUNT.pack(count + 1))
        else:
            before = _count_between(cursor, number, level - 1, post, at)
            txn.put(key + post, _COUNT.pack(before))
            txn.put(key + at, _COUNT.pack(count - before + 1))


def remove(txn: Txn, number: int, levels: int, score: float, member: bytes) -> None:
    """A member that is there."""
    at = place(score, member)
    txn.delete(prefix(number, 0) + at)
    cursor = txn.cursor()
    for level in range(1, levels + 1):
        key = prefix(number, level)
        own = txn.get(key + at)
        if own is not None:
            txn.delete(key + at)
        post, count = _post_before(cursor, key, at)
        added = _COUNT.unpack(own)[0] if own is not None else 0
        txn.put(key + post, _COUNT.pack(count + added - 1))


def begin_level(txn: Txn, number: int, level: int) -> None:
    """Keep another level: what it says is counted from the one below."""
    below, key = prefix(number, level - 1), prefix(number, level)
    posts: list[tuple[bytes, int]] = []
    post, count = b"", 0
    for found, value in databases.items(txn, below):
        at = found[len(below) :]
        if at and height(at) >= level:
            posts.append((post, count))
            post, count = at, 0
        count += _COUNT.unpack(value)[0] if level > 1 else 1
    for at, counted in (*posts, (post, count)):
        txn.put(key + at, _COUNT.pack(counted))


def _post_before(cursor: Cursor, key: bytes, at: bytes) -> tuple[bytes, int]:
    """The last post of a level before a place, and its count."""
    found = cursor.set_range(key + at)
    found = cursor.prev() if found else cursor.last()
    assert found
    post, value = cursor.item()
    return post[len(key) :], _COUNT.unpack(value)[0]


def _count_between(cursor: Cursor, number: int, level: int, start: bytes, stop: bytes) -> int:
    """How many members stand from the post `start` of a level up to its post (level 0: its member) `stop`."""
    key = prefix(number, level)
    end = key + stop
    count = 0
    found = cursor.set_range(key + start)
    while found:
        at, value = cursor.item()
        if at >= end:
            break
        count += _COUNT.unpack(value)[0] if level else 1
        found = cursor.next()
    return count


# -- reading


def count_before(txn: Txn, number: int, levels: int, bound: bytes) -> int:
    """How many members stand before a place."""
    cursor = txn.cursor()
    total, post = 0, b""
    for level in range(levels, 0, -1):
        key = prefix(number, level)
        cursor.set_range(key + post)
        at, value = cursor.item()
        while True:
            count: int = _COUNT.unpack(value)[0]
            if not cursor.next():
                break
            at, value = cursor.item()
            if not at.startswith(key) or at[len(key) :] > bound:
                break
            total += count
            post = at[len(key) :]
    key = prefix(number, 0)
    end = key + bound
    found = cursor.set_range(key + post)
    while found and cursor.key() < end:
        total += 1
        found = cursor.next()
    return total


def _at(txn: Txn, number: int, levels: int, rank: int) -> Cursor:
    """A cursor at the member of this rank, which must be there."""
    cursor = txn.cursor()
    left, post = rank, b""
    for level in range(levels, 0, -1):
        key = prefix(number, level)
        cursor.set_range(key + post)
        value = cursor.value()
        while left >= (count := _COUNT.unpack(value)[0]):
            left -= count
            cursor.next()
            at, value = cursor.item()
            post = at[len(key) :]
    cursor.set_range(prefix(number, 0) + post)
    for _ in range(left):
        cursor.next()
    return cursor


def walk(
    txn: Txn, number: int, levels: int, start: int, count: int, *, backwards: bool
) -> Iterator[tuple[bytes, float]]:
    """So many members and their scores, from the one of this rank on. All of them must be there."""
    if count <= 0:
        return
    cursor = _at(txn, number, levels, start)
    strip = len(prefix(number, 0)) + _SCORE_BYTES
    rows = cursor.iterprev() if backwards else cursor.iternext()
    while count > 0:
        some = [
            (value[_SCORE_BYTES:] or key[strip:], float(_SCORE.unpack_from(value)[0]))
            for key, value in islice(rows, min(count, _AT_ONCE))
        ]
        count -= _AT_ONCE
        yield from some
