"""Names as parts of keys. LMDB's keys are limited to 511 bytes, names are not.

    short   length u8 (0-254) | the name
    long    255               | blake2b-256 of the name     and the name itself stands at the end of the value

The first byte says where the name ends, so that no name is the beginning of another, and tells short from long.
"""

from __future__ import annotations

from hashlib import blake2b

LONGEST_SHORT_BYTES = 254
_LONG = b"\xff"
_DIGEST_BYTES = 32


def key_part(name: bytes) -> bytes:
    if len(name) <= LONGEST_SHORT_BYTES:
        return bytes((len(name),)) + name
    return _LONG + blake2b(name, digest_size=_DIGEST_BYTES).digest()


def value_part(name: bytes) -> bytes:
    """Return what the value must hold because the key does not."""
    return name if len(name) > LONGEST_SHORT_BYTES else b""


def split(key: bytes, start: int, value_rest: bytes) -> tuple[bytes, int]:
    """Return the name that stands at `start` of the key, and where it ends there."""
    length = key[start]
    if length == 255:
        return value_rest, start + 1 + _DIGEST_BYTES
    end = start + 1 + length
    return key[start + 1 : end], end
