"""What keys of records are made of, and how they sort. Where this package was compiled it is _key_bytes.c; else the
hashlib, struct and bisect modules."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable
from hashlib import blake2b
from struct import Struct
from typing import Final

DIGEST_BYTES: Final = 16
_SCORE: Final = Struct(">d")
_OTHER_BITS: Final = bytes(range(255, -1, -1))
"""For each byte the one with all other bits."""


def pure_digest(name: bytes) -> bytes:
    return blake2b(name, digest_size=DIGEST_BYTES).digest()


def pure_place(score: float, member: bytes) -> bytes:
    score = score or 0.0
    return (_SCORE.pack(-score) if score >= 0 else _SCORE.pack(score).translate(_OTHER_BITS)) + member


def pure_take_out(words: list[bytes], word: bytes) -> bool:
    at = bisect_left(words, word)
    if at == len(words) or words[at] != word:
        return False
    del words[at]
    return True


digest: Callable[[bytes], bytes]
"""Of a name or a member: BLAKE2b."""
place: Callable[[float, bytes], bytes]
"""8 bytes that sort as scores do, the two zeros being one, and the member."""
left_of: Callable[[list[bytes], bytes], int]
"""How many of these, which are in order, are less."""
right_of: Callable[[list[bytes], bytes], int]
"""How many are not greater."""
put_in: Callable[[list[bytes], bytes], None]
"""One more among these, which are in order and stay so."""
take_out: Callable[[list[bytes], bytes], bool]
"""One less; whether it was there."""
in_order: Callable[[Iterable[bytes]], list[bytes]]
"""The same in order; they are different from each other."""
try:
    from rlite_pubsub.storage.keys import _key_bytes
except ImportError:
    digest, place, left_of, right_of, in_order = pure_digest, pure_place, bisect_left, bisect_right, sorted
    put_in, take_out = insort, pure_take_out
else:
    digest, place, in_order = _key_bytes.digest, _key_bytes.place, _key_bytes.in_order
    left_of, right_of = _key_bytes.left_of, _key_bytes.right_of
    put_in, take_out = _key_bytes.put_in, _key_bytes.take_out
