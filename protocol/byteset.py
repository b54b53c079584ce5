"""Sets of bytes, as Redis's glob reads them from a class: bit b of an int says whether byte b is in the set.

Laws, as redis-server 7.0.15 has them:
- The first `]` closes a class: `[]` matches nothing, `[^]` any byte. A class never closed ends with the pattern.
- In a class `x-y` is a range, in either order, whatever y is: `]` and a backslash too. x is not `]`, nor escaped.
- Bytes of a range are ordered as C's signed char: 0x80..0xff stand before 0x00.
- Ignoring case folds A-Z only, and leaves a byte escaped inside a class as it is.
"""

from __future__ import annotations

ANY_BYTE: int = (1 << 256) - 1
_UPPER: int = ((1 << 26) - 1) << ord("A")
_LETTERS: int = _UPPER | _UPPER << 32
_HIGH_HALF: int = ANY_BYTE >> 128 << 128
_BACKSLASH, _BRACKET, _DASH = b"\\]-"


def read_class(pattern: bytes, at: int, nocase: bool) -> tuple[int, int]:
    """The set of bytes of the class whose `[` stands before `at`, and where the pattern goes on."""
    end = len(pattern)
    negated = pattern.startswith(b"^", at)
    at += negated
    found = 0
    while at < end:
        byte, rest = pattern[at], end - at
        if byte == _BACKSLASH and rest >= 2:
            found |= 1 << pattern[at + 1]
            at += 2
        elif byte == _BRACKET:
            at += 1
            break
        elif rest >= 3 and pattern[at + 1] == _DASH:
            found |= _range(byte, pattern[at + 2], nocase)
            at += 3
        else:
            found |= fold(1 << byte) if nocase else 1 << byte
            at += 1
    return (ANY_BYTE ^ found if negated else found), at


def _range(first: int, last: int, nocase: bool) -> int:
    """The set of bytes from first to last, or last to first, in the order of C's signed char."""
    low, high = sorted((first ^ 0x80, last ^ 0x80))
    if not nocase:
        biased = _run(low, high)
        return biased >> 128 | (biased << 128) & _HIGH_HALF
    # Redis lowers both ends after it has put them in order, which may undo the order: then nothing is between them.
    low, high = _lowered(low ^ 0x80), _lowered(high ^ 0x80)
    if low > high:
        return 0
    found = _run(max(low, 0), high) | (1 << 255 if low < 0 else 0)
    return found & ~_UPPER | (found >> 32) & _UPPER


def _run(low: int, high: int) -> int:
    return ((1 << (high - low + 1)) - 1) << low if low <= high else 0


def _lowered(byte: int) -> int:
    """C's tolower of a signed char, as glibc has it in the C locale: negatives come out positive, but for -1 (EOF)."""
    if byte == 0xFF:
        return -1
    return byte + 32 if ord("A") <= byte <= ord("Z") else byte


def fold(byte_set: int) -> int:
    """The set with both cases of its letters."""
    letters = byte_set & _LETTERS
    return byte_set | (letters & _UPPER) << 32 | (letters >> 32) & _UPPER
