"""The beginning of a snapshot: the rows of a store, a stretch at a time, while others write to it.

Each stretch is of another moment, and as slow as it must be: the trail is rolled meanwhile, and what it finds goes over
what was read. A row that was not changed since the beginning was read as it is; one that was, is in a change.

Where a stretch ends depends on the keys, so that rows that come and go change the stretches they are in, and no others:
one in which nothing was changed is not brought away again by the next snapshot.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rlite_pubsub.backup.rows import Row
from rlite_pubsub.storage.log.transaction import POSITION

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Environment

LEAST_BYTES, MOST_BYTES = 512 << 10, 2 << 20
"""How large a stretch is, unless it is one row."""
_ENDS = 0xFFF
"""One key of so many and one more ends a stretch that is large enough."""
_DATABASES = 256


class RowCopying:
    """Reads the rows of one snapshot."""

    def __init__(self, data: Environment) -> None:
        self._data = data

    def stretches(self) -> Iterator[list[Row]]:
        """One after the other. Raises StoreError."""
        at: bytes | None = b"\0"
        while at is not None:
            begin = at
            rows, at = self._data.read(lambda txn: _stretch(txn, begin))  # noqa: B023
            if rows:
                yield rows


def _stretch(txn: Any, begin: bytes) -> tuple[list[Row], bytes | None]:
    """Return the rows from a key on, and where the next stretch begins; None at the end."""
    rows, size = list[Row](), 0
    cursor = txn.cursor()
    for database in range(begin[0], _DATABASES):
        found = cursor.set_range(begin if database == begin[0] else bytes([database]))
        while found:
            key, value = cursor.item()
            if key != POSITION:
                rows.append((key, value))
                size += len(key) + len(value)
                is_end = size >= LEAST_BYTES and not zlib.crc32(key) & _ENDS
                if is_end or size >= MOST_BYTES:
                    return rows, key + b"\0"
            found = cursor.next()
    return rows, None
