"""What large lists hold: one record for each element, in order.

    key    'L', number u64, index u64    value  the element

Indexes begin in the middle of what 64 bits can say, so that a list grows at both ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn

MIDDLE: Final = 1 << 63
_KEY: Final = Struct(">cQQ")
_NUMBER: Final = Struct(">cQ")


def key(number: int, index: int) -> bytes:
    """Where an element stands; the record is the element itself."""
    return _KEY.pack(databases.ELEMENTS, number, index)


def between(txn: Txn, number: int, start: int, stop: int) -> Iterator[bytes]:
    """The elements from `start` up to `stop`. Change nothing meanwhile."""
    end = key(number, stop)
    of_list = _NUMBER.pack(databases.ELEMENTS, number)
    for at, element in databases.items_from(txn, of_list, key(number, start)):
        if at >= end:
            return
        yield element


def stored(txn: Txn, number: int, start: int, stop: int) -> list[tuple[int, bytes, bytes]]:
    """The records between two indexes, each with its own: those of a turn may be missing."""
    found: list[tuple[int, bytes, bytes]] = []
    end = key(number, stop)
    cursor = txn.cursor()
    if cursor.set_range(key(number, start)):
        for at, element in cursor.iternext():
            if at >= end:
                break
            found.append((int.from_bytes(at[_NUMBER.size :], "big"), at, element))
    return found


def backwards(txn: Txn, number: int, start: int, stop: int) -> Iterator[bytes]:
    """As `between`, the last one first."""
    first = key(number, start)
    cursor = txn.cursor()
    last = key(number, stop - 1)
    found = databases.seek_back(cursor, _NUMBER.pack(databases.ELEMENTS, number), last)
    while found and cursor.key() >= first:
        yield cursor.value()
        found = cursor.prev()
