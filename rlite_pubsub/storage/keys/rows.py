"""What a turn has changed of one large collection, and its transaction does not have yet.

The same member is often changed more than once in a turn, and so is what is counted over many of them. So the records
are gathered, and written once, in the order of their keys: when the key's own record is written, at the turn's end, or
before anybody walks over them. A single record is read through `get`, which knows what is still to be written.

Beside them a collection holds in memory what it has read or made of its content; `held_bytes` says about how much.
"""

from __future__ import annotations

from typing import Final

from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.keys import key_bytes

_MOST_BYTES: Final = 4 << 20
"""Of one collection, that wait to be written: a script or a transaction may go on for long."""
_in_order: Final = key_bytes.in_order
_ROW_BYTES: Final = 200
"""What one takes in memory beside its value, about."""


class Rows:
    """The rows of one collection."""

    __slots__ = ("_bytes", "_changed", "held_bytes")

    def __init__(self) -> None:
        self._changed: dict[bytes, bytes | None] = {}  # None: there is to be no such record
        self._bytes = 0
        self.held_bytes = 0

    def get(self, txn: Txn, key: bytes) -> bytes | None:
        """As the turn has left it."""
        changed = self._changed
        if changed and key in changed:
            return changed[key]
        found: bytes | None = txn.get(key)
        return found

    def changes(self, key: bytes) -> bool:
        """Whether the store has something else under this key, or nothing."""
        return key in self._changed

    def put(self, txn: Txn, key: bytes, value: bytes) -> None:
        """It is to be written."""
        self._changed[key] = value
        self._bytes += _ROW_BYTES + len(value)
        if self._bytes > _MOST_BYTES:
            self.write(txn)

    def delete(self, txn: Txn, key: bytes) -> None:
        """It is to be removed, if it is there."""
        self._changed[key] = None
        self._bytes += _ROW_BYTES
        if self._bytes > _MOST_BYTES:
            self.write(txn)

    def write(self, txn: Txn) -> None:
        """Bring what is gathered into the transaction, which writes."""
        changed = self._changed
        if not changed:
            return
        self._changed = {}
        self._bytes = 0
        kept: list[tuple[bytes, bytes]] = []
        for key in _in_order(changed):
            value = changed[key]
            if value is None:
                txn.delete(key)
            else:
                kept.append((key, value))
        if len(kept) == 1:
            key, value = kept[0]
            txn.put(key, value)
        elif kept:
            txn.cursor().putmulti(kept)

    def forget(self) -> None:
        """What is gathered is not wanted any more: the collection goes."""
        self._changed = {}
        self._bytes = 0
