"""Entries of a stream in the bytes in which XRANGE sends them, one after the other: cut apart, not taken apart.

    *2 CRLF $ length CRLF id CRLF * words CRLF (for each word: $ length CRLF word CRLF)
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mypy_extensions import i64

_ARRAY: Final = 0x2A
_BULK: Final = 0x24
_ZERO: Final = 0x30
_CR: Final = 0x0D
_LF: Final = 0x0A
_DASH: Final = 0x2D
_MOST: Final = 1 << 40
_MOST_DIGITS: Final = 18


class CutEntry(NamedTuple):
    """One entry."""

    id: bytes
    parts: tuple[int, int] | None
    """The id as two numbers; None where it is not two plain ones of at most 18 digits."""
    body: bytes
    """The array of its fields and values."""
    size_bytes: int
    """Of these, without what frames them."""


def cut_entries(data: bytes) -> list[CutEntry] | None:
    """Return the entries that `data` consists of; None if it holds anything else, or a number that is not written as
    XRANGE writes it. Each has as many values as names, and one at least. Made to be compiled: native integers."""
    found: list[CutEntry] = []
    size: i64 = len(data)
    at: i64 = 0
    while at < size:
        if at + 5 > size or data[at : at + 4] != b"*2\r\n":
            return None
        at += 4
        # the id, and then each word of the array: a length, and so many bytes
        id_text = b""
        begin: i64 = 0
        total: i64 = 0
        left: i64 = 1
        is_id = True
        while left > 0:
            if at + 3 >= size or data[at] != _BULK:
                return None
            at += 1
            first: i64 = at
            length: i64 = 0
            digit: i64 = data[at] - _ZERO
            while 0 <= digit <= 9 and length < _MOST and at + 1 < size:
                length = length * 10 + digit
                at += 1
                digit = data[at] - _ZERO
            if at == first or (data[first] == _ZERO and at > first + 1) or data[at] != _CR:
                return None
            at += 2
            end: i64 = at + length
            if end + 2 > size or data[at - 1] != _LF or data[end] != _CR or data[end + 1] != _LF:
                return None
            left -= 1
            if not is_id:
                total += length
                at = end + 2
                continue
            is_id = False
            id_text = data[at:end]
            at = end + 2
            begin = at
            if at + 3 >= size or data[at] != _ARRAY:
                return None
            at += 1
            first = at
            digit = data[at] - _ZERO
            while 0 <= digit <= 9 and left < _MOST and at + 1 < size:
                left = left * 10 + digit
                at += 1
                digit = data[at] - _ZERO
            if at == first or data[first] == _ZERO or left % 2 or at + 1 >= size:
                return None
            if data[at] != _CR or data[at + 1] != _LF:
                return None
            at += 2
        found.append(CutEntry(id_text, _parts(id_text), data[begin:at], total))
    return found


def _parts(text: bytes) -> tuple[int, int] | None:
    size: i64 = len(text)
    at: i64 = 0
    ms: i64 = 0
    while at < size and 0 <= text[at] - _ZERO <= 9:
        ms = ms * 10 + (text[at] - _ZERO)
        at += 1
        if at > _MOST_DIGITS:
            return None
    dash: i64 = at
    if dash == 0 or dash + 1 >= size or text[dash] != _DASH or (text[0] == _ZERO and dash > 1):
        return None
    seq: i64 = 0
    at += 1
    while at < size and 0 <= text[at] - _ZERO <= 9:
        seq = seq * 10 + (text[at] - _ZERO)
        at += 1
        if at - dash > _MOST_DIGITS:
            return None
    if at < size or (text[dash + 1] == _ZERO and size > dash + 2):
        return None
    return ms, seq
