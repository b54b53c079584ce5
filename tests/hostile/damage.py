"""Bytes, damaged in a few places."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

_SPANS = (0, 0, 1, 1, 2, 4, 8, 30)


def damaged(chance: Random, data: bytes, tokens: Sequence[bytes], most: int = 4) -> bytes:
    """At least once; `tokens` are what the format has for numbers and marks."""
    found = bytearray(data)
    for _ in range(chance.randrange(1, most + 1)):
        at = chance.randrange(len(found) + 1)
        end = at + chance.choice(_SPANS)
        match chance.randrange(8):
            case 0 | 1:
                found[at:end] = chance.choice(tokens)
            case 2 | 3 if at < len(found):
                found[at] ^= 1 << chance.randrange(8)
            case 4:
                del found[at:end]
            case 5:
                found[at:at] = found[at:end] * chance.randrange(4)
            case 6:
                found[at:end] = chance.randbytes(max(0, min(end, len(found)) - at))
            case _ if chance.random() < 0.2:
                del found[at:]
    return bytes(found)
