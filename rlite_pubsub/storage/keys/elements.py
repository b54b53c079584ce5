"""The elements of large lists: one record for each, in order.

    key    'L', number u64, index u64    value  the element

Indexes begin in the middle of the 64-bit range, so that a list grows at both ends. In memory they are counted from
there, and so stay small.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from mypy_extensions import i64

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.keys import key_bytes

MIDDLE: Final = 1 << 63
"""What the store has for 0."""
_element: Final = key_bytes.element
_NUMBER: Final = Struct(">cQ")
_HALF: Final = 1 << 31  # of MIDDLE's upper 32 bits


def key(number: int, index: int) -> bytes:
    """Return the key of an element; its record is the element itself."""
    return _element(databases.ELEMENTS, number, index)


def _index_of(key: bytes) -> int:
    high: i64 = key[9] << 24 | key[10] << 16 | key[11] << 8 | key[12]
    low: i64 = key[13] << 24 | key[14] << 16 | key[15] << 8 | key[16]
    return (high - _HALF) * 4294967296 + low


def between(txn: Txn, number: int, start: int, stop: int) -> Iterator[bytes]:
    """Yield the elements from `start` up to `stop`. Change nothing meanwhile."""
    end = key(number, stop)
    of_list = _NUMBER.pack(databases.ELEMENTS, number)
    for at, element in databases.items_from(txn, of_list, key(number, start)):
        if at >= end:
            return
        yield element


def next_to(txn: Txn, number: int, index: int, count: int, most_bytes: int) -> list[tuple[int, bytes, bytes]]:
    """Return the records of `count` elements after an index, or (if negative) before it, each with its own index; up to
    this many bytes, and one more. Elements that this turn has pushed may be missing."""
    found: list[tuple[int, bytes, bytes]] = []
    most = abs(count)
    of_list = _NUMBER.pack(databases.ELEMENTS, number)
    cursor = txn.cursor()
    if count < 0:
        if not databases.seek_back(cursor, of_list, key(number, index - 1)):
            return found
        rows = cursor.iterprev()
    else:
        if not cursor.set_range(key(number, index + 1)):
            return found
        rows = cursor.iternext()
    for at, element in rows:
        if not at.startswith(of_list):
            break
        place = _index_of(at)
        if not -most <= place - index <= most:
            break
        found.append((place, at, element))
        most_bytes -= len(element)
        if most_bytes < 0:
            break
    return found


def backwards(txn: Txn, number: int, start: int, stop: int) -> Iterator[bytes]:
    """Like `between`, the last one first."""
    first = key(number, start)
    cursor = txn.cursor()
    last = key(number, stop - 1)
    found = databases.seek_back(cursor, _NUMBER.pack(databases.ELEMENTS, number), last)
    while found and cursor.key() >= first:
        yield cursor.value()
        found = cursor.prev()
