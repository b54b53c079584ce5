"""Dumped hashes.

     4: a count, and each time a field and a value, strings
     9: a string that is a zipmap, of Redis before version 2.6:
            count u8 (254: more) | fields and values by turns | 0xff
            a field is its length (u8, or from 254 on fe and u32) and so many bytes; a value has a u8 between, and
            behind it so many bytes that are free. As Redis does, ff before a value's u32 is taken for fe, and what
            follows the first 0xff in a field's place is not looked at; but the string ends with one, too
    13: a string that is a ziplist     16: a string that is a listpack

    24: time u64, a count, and each time a length, a field and a value: it expires a ms less than the length behind the
        time; never, where the length is 0
    25: time u64, a string that is a listpack: fields, values and when they expire in ms (0: never) by turns

The time of 24 and 25, which are of Redis 7.4, is that of the field that expires first. A dump of ours is a hash of kind
4 or 16, or of kind 24, if fields of it expire. An empty one is malformed, and so is one with a field twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from rlite_pubsub.protocol.rdb import envelope, listpack, ziplist
from rlite_pubsub.protocol.rdb.envelope import PayloadReader
from rlite_pubsub.protocol.rdb.malformed import Malformed

HASH, HASH_ZIPMAP, HASH_ZIPLIST, HASH_LISTPACK = 4, 9, 13, 16
HASH_EXPIRING, HASH_LISTPACK_EXPIRING = 24, 25
HASHES = frozenset((HASH, HASH_ZIPMAP, HASH_ZIPLIST, HASH_LISTPACK))
EXPIRING_HASHES = frozenset((HASH_EXPIRING, HASH_LISTPACK_EXPIRING))
PACKED = frozenset((HASH_ZIPLIST, HASH_LISTPACK))
"""Which Redis takes over as they are."""
_END, _LONG = 0xFF, 0xFE
_LATEST_MS = 0x0000FFFFFFFFFFFE >> 2


# -- writing


def pack_small(words: list[bytes]) -> bytes:
    """The type of a hash and the hash, as a listpack; fields and values by turns."""
    return bytes((HASH_LISTPACK,)) + envelope.string(listpack.pack(words))


def pack_large(words: list[bytes]) -> bytes:
    """The type of a hash and the hash, as strings; fields and values by turns."""
    return bytes((HASH,)) + envelope.length(len(words) // 2) + b"".join(map(envelope.string, words))


def pack_expiring(fields: list[tuple[bytes, bytes, int]]) -> bytes:
    """The type of a hash and the hash: (field, value, when it expires in ms, 0: never)."""
    first_ms = min(due_ms for _, _, due_ms in fields if due_ms)
    parts = [bytes((HASH_EXPIRING,)), envelope.milliseconds(first_ms), envelope.length(len(fields))]
    for name, value, due_ms in fields:
        behind = due_ms - first_ms + 1 if due_ms else 0
        parts += [envelope.length(behind), envelope.string(name), envelope.string(value)]
    return b"".join(parts)


# -- reading


def read_expiring(kind: int, reader: PayloadReader) -> list[tuple[bytes, bytes, int]]:
    """(field, value, when it expires in ms, 0: never). Raises Malformed."""
    first_ms = reader.milliseconds()
    found: list[tuple[bytes, bytes, int]] = []
    if kind == HASH_EXPIRING:
        for _ in range(reader.length()):
            behind = reader.length()
            words = list(reader.each((reader.string(), reader.string())))
            found.append((words[0], words[1], first_ms + behind - 1 if behind else 0))
    else:
        packed = list(reader.each(listpack.elements(reader.string())))
        if len(packed) % 3 or not all(due.isdigit() for due in packed[2::3]):
            raise Malformed("a hash with half of a field, or without a time")
        found = list(zip(packed[::3], packed[1::3], map(int, packed[2::3]), strict=True))
    if not found or len({name for name, _, _ in found}) != len(found) or max(due for _, _, due in found) > _LATEST_MS:
        raise Malformed("a hash without fields, with one twice, or with one that expires too late")
    return found


def read_hash(kind: int, reader: PayloadReader) -> list[bytes]:
    """Fields and values by turns. Raises Malformed."""
    words = list(reader.each(_words(kind, reader)))
    names = words[::2]
    if not words or len(words) % 2 or len(set(names)) != len(names):
        raise Malformed("a hash without fields, with half of one or with one twice")
    return words


def _words(kind: int, reader: PayloadReader) -> Iterator[bytes]:
    if kind == HASH:
        return (reader.string() for _ in range(2 * reader.length()))
    packed = reader.string()
    if kind == HASH_ZIPMAP:
        return _zipmap(packed)
    return ziplist.elements(packed) if kind == HASH_ZIPLIST else listpack.elements(packed)


def _zipmap(packed: bytes) -> Iterator[bytes]:
    if len(packed) < 2 or packed[-1] != _END:
        raise Malformed("a zipmap without an end")
    at, end, count = 1, len(packed) - 1, 0
    while packed[at] != _END:
        field, at = _zipmap_word(packed, at, end, is_value=False)
        value, at = _zipmap_word(packed, at, end, is_value=True)
        count += 1
        yield field
        yield value
    if packed[0] not in (_LONG, count):
        raise Malformed("a zipmap of another count")


def _zipmap_word(packed: bytes, at: int, end: int, *, is_value: bool) -> tuple[bytes, int]:
    """Return the word that stands here, and where the next one does."""
    length = packed[at]
    at += 1
    if length >= _LONG:
        length = int.from_bytes(packed[at : at + 4], "little")
        at += 4
        if length < _LONG:
            raise Malformed("a length in five bytes that has room in one")
    free = 0
    if is_value and at <= end:
        free = packed[at]
        at += 1
    if at + length + free > end:
        raise Malformed("a word of a zipmap that is too long")
    return packed[at : at + length], at + length + free
