"""A writing transaction that notes the rows it changes, for the journal.

Its cursors are LMDB's own, for reading. What changes rows at a cursor goes through `databases.put_rows` and
`databases.delete_here`, which note it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import lmdb

    from rlite_pubsub.storage.journal.journal import Row

Txn: TypeAlias = "lmdb.Transaction[bytes]"
Cursor: TypeAlias = "lmdb.Cursor[bytes]"

MOST_TURN_BYTES: Final = 256 << 10
"""What one turn may change; a larger one is committed by itself."""
_ROW_BYTES: Final = 50


class RecordedTransaction:
    """LMDB's transaction, and the rows that the present turn has changed in it."""

    __slots__ = ("cursor", "get", "id", "rows", "size", "stat", "txn")

    def __init__(self, txn: Txn) -> None:
        self.txn = txn
        self.get: Callable[..., Any] = txn.get
        self.cursor: Callable[..., Any] = txn.cursor
        self.stat: Callable[..., Any] = txn.stat
        self.id: Callable[..., Any] = txn.id
        self.rows: list[Row] = []
        self.size = 0
        """About how many bytes they have; beyond `MOST_TURN_BYTES`, which the journal does not take, there are none."""

    def put(self, key: bytes, value: bytes) -> bool:
        """Write a row."""
        done: bool = self.txn.put(key, value)
        self.size += _ROW_BYTES + len(value)
        if self.size <= MOST_TURN_BYTES:
            self.rows.append((key, value))
        elif self.rows:
            self.rows = []
        return done

    def delete(self, key: bytes) -> bool:
        """Remove a row; return whether it was there."""
        done: bool = self.txn.delete(key)
        if done:
            self.note_removed(key)
        return done

    def note_removed(self, key: bytes) -> None:
        """Note that a row is removed."""
        self.size += _ROW_BYTES
        if self.size <= MOST_TURN_BYTES:
            self.rows.append((key, None))
        elif self.rows:
            self.rows = []


def put_rows(txn: Txn, rows: list[tuple[bytes, bytes]]) -> None:
    """Write rows, which are in the order of their keys: side by side LMDB finds them sooner."""
    txn.cursor().putmulti(rows)
    if isinstance(txn, RecordedTransaction):
        txn.size += sum([_ROW_BYTES + len(value) for _, value in rows])
        if txn.size <= MOST_TURN_BYTES:
            txn.rows += rows
        elif txn.rows:
            txn.rows = []


def delete_here(txn: Txn, cursor: Cursor) -> bool:
    """Remove the row at this cursor of the transaction, which stands on the next one then. Returns whether there is
    one."""
    if isinstance(txn, RecordedTransaction):
        txn.note_removed(cursor.key())
    return cursor.delete()
