"""The bytes of keys, their order, and the record of a field. In a compiled package this is _key_bytes.c; otherwise the
hashlib, struct and bisect modules."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable
from hashlib import blake2b
from struct import Struct
from typing import Final

DIGEST_BYTES: Final = 16
SCORE_BYTES: Final = 8
LONG_BYTES: Final = 440
"""How much of a longer member its place has; its digest follows, and then the member itself."""
_SCORE: Final = Struct(">d")
_FIELD: Final = Struct(">QI")
_OTHER_BITS: Final = bytes(range(255, -1, -1))
"""For each byte the one with all bits inverted."""


def pure_digest(name: bytes) -> bytes:
    return blake2b(name, digest_size=DIGEST_BYTES).digest()


def pure_place(score: float, member: bytes) -> bytes:
    score = score or 0.0
    return (_SCORE.pack(-score) if score >= 0 else _SCORE.pack(score).translate(_OTHER_BITS)) + member


def pure_members_of(places: list[bytes]) -> list[bytes]:
    short, behind = SCORE_BYTES + LONG_BYTES, SCORE_BYTES + LONG_BYTES + DIGEST_BYTES
    return [place[SCORE_BYTES if len(place) <= short else behind :] for place in places]


def pure_field(name: bytes, value: bytes, due_ms: int) -> bytes:
    return _FIELD.pack(due_ms, len(name)) + name + value


def pure_take_out(words: list[bytes], word: bytes) -> bool:
    at = bisect_left(words, word)
    if at == len(words) or words[at] != word:
        return False
    del words[at]
    return True


digest: Callable[[bytes], bytes]
"""The digest of a name or a member: BLAKE2b."""
place: Callable[[float, bytes], bytes]
"""8 bytes that sort as scores do, the two zeros being one, and the member."""
members_of: Callable[[list[bytes]], list[bytes]]
"""Returns the members that stand at these places."""
field: Callable[[bytes, bytes, int], bytes]
"""The record of a field: when it expires, the length of its name, the name, the value."""
left_of: Callable[[list[bytes], bytes], int]
"""Returns how many of these, which are in order, are less."""
right_of: Callable[[list[bytes], bytes], int]
"""Returns how many are not greater."""
put_in: Callable[[list[bytes], bytes], None]
"""Adds one to these, which are in order and stay so."""
take_out: Callable[[list[bytes], bytes], bool]
"""Removes one; returns whether it was there."""
in_order: Callable[[Iterable[bytes]], list[bytes]]
"""Returns them in order; they are distinct."""
try:
    from rlite_pubsub.storage.keys import _key_bytes
except ImportError:
    digest, place, left_of, right_of, in_order = pure_digest, pure_place, bisect_left, bisect_right, sorted
    put_in, take_out = insort, pure_take_out
    members_of, field = pure_members_of, pure_field
else:
    digest, place, in_order = _key_bytes.digest, _key_bytes.place, _key_bytes.in_order
    left_of, right_of = _key_bytes.left_of, _key_bytes.right_of
    put_in, take_out = _key_bytes.put_in, _key_bytes.take_out
    members_of, field = _key_bytes.members_of, _key_bytes.field
