"""LZF, unpacked. Nothing here packs: a dumped value may hold its strings as they are.

    000ccccc                     c + 1 bytes follow, to be taken as they are
    lllddddd dddddddd            l + 2 bytes (l from 1 to 6), repeated from d + 1 bytes back
    111ddddd llllllll dddddddd   l + 9 bytes, likewise
"""

from __future__ import annotations

from rlite_pubsub.protocol.rdb.malformed import Malformed

_LONGEST_LITERAL = 32
_LONG = 7
MOST_PER_BYTE = 88
"""Three bytes make 264 at the most."""


def unpack(packed: bytes, size: int) -> bytes:
    """The `size` bytes that were packed. Raises Malformed; whatever it is given, it holds no more than that."""
    if size > len(packed) * MOST_PER_BYTE:
        raise Malformed("packed bytes that cannot become so many")
    found = bytearray()
    try:
        at = 0
        while at < len(packed):
            head = packed[at]
            at += 1
            if head < _LONGEST_LITERAL:
                literal = packed[at : at + head + 1]
                if len(literal) <= head:
                    raise Malformed("packed bytes end too early")
                found += literal
                at += head + 1
            else:
                length = head >> 5
                if length == _LONG:
                    length += packed[at]
                    at += 1
                distance = ((head & 0x1F) << 8 | packed[at]) + 1
                at += 1
                _repeat(found, distance, length + 2)
            if len(found) > size:
                raise Malformed("packed bytes become too many")
    except IndexError:
        raise Malformed("packed bytes end too early") from None
    if len(found) != size:
        raise Malformed("packed bytes become too few")
    return bytes(found)


def _repeat(found: bytearray, distance: int, length: int) -> None:
    """The bytes may be some of those that this very step adds."""
    start = len(found) - distance
    if start < 0:
        raise Malformed("packed bytes repeat what is not there")
    piece = found[start : start + length]
    if len(piece) < length:
        piece = (piece * (length // len(piece) + 1))[:length]
    found += piece
