"""Ziplists, in which Redis kept small lists before version 7, read. All is little-endian but the lengths of strings.

    length of all u32 | place of the last element u32 | count u16 (65535: unknown) | elements | 0xff
    an element: the length of the one before it (one byte, or fe and u32), head, content

    00llllll  a string of l bytes       c0, d0, e0, f0, fe  an integer of 2, 4, 8, 3 or 1 bytes
    01llllll +1  likewise               f1…fd               an integer from 0 to 12
    10000000 +4  likewise
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from rlite_pubsub.protocol.rdb.malformed import Malformed

_HEAD = Struct("<IIH")
_END = 0xFF
_LARGE = 0xFE
_UNCOUNTED = 0xFFFF
_INTEGER_BYTES = {0xC0: 2, 0xD0: 4, 0xE0: 8, 0xF0: 3, 0xFE: 1}


def elements(packed: bytes) -> Iterator[bytes]:
    """Every element, one after the other. Raises Malformed as soon as something is wrong."""
    if len(packed) <= _HEAD.size or packed[-1] != _END:
        raise Malformed("a ziplist without an end")
    size, tail, count = _HEAD.unpack_from(packed)
    if size != len(packed):
        raise Malformed("a ziplist of another length")
    at, end, seen, before, last = _HEAD.size, len(packed) - 1, 0, 0, 0
    while at < end:
        start = at
        at += 5 if packed[at] == _LARGE else 1
        previous = packed[start] if at == start + 1 else int.from_bytes(packed[start + 1 : at], "little")
        if packed[start] == _END or previous != before or at >= end:
            raise Malformed("an element of a ziplist that does not know what is before it")
        element, at = _element(packed, at)
        if at > end:
            raise Malformed("an element of a ziplist that is too long")
        yield element
        before, last, seen = at - start, start, seen + 1
    if (seen and tail != last) or tail > end or count not in (seen, _UNCOUNTED):
        raise Malformed("a ziplist of another count")


def _element(packed: bytes, at: int) -> tuple[bytes, int]:
    """The element whose head stands here, and where it ends: beyond the ziplist, perhaps."""
    head = packed[at]
    at += 1
    if head < 0xC0:
        if head < 0x40:
            length = head
        elif head < 0x80:
            length = (head & 0x3F) << 8 | packed[at]
            at += 1
        else:
            if head != 0x80:
                raise Malformed("an element of a ziplist of an unknown kind")
            length = int.from_bytes(packed[at : at + 4], "big")
            at += 4
        return packed[at : at + length], at + length
    size = _INTEGER_BYTES.get(head)
    if size is not None:
        return b"%d" % int.from_bytes(packed[at : at + size], "little", signed=True), at + size
    if 0xF1 <= head <= 0xFD:
        return b"%d" % (head - 0xF1), at
    raise Malformed("an element of a ziplist of an unknown kind")
