"""The bytes of keys, their order, and the bytes of the records that most commands write. In a compiled package this is
_key_bytes.c; otherwise the hashlib, struct and bisect modules."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from struct import Struct
from typing import Final

DIGEST_BYTES: Final = 16
SCORE_BYTES: Final = 8
LONG_BYTES: Final = 440
"""How much of a longer member its place has; its digest follows, and then the member itself."""
_SCORE: Final = Struct(">d")
_FIELD: Final = Struct(">QI")
_ELEMENT: Final = Struct(">cQQ")
_MIDDLE: Final = 1 << 63
KEY_HEAD: Final = Struct(">BBQQI")
_COUNT: Final = Struct(">Q")
CHANGE_HEAD: Final = Struct(">HI")
REMOVED: Final = 0xFFFFFFFF
ROW_BYTES: Final = 50
"""What a row counts beside its value."""
REGISTER_BITS: Final = 6
"""The bits of a HyperLogLog's register."""
_INDEX_BITS: Final = 14
_SEED: Final = 0xADC83B19
_MIX: Final = 0xC6A4A7935BD1E995
_MASK: Final = (1 << 64) - 1
_OTHER_BITS: Final = bytes(range(255, -1, -1))
"""For each byte the one with all bits inverted."""


def pure_digest(name: bytes) -> bytes:
    return blake2b(name, digest_size=DIGEST_BYTES).digest()


def pure_member_rows(prefix: bytes, members: list[bytes]) -> dict[bytes, bytes | None]:
    return {prefix + pure_digest(member): member for member in members}


def pure_register(element: bytes) -> int:
    hashed = _SEED ^ (len(element) * _MIX & _MASK)  # MurmurHash64A
    whole = len(element) & ~7
    for at in range(0, whole, 8):
        word = int.from_bytes(element[at : at + 8], "little") * _MIX & _MASK
        word = (word ^ word >> 47) * _MIX & _MASK
        hashed = (hashed ^ word) * _MIX & _MASK
    if whole < len(element):
        hashed = (hashed ^ int.from_bytes(element[whole:], "little")) * _MIX & _MASK
    hashed = (hashed ^ hashed >> 47) * _MIX & _MASK
    hashed ^= hashed >> 47
    rest = hashed >> _INDEX_BITS | 1 << 64 - _INDEX_BITS
    return (hashed & (1 << _INDEX_BITS) - 1) << REGISTER_BITS | (rest & -rest).bit_length()


def pure_place(score: float, member: bytes) -> bytes:
    score = score or 0.0
    return (_SCORE.pack(-score) if score >= 0 else _SCORE.pack(score).translate(_OTHER_BITS)) + member


def pure_scored(score: float, member: bytes) -> bytes:
    return _SCORE.pack(score) + member


def pure_members_of(places: list[bytes]) -> list[bytes]:
    short, behind = SCORE_BYTES + LONG_BYTES, SCORE_BYTES + LONG_BYTES + DIGEST_BYTES
    return [place[SCORE_BYTES if len(place) <= short else behind :] for place in places]


def pure_field(name: bytes, value: bytes, due_ms: int) -> bytes:
    return _FIELD.pack(due_ms, len(name)) + name + value


def pure_element(database: bytes, number: int, index: int) -> bytes:
    return _ELEMENT.pack(database, number, index + _MIDDLE)


def pure_key_record(type: int, flags: int, expires_ms: int, modified: int, name: bytes, body: bytes) -> bytes:
    return KEY_HEAD.pack(type, flags, expires_ms, modified, len(name)) + name + body


def pure_posts(counts: list[int], bounds: list[bytes]) -> bytes:
    return pure_words([_COUNT.pack(count) + bound for count, bound in zip(counts, bounds, strict=True)])


@cache
def lengths(count: int) -> Struct:
    """Return the form of the head of this many words."""
    return Struct(f">{count + 1}I")


def pure_words(strings: list[bytes] | tuple[bytes, ...]) -> bytes:
    count = len(strings)
    return lengths(count).pack(count, *map(len, strings)) + b"".join(strings)


