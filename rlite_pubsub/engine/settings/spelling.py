"""The spelling of directives' values: numbers as C reads them, sizes with units, words in quotes."""

from __future__ import annotations

import re

LONG_MAX, ULONG_MAX = 2**63 - 1, 2**64 - 1

_UNITS = {b"": 1, b"b": 1, b"k": 1000, b"kb": 1 << 10, b"m": 10**6, b"mb": 1 << 20, b"g": 10**9, b"gb": 1 << 30}


def whole_number(word: bytes) -> int | None:
    """Read a 64-bit integer in its only spelling: no blanks, plus or leading zeros."""
    if re.fullmatch(rb"0|-?[1-9][0-9]{0,18}", word) is None:
        return None
    value = int(word)
    return value if -LONG_MAX - 1 <= value <= LONG_MAX else None


def loose_number(word: bytes) -> int | None:
    """Read an integer that C's strtoll reads to the end: blanks, signs and zeros may lead, and an empty text is 0."""
    if word == b"":
        return 0
    if re.fullmatch(rb"\s*[+-]?[0-9]{1,100}", word) is None:
        return None
    return max(min(int(word), LONG_MAX), -LONG_MAX - 1)


def memory(word: bytes) -> int | None:
    """Read a count of bytes, within 64 bits. No digits are 0, as in Redis."""
    match = re.fullmatch(rb"([0-9]{0,127})([A-Za-z]*)", word)
    if match is None or (unit := _UNITS.get(match[2].lower())) is None:
        return None
    return min(int(match[1] or b"0"), ULONG_MAX) * unit & ULONG_MAX


def with_unit(value: int) -> bytes:
    """Return a count of bytes in the largest unit that is exact."""
    for unit in (b"gb", b"mb", b"kb"):
        if value and value % _UNITS[unit] == 0:
            return b"%d%b" % (value // _UNITS[unit], unit)
    return b"%d" % value


_ESCAPES = {0x5C: b"\\\\", 0x22: b'\\"', 0x0A: b"\\n", 0x0D: b"\\r", 0x09: b"\\t", 0x07: b"\\a", 0x08: b"\\b"}


def quoted(text: bytes) -> bytes:
    """Return a word in double quotes, as a configuration file keeps it whole."""
    return b'"%b"' % b"".join(
        _ESCAPES.get(byte) or (b"%c" % byte if 0x20 <= byte < 0x7F else b"\\x%02x" % byte) for byte in text
    )
