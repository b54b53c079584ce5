"""Dumped sorted sets.

     3: a count, and each time a member, a string, and its score as text: length u8 (253: none, 254: inf, 255: -inf)
     5: a count, and each time a member, a string, and its score f64, little-endian
    12: a string that is a ziplist     17: a string that is a listpack; members and scores by turns

A dump of ours is a sorted set of kind 5, highest first, or 17. An empty one is malformed, and so is one with a member
twice or with a score that is not a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct

from rlite_pubsub.protocol.encoder import double
from rlite_pubsub.protocol.rdb import envelope, listpack, ziplist
from rlite_pubsub.protocol.rdb.envelope import PayloadReader
from rlite_pubsub.protocol.rdb.malformed import Malformed

ZSET, ZSET_2, ZSET_ZIPLIST, ZSET_LISTPACK = 3, 5, 12, 17
ZSETS = frozenset((ZSET, ZSET_2, ZSET_ZIPLIST, ZSET_LISTPACK))
PACKED = frozenset((ZSET_ZIPLIST, ZSET_LISTPACK))
"""Which Redis takes over as they are."""
_SCORE = Struct("<d")
_SAFE = float((1 << 62) - 1)
_WORDS = {253: math.nan, 254: math.inf, 255: -math.inf}

Scored = tuple[bytes, float]


# -- writing


def pack_small(members: Iterable[Scored]) -> bytes:
    """The type of a sorted set and the set, as a listpack."""
    words = [word for member, score in members for word in (member, _spell(score))]
    return bytes((ZSET_LISTPACK,)) + envelope.string(listpack.pack(words))


def _spell(score: float) -> bytes:
    """Return a score as Redis spells it in a listpack."""
    return b"%d" % int(score) if abs(score) <= _SAFE and score == int(score) else double(score)


def pack_large(members: Sequence[Scored]) -> bytes:
    """The type of a sorted set and the set, as strings and numbers."""
    packed = [envelope.string(member) + _SCORE.pack(score) for member, score in reversed(members)]
    return bytes((ZSET_2,)) + envelope.length(len(members)) + b"".join(packed)


# -- reading


def read_sorted_set(kind: int, reader: PayloadReader) -> list[Scored]:
    """Members and their scores. Raises Malformed."""
    found: dict[bytes, float] = {}
    for member, score in _members(kind, reader):
        if member in found or math.isnan(score):
            raise Malformed("a sorted set with a member twice, or with a score that is not a number")
        found[member] = score
    if not found:
        raise Malformed("a sorted set without members")
    return list(found.items())


def _members(kind: int, reader: PayloadReader) -> Iterator[Scored]:
    if kind in PACKED:
        packed = reader.string()
        words = list(reader.each(ziplist.elements(packed) if kind == ZSET_ZIPLIST else listpack.elements(packed)))
        if len(words) % 2:
            raise Malformed("a sorted set with half of a member")
        for member, score in zip(words[::2], words[1::2], strict=True):
            yield member, _number(score)
        return
    for _ in range(reader.length()):
        member = next(iter(reader.each([reader.string()])))
        yield member, _SCORE.unpack(reader.take(_SCORE.size))[0] if kind == ZSET_2 else _spelled(reader)


def _spelled(reader: PayloadReader) -> float:
    length = reader.byte()
    return _WORDS[length] if length in _WORDS else _number(reader.take(length))


def _number(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        raise Malformed("a score that is not a number") from None
