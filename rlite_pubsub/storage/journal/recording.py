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

    __slots__ = ("_bytes", "cursor", "get", "id", "is_too_much", "rows", "stat", "txn")

    def __init__(self, txn: Txn) -> None:
        self.txn = txn
        self.get: Callable[..., Any] = txn.get
        self.cursor: Callable[..., Any] = txn.cursor
        self.stat: Callable[..., Any] = txn.stat
        self.id: Callable[..., Any] = txn.id
        self.rows: list[Row] = []
        self.is_too_much = False
        """The turn changes more than the journal takes: `rows` does not have all of it."""
        self._bytes = 0

    def put(self, key: bytes, value: bytes) -> bool:
        """Write a row."""
        done: bool = self.txn.put(key, value)
        if not self.is_too_much:
            self.rows.append((key, value))
            self._grow(len(value))
        return done

    def delete(self, key: bytes) -> bool:
        """Remove a row; return whether it was there."""
        done: bool = self.txn.delete(key)
        if done:
            self.note_removed(key)
        return done

    def put_rows(self, rows: list[tuple[bytes, bytes]]) -> None:
        """Write rows, which are in the order of their keys."""
        self.txn.cursor().putmulti(rows)
        if not self.is_too_much:
            self.rows += rows
            self._grow(sum([len(value) for _, value in rows]) + _ROW_BYTES * (len(rows) - 1))

    def note_removed(self, key: bytes) -> None:
        """Note that a row is removed."""
        if not self.is_too_much:
            self.rows.append((key, None))
            self._grow(0)

    def begin_turn(self) -> None:
        """Forget the rows of the turn before."""
        if self.rows:
            self.rows = []
        self._bytes = 0

    def _grow(self, size: int) -> None:
        self._bytes += size + _ROW_BYTES
        if self._bytes > MOST_TURN_BYTES:
            self.is_too_much = True
            self.rows = []


def put_rows(txn: Txn, rows: list[tuple[bytes, bytes]]) -> None:
    """Write rows, which are in the order of their keys: side by side LMDB finds them sooner."""
    if isinstance(txn, RecordedTransaction):
        txn.put_rows(rows)
    else:
        txn.cursor().putmulti(rows)


def delete_here(txn: Txn, cursor: Cursor) -> bool:
    """Remove the row at this cursor of the transaction, which stands on the next one then. Returns whether there is
    one."""
    if isinstance(txn, RecordedTransaction):
        txn.note_removed(cursor.key())
    return cursor.delete()
