"""Several strings in one record: the form of a small list, set or hash in the record of its key.

    count u32, the length of each u32, the strings
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from rlite_pubsub.storage.keys import key_bytes

_COUNT: Final = Struct(">I")
_words: Final = key_bytes.words


def pack(words: list[bytes] | tuple[bytes, ...]) -> bytes:
    """Pack strings into one."""
    return _words(words)


def unpack(packed: bytes, at: int) -> list[bytes]:
    """Return the strings from `at` to the end."""
    count = _COUNT.unpack_from(packed, at)[0]
    head = key_bytes.lengths(count)
    words = []
    start = at + head.size
    for length in head.unpack_from(packed, at)[1:]:
        end = start + length
        words.append(packed[start:end])
        start = end
    return words