def pure_rows_in_order(rows: dict[bytes, bytes | None]) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
    kept: list[tuple[bytes, bytes]] = []
    gone: list[bytes] = []
    for key, value in rows.items():
        if value is None:
            gone.append(key)
        else:
            kept.append((key, value))
    kept.sort()
    gone.sort()
    return kept, gone


def pure_bytes_of_rows(rows: dict[bytes, bytes | None]) -> int:
    return len(rows) * ROW_BYTES + sum(map(len, filter(None, rows.values())))


def pure_changes(rows: dict[bytes, bytes | None]) -> bytes:
    parts = list[bytes]()
    for key, value in rows.items():
        if value is None:
            parts += [CHANGE_HEAD.pack(len(key), REMOVED), key]
        else:
            parts += [CHANGE_HEAD.pack(len(key), len(value)), key, value]
    return b"".join(parts)


def pure_take_out(words: list[bytes], word: bytes) -> bool:
    at = bisect_left(words, word)
    if at == len(words) or words[at] != word:
        return False
    del words[at]
    return True


digest: Callable[[bytes], bytes]
"""The digest of a name or a member: BLAKE2b."""
register: Callable[[bytes], int]
"""The register of a HyperLogLog to which an element falls and, in the lowest `REGISTER_BITS`, the longest run of zeros
at the end of its hash, plus one."""
place: Callable[[float, bytes], bytes]
"""8 bytes that sort as scores do, the two zeros being one, and the member."""
scored: Callable[[float, bytes], bytes]
"""The record of a member: its score, as f64, and the member."""
member_rows: Callable[[bytes, list[bytes]], dict[bytes, bytes | None]]
"""The members by their keys: what all keys begin with, and the digest of each."""
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
element: Callable[[bytes, int, int], bytes]
"""The key of an element of a list: a database's byte, the list's number, and an index, which counts from the middle of
what 64 bits can say."""
key_record: Callable[[int, int, int, int, bytes, bytes], bytes]
"""The record of a key: its type, flags, when it expires, the transaction that wrote it, its name, its body."""
posts: Callable[[list[int], list[bytes]], bytes]
"""Words of a sorted set's order: how many members each node has, and its bound."""
words: Callable[[list[bytes] | tuple[bytes, ...]], bytes]
"""Strings in one record: how many there are, the length of each, the strings."""
rows_in_order: Callable[[dict[bytes, bytes | None]], tuple[list[tuple[bytes, bytes]], list[bytes]]]
"""Returns the rows that have a value, and the keys of those that have None, both in the order of keys."""
bytes_of_rows: Callable[[dict[bytes, bytes | None]], int]
"""About how many bytes rows have: `ROW_BYTES` each, and their values."""
changes: Callable[[dict[bytes, bytes | None]], bytes]
"""Rows as the journal has them: the length of each key, that of its value (`REMOVED`: None), the key, the value."""
try:
    from rlite_pubsub.storage.keys import _key_bytes
except ImportError:
    digest, place, left_of, right_of = pure_digest, pure_place, bisect_left, bisect_right
    register, member_rows = pure_register, pure_member_rows
    put_in, take_out = insort, pure_take_out
    scored, members_of, field = pure_scored, pure_members_of, pure_field
    element, key_record = pure_element, pure_key_record
    posts, words, rows_in_order = pure_posts, pure_words, pure_rows_in_order
    bytes_of_rows, changes = pure_bytes_of_rows, pure_changes
else:
    digest, place, register = _key_bytes.digest, _key_bytes.place, _key_bytes.register
    member_rows = _key_bytes.member_rows
    left_of, right_of = _key_bytes.left_of, _key_bytes.right_of
    put_in, take_out = _key_bytes.put_in, _key_bytes.take_out
    scored, members_of, field = _key_bytes.scored, _key_bytes.members_of, _key_bytes.field
    element, key_record, posts = _key_bytes.element, _key_bytes.key_record, _key_bytes.posts
    words, rows_in_order = _key_bytes.words, _key_bytes.rows_in_order
    bytes_of_rows, changes = _key_bytes.bytes_of_rows, _key_bytes.changes
