"""Numbers as the 80-bit floating point that INCRBYFLOAT counts in: 64 bits of mantissa, read and printed as in C.

Python has no such type, so values are exact fractions, rounded to it after each step.
"""

from __future__ import annotations

import re
from fractions import Fraction

from rlite_pubsub.protocol.errors import NOT_A_FLOAT, CommandError

MANTISSA_BITS = 64
LARGEST_EXPONENT = 16384
SMALLEST_EXPONENT = -16445
"""2 to this is the smallest number there is; beneath 2**-16382 the mantissa has fewer bits."""
LONGEST_TEXT = 5 * 1024 - 1
DIGITS = 17
_MOST_DIGITS = 6000
_DECIMAL = re.compile(rb"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?")
_HEXADECIMAL = re.compile(rb"([+-]?)0[xX]([0-9a-fA-F]*)(?:\.([0-9a-fA-F]*))?(?:[pP]([+-]?\d+))?")
_AT_ONCE = 4000
"""How many digits Python converts between text and integer."""
_FARTHEST = 10**9
"""An exponent that no mantissa makes up for."""
_INFINITE = re.compile(rb"[+-]?inf(?:inity)?", re.IGNORECASE)


class Infinite(Exception):
    """The number is larger than the largest of the type."""


def read(text: bytes) -> Fraction | None:
    """Return the number that `text` spells, None for an infinite one. Raises CommandError if it spells none."""
    if len(text) > LONGEST_TEXT:
        raise CommandError(NOT_A_FLOAT)
    if _INFINITE.fullmatch(text):
        return None
    match = _HEXADECIMAL.fullmatch(text)
    base, scale = 16, 2
    if match is None:
        match = _DECIMAL.fullmatch(text)
        base, scale = 10, 10
    if match is None or not (match[2] or match[3]):
        raise CommandError(NOT_A_FLOAT)
    sign, whole, part, exponent = match.groups()
    part = part or b""
    power = _exponent(exponent or b"")
    mantissa = int(whole + part, base) if base == 16 else _decimal(whole + part)
    if not mantissa:
        return Fraction(0)
    if base == 16:
        power -= 4 * len(part)
    else:
        power -= len(part)
    if abs(power) > 4 * _MOST_DIGITS + 4 * LONGEST_TEXT:
        raise CommandError(NOT_A_FLOAT)
    exact = Fraction(mantissa * scale**power) if power >= 0 else Fraction(mantissa, scale**-power)
    try:
        value = rounded(exact)
    except Infinite:
        raise CommandError(NOT_A_FLOAT) from None
    if not value:
        raise CommandError(NOT_A_FLOAT)
    return -value if sign == b"-" else value


def _decimal(digits: bytes) -> int:
    number = 0
    for at in range(0, len(digits), _AT_ONCE):
        piece = digits[at : at + _AT_ONCE]
        number = number * 10 ** len(piece) + int(piece)
    return number


def _exponent(text: bytes) -> int:
    digits = text.lstrip(b"+-").lstrip(b"0")
    number = int(digits or b"0") if len(digits) < 10 else _FARTHEST
    return -number if text.startswith(b"-") else number


def rounded(exact: Fraction) -> Fraction:
    """Return the nearest number of the type, in a tie the even one. Raises Infinite."""
    if not exact:
        return exact
    exponent = abs(exact.numerator).bit_length() - exact.denominator.bit_length()
    if abs(exact) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - MANTISSA_BITS + 1, SMALLEST_EXPONENT)
    value = round(exact / unit) * unit
    if abs(value) >= Fraction(2) ** LARGEST_EXPONENT:
        raise Infinite
    return value


def printed(value: Fraction) -> bytes:
    """Print a number with at most 17 digits after the point, and no trailing zeros."""
    scaled = round(value * 10**DIGITS)
    whole, part = divmod(abs(scaled), 10**DIGITS)
    head, tail = divmod(whole, 10**_AT_ONCE)
    text = b"%d%0*d.%017d" % (head, _AT_ONCE, tail, part) if head else b"%d.%017d" % (tail, part)
    text = text.rstrip(b"0").rstrip(b".")
    return b"-" + text if scaled < 0 else text
