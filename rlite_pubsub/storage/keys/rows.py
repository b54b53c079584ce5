"""A turn's changes of one large collection that its transaction does not have yet.

The same member is often changed more than once in a turn, and so are counts over many of them. So the records are
gathered, and written once, in the order of their keys: when the key's own record is written, at the turn's end, or
before a walk over them. A single record is read through `get`, which knows what is still to be written.

A collection also holds in memory what it has read or made of its contents; `held_bytes` is about how much.
"""

from __future__ import annotations

from typing import Final

from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.journal.recording import change_rows

_MOST_BYTES: Final = 4 << 20
"""The bytes of one collection that wait to be written, at most: a script or a transaction may go on for long."""
_ROW_BYTES: Final = 200
"""About how much memory one takes beside its value."""


class Rows:
    """The rows of one collection."""

    __slots__ = ("_bytes", "_changed", "held_bytes")

    def __init__(self) -> None:
        self._changed: dict[bytes, bytes | None] = {}  # None: the record is to be removed
        self._bytes = 0
        self.held_bytes = 0

    def get(self, txn: Txn, key: bytes) -> bytes | None:
        """Return a record as the turn has left it."""
        changed = self._changed
        if changed and key in changed:
            return changed[key]
        found: bytes | None = txn.get(key)
        return found

    def changes(self, key: bytes) -> bool:
        """Return whether the turn has changed this key."""
        return key in self._changed

    def put(self, txn: Txn, key: bytes, value: bytes) -> None:
        """Write a row later."""
        self._changed[key] = value
        self._bytes += _ROW_BYTES + len(value)
        if self._bytes > _MOST_BYTES:
            self.write(txn)

    def delete(self, txn: Txn, key: bytes) -> None:
        """Remove a row later, if it is there."""
        self._changed[key] = None
        self._bytes += _ROW_BYTES
        if self._bytes > _MOST_BYTES:
            self.write(txn)

    def put_all(self, txn: Txn, rows: dict[bytes, bytes | None]) -> None:
        """Write many rows now, in one go. The caller gives the dictionary away."""
        self.write(txn)
        change_rows(txn, rows)

    def write(self, txn: Txn) -> None:
        """Write the gathered rows in the transaction."""
        changed = self._changed
        if not changed:
            return
        self._changed = {}
        self._bytes = 0
        if len(changed) == 1:
            for key, value in changed.items():
                if value is None:
                    txn.delete(key)
                else:
                    txn.put(key, value)
        else:
            change_rows(txn, changed)

    def forget(self) -> None:
        """Forget the gathered rows: the collection is removed."""
        self._changed = {}
        self._bytes = 0
