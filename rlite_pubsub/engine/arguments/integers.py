"""Integers among a command's arguments, read as strictly as in Redis: no plus, no leading zero, no blank."""

from __future__ import annotations

import re
from typing import Final

from mypy_extensions import i64

from rlite_pubsub.protocol.errors import NOT_AN_INTEGER, CommandError

_INTEGER: Final = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_SURE_DIGITS: Final = 18
"""The number of digits that always fit into 64 bits."""
_ZERO: Final = 0x30
_NINE: Final = 0x39
_FEW: Final = {b"%d" % number: number for number in range(-1, 16)}
"""What most numbers of keys, places and limits are."""
_FEW_BYTES: Final = 2
_NO_BIT: Final = b"ERR bit offset is not an integer or out of range"

INT_MIN: Final = -(1 << 31)
INT_MAX: Final = (1 << 31) - 1
LONG_MIN: Final = -(1 << 63)
LONG_MAX: Final = (1 << 63) - 1


def integer(text: bytes, low: int = LONG_MIN, high: int = LONG_MAX, refusal: bytes = NOT_AN_INTEGER) -> int:
    """Return the number that `text` spells. Raises CommandError if it spells none or is not within low..high."""
    size = len(text)
    few = _FEW.get(text) if size <= _FEW_BYTES else None
    if few is not None:
        number = few
    elif 0 < size <= _SURE_DIGITS and text[0] != _ZERO and (natural := _natural(text)) >= 0:  # usually
        number = int(natural)
    elif _INTEGER.fullmatch(text):
        number = int(text)
    else:
        raise CommandError(refusal)
    if low is LONG_MIN and high is LONG_MAX and size <= _SURE_DIGITS:  # usually, and comparing with these is slow
        return number
    if not low <= number <= high:
        raise CommandError(refusal)
    return number


def _natural(text: bytes) -> i64:
    """Return the number that at most _SURE_DIGITS digits spell; -1 if something else is among them. int() takes ten
    times as long in a compiled package."""
    number: i64 = 0
    for at in range(len(text)):
        digit: i64 = text[at]
        if digit < _ZERO or digit > _NINE:
            return -1
        number = number * 10 + (digit - _ZERO)
    return number


def count_of_keys(args: list[bytes], refusal: bytes = NOT_AN_INTEGER) -> int:
    """Return the number of keys, which the third argument says (EVAL, FCALL). Raises CommandError."""
    few = _FEW.get(args[2])
    keys = few if few is not None else integer(args[2], refusal=refusal)
    if keys > len(args) - 3:
        raise CommandError(b"ERR Number of keys can't be greater than number of args")
    if keys < 0:
        raise CommandError(b"ERR Number of keys can't be negative")
    return keys


def bit_offset(text: bytes, longest: int, bits: int = 0) -> int:
    """Return the place of a bit in a string of at most this many bytes. With `bits`, `#n` means n times that many bits.
    Raises CommandError."""
    counts = bits > 0 and text.startswith(b"#")
    offset = integer(text[1:] if counts else text, 0, LONG_MAX, _NO_BIT) * (bits if counts else 1)
    if offset > LONG_MAX or offset >> 3 >= longest:
        raise CommandError(_NO_BIT)
    return offset
