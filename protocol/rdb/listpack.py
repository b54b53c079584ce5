"""Listpacks, in which Redis keeps small lists and the nodes of streams, read and written.

    length of all u32 | count of elements u16 (65535: unknown) | elements | 0xff
    an element: head, content, and behind them their length once more, to be read backwards, seven bits a byte

    0xxxxxxx  an integer from 0 to 127           110xxxxx +1  an integer of 13 bits with a sign, high byte first
    10llllll  a string of l bytes                1110llll +1  a string of l bytes, high byte first
    f1…f4     an integer of 2, 3, 4 or 8 bytes   f0 +4        a string; lengths and integers are little-endian

A string that spells an integer of 64 bits is packed as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from struct import Struct

from rlite_pubsub.protocol.rdb.malformed import Malformed

_HEAD = Struct("<IH")
_LENGTH = Struct("<I")
_END = b"\xff"
_UNCOUNTED = 0xFFFF
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_INTEGER_BYTES = {0xF1: 2, 0xF2: 3, 0xF3: 4, 0xF4: 8}
_SHORT_BACKS = [bytes((length,)) for length in range(128)]
_BACK_BOUNDS = ((16383, 2), (2097151, 3), (268435455, 4))
_MOST_BACK_BYTES = 5
EMPTY_BYTES = _HEAD.size + len(_END)


# -- reading


def elements(packed: bytes) -> Iterator[bytes]:
    """Every element, one after the other. Raises Malformed as soon as something is wrong."""
    if len(packed) < EMPTY_BYTES or packed[-1:] != _END:
        raise Malformed("a listpack without an end")
    size, count = _HEAD.unpack_from(packed)
    if size != len(packed):
        raise Malformed("a listpack of another length")
    at, end, seen = _HEAD.size, len(packed) - 1, 0
    while at < end:
        head = packed[at]
        if head < 0x80:
            element, length = b"%d" % head, 1
        elif head < 0xC0:
            length = 1 + (head & 0x3F)
            element = packed[at + 1 : at + length]
        else:
            element, length = _long_element(packed, at, head)
        back = _back(length)
        next_at = at + length + len(back)
        if next_at > end or packed[at + length : next_at] != back:
            raise Malformed("an element of a listpack of another length")
        yield element
        at, seen = next_at, seen + 1
    if count != _UNCOUNTED and count != seen:
        raise Malformed("a listpack of another count")


def _long_element(packed: bytes, at: int, head: int) -> tuple[bytes, int]:
    """The element and its length, both of which may be too short: the caller compares."""
    rest = packed[at + 1 : at + 5]
    if len(rest) < 4 and head in (0xF0, *range(0xE0, 0xF0)):
        raise Malformed("an element of a listpack without its length")
    if head < 0xE0:
        number = (head & 0x1F) << 8 | packed[at + 1]
        return b"%d" % (number - (1 << 13) if number >> 12 else number), 2
    if head < 0xF0:
        length = 2 + ((head & 0x0F) << 8 | rest[0])
        return packed[at + 2 : at + length], length
    if head == 0xF0:
        length = 5 + int(_LENGTH.unpack(rest)[0])
        return packed[at + 5 : at + length], length
    size = _INTEGER_BYTES.get(head)
    if size is None:
        raise Malformed("an element of a listpack of an unknown kind")
    return b"%d" % int.from_bytes(packed[at + 1 : at + 1 + size], "little", signed=True), 1 + size


# -- writing


def pack(words: Iterable[bytes]) -> bytes:
    """A listpack of these elements."""
    return assemble([element(word) for word in words])


def assemble(packed: list[bytes]) -> bytes:
    """A listpack of elements that are packed already."""
    body = b"".join(packed)
    return _HEAD.pack(len(body) + EMPTY_BYTES, min(len(packed), _UNCOUNTED)) + body + _END


def element(word: bytes) -> bytes:
    """One element, packed."""
    length = len(word)
    if 0 < length <= 20 and _INTEGER.fullmatch(word) is not None:
        number = int(word)
        if -(1 << 63) <= number < 1 << 63:
            return integer(number)
    if length < 1 << 6:
        packed = bytes((0x80 | length,)) + word
    elif length < 1 << 12:
        packed = bytes((0xE0 | length >> 8, length & 0xFF)) + word
    else:
        packed = b"\xf0" + _LENGTH.pack(length) + word
    return packed + _back(len(packed))


def integer(number: int) -> bytes:
    """An integer of 64 bits with a sign, packed as an element."""
    if 0 <= number < 1 << 7:
        return bytes((number, 1))
    if -(1 << 12) <= number < 1 << 12:
        return (0xC000 | number & 0x1FFF).to_bytes(2, "big") + b"\x02"
    for head, size in _INTEGER_BYTES.items():
        if -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1:
            return bytes((head,)) + number.to_bytes(size, "little", signed=True) + bytes((1 + size,))
    raise OverflowError(number)


def _back(length: int) -> bytes:
    """The length of an element, as it stands behind it."""
    if length < len(_SHORT_BACKS):
        return _SHORT_BACKS[length]
    size = next((size for bound, size in _BACK_BOUNDS if length < bound), _MOST_BACK_BYTES)
    shifts = range(7 * (size - 1), -1, -7)
    return bytes([(length >> shift & 0x7F) | (0x80 if place else 0) for place, shift in enumerate(shifts)])
