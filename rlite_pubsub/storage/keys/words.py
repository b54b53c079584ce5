"""Several strings in one record: the form of a small list, set or hash in the record of its key.

    count u32, the length of each u32, the strings
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from struct import Struct
from typing import Final

_COUNT: Final = Struct(">I")


@cache
def _lengths(count: int) -> Struct:
    return Struct(f">{count + 1}I")


def pack(words: Sequence[bytes]) -> bytes:
    """Pack strings into one."""
    count = len(words)
    return _lengths(count).pack(count, *map(len, words)) + b"".join(words)


def unpack(packed: bytes, at: int) -> list[bytes]:
    """Return the strings from `at` to the end."""
    count = _COUNT.unpack_from(packed, at)[0]
    head = _lengths(count)
    words = []
    start = at + head.size
    for length in head.unpack_from(packed, at)[1:]:
        end = start + length
        words.append(packed[start:end])
        start = end
    return words
