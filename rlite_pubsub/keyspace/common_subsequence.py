"""The longest common subsequence of two strings, and where it stands in them, as LCS of Redis finds it.

Redis fills a table of lengths. Here a row of it is one large integer: its bit j is 0 where the length grows from j to
j + 1 bytes of the second string (Hyyrö's method), so that a row takes some operations on whole integers.
"""

from __future__ import annotations

from typing import NamedTuple


class Common(NamedTuple):
    """A stretch of equal bytes: its first and last place in each string."""

    first: int
    last: int
    other_first: int
    other_last: int

    @property
    def length(self) -> int:
        return self.last - self.first + 1


def length(one: bytes, other: bytes) -> int:
    """Return the length of the longest common subsequence."""
    rows = _rows(one, other, keep=False)
    return len(other) - rows[-1].bit_count()


def find(one: bytes, other: bytes) -> tuple[bytes, list[Common]]:
    """Return the subsequence, and its stretches from the last to the first."""
    rows = _rows(one, other, keep=True)
    taken = bytearray()
    stretches: list[Common] = []
    run: list[int] = []  # first, last, first in the other, last in the other
    i, j = len(one), len(other)
    while i and j:
        if one[i - 1] == other[j - 1]:
            taken.append(one[i - 1])
            i -= 1
            j -= 1
            if run and run[0] == i + 1 and run[2] == j + 1:
                run[0], run[2] = i, j
            else:
                if run:
                    stretches.append(Common(*run))
                run = [i, i, j, j]
        else:
            without_one = j - (rows[i - 1] & (1 << j) - 1).bit_count()
            without_other = j - 1 - (rows[i] & (1 << j - 1) - 1).bit_count()
            if without_one > without_other:
                i -= 1
            else:
                j -= 1
            if run:
                stretches.append(Common(*run))
                run = []
    if run:
        stretches.append(Common(*run))
    return bytes(reversed(taken)), stretches


def _rows(one: bytes, other: bytes, *, keep: bool) -> list[int]:
    """Return the table's rows, beginning with that of no bytes of `one`; only the last, unless `keep` is set."""
    places: dict[int, int] = {}
    for place, byte in enumerate(other):
        places[byte] = places.get(byte, 0) | 1 << place
    whole = (1 << len(other)) - 1
    row = whole
    rows = [row]
    for byte in one:
        grown = row & places.get(byte, 0)
        row = (row + grown | row - grown) & whole
        if keep:
            rows.append(row)
    return rows if keep else [row]
