"""A writing transaction that several turns share. It notes the rows that each of them changes, for the journal.

The journal is what keeps them, so LMDB's own transaction gets them later, all at once and each only as it is in the
end: before anything walks over records, and when it is committed. From the first cursor on a turn changes LMDB's own at
once. What changes rows at a cursor goes through `delete_here`, and many rows go through `change_rows`.

    LAW    Its commit has a number of its own, even if its turns have undone each other's changes: by that number the
           journal's records become void (journal.py), and caches know that nobody else has committed (part.py). LMDB
           gives none to a transaction that has changed nothing, so then a row is written again (`touch`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rlite_pubsub.storage.keys.key_bytes import ROW_BYTES, bytes_of_rows, rows_in_order
from rlite_pubsub.storage.log.transaction import LogTransaction

if TYPE_CHECKING:
    import lmdb

Txn: TypeAlias = "lmdb.Transaction[bytes]"
Cursor: TypeAlias = "lmdb.Cursor[bytes]"
Rows: TypeAlias = dict[bytes, bytes | None]
"""Values by their keys; None: the row is removed."""

MOST_TURN_BYTES: Final = 1 << 20
"""What one turn may change; a larger one is committed by itself."""


class RecordedTransaction:
    """LMDB's transaction, what it has yet to be told, and the rows that the present turn has changed."""

    __slots__ = ("_has_changed", "_has_owed", "_owed", "_told", "id", "is_direct", "rows", "size", "txn")

    def __init__(self, txn: Txn) -> None:
        self.txn = txn
        self.id: Callable[..., Any] = txn.id
        self.is_direct = False
        """The present turn changes LMDB's own at once. These three are for whoever begins the next turn to reset."""
        self.rows: Rows = {}
        self.size = 0
        """About how many bytes they have; beyond `MOST_TURN_BYTES`, which the journal does not take, there are none."""
        self._owed: Rows = {}
        self._told = 0  # how many rows LMDB's own was told
        self._has_owed = False
        self._has_changed = False  # LMDB's own

    @property
    def changes(self) -> int:
        """How many rows a commit changes now, each of which may be on a page of its own."""
        return self._told + len(self._owed)

    def get(self, key: bytes) -> bytes | None:
        """Return a row's value; None if there is no such row."""
        owed = self._owed
        if owed and key in owed:
            return owed[key]
        found: bytes | None = self.txn.get(key)
        return found

    def put(self, key: bytes, value: bytes) -> bool:
        """Write a row."""
        if self.is_direct:
            self.txn.put(key, value)
            self._has_changed = True
            self._told += 1
        else:
            self._owed[key] = value
        self.size += ROW_BYTES + len(value)
        if self.size <= MOST_TURN_BYTES:
            self.rows[key] = value
        else:
            self._give_up()
        return True

    def delete(self, key: bytes) -> bool:
        """Remove a row; return whether it was there."""
        if self.is_direct:
            was_there = self.txn.delete(key)
        else:
            was_there = self.get(key) is not None
            if was_there:
                self._owed[key] = None
        if was_there:
            self.note_removed(key)
        return was_there

    def change(self, rows: Rows) -> None:
        """Write rows, and remove those that are None. The caller gives the dictionary away."""
        if self.is_direct:
            self._has_changed |= _change(self.txn, rows)
            self._told += len(rows)
        else:
            self._owed.update(rows)
        self.size += bytes_of_rows(rows)
        if self.size > MOST_TURN_BYTES:
            self._give_up()
        elif self.rows:
            self.rows.update(rows)
        else:
            self.rows = rows

    def cursor(self) -> Cursor:
        """Return a cursor of LMDB's own."""
        self.bring()
        self.is_direct = True
        return self.txn.cursor()

    def stat(self) -> Any:
        """Return what LMDB says of its tree."""
        self.bring()
        return self.txn.stat()

    def note_removed(self, key: bytes) -> None:
        """Note that a row was removed."""
        if self.is_direct:
            self._has_changed = True
            self._told += 1
        self.size += ROW_BYTES
        if self.size <= MOST_TURN_BYTES:
            self.rows[key] = None
        else:
            self._give_up()

    def bring(self) -> None:
        """Tell LMDB's transaction what it has yet to be told."""
        owed = self._owed
        if owed:
            self._owed = {}
            self._has_owed = True
            self._told += len(owed)
            self._has_changed |= _change(self.txn, owed)

    def commit(self) -> None:
        """Commit all of it, or nothing."""
        try:
            self.bring()
            if self._has_owed and not self._has_changed:
                touch(self.txn)
        except BaseException:
            self.txn.abort()
            raise
        self.txn.commit()

    def abort(self) -> None:
        """Undo all of it."""
        self._owed = {}
        self.txn.abort()

    def _give_up(self) -> None:
        """Hold nothing of a turn that the journal does not take."""
        if self.rows:
            self.rows = {}
        if not self.is_direct:
            self.bring()
            self.is_direct = True


def change_rows(txn: Txn, rows: Rows) -> None:
    """Write rows, and remove those that are None. The caller gives the dictionary away."""
    if isinstance(txn, (RecordedTransaction, LogTransaction)):
        txn.change(rows)
    else:
        _change(txn, rows)


def _change(txn: Txn, rows: Rows) -> bool:
    """Do that in LMDB's own transaction; return whether it has changed anything."""
    kept, gone = rows_in_order(rows)
    has_changed = bool(kept)
    for key in gone:
        has_changed |= txn.delete(key)
    if kept:
        txn.cursor().putmulti(kept)  # side by side LMDB finds them sooner
    return has_changed


def touch(txn: Txn) -> None:
    """Write a row that is there already, so that the commit has a number."""
    cursor = txn.cursor()
    if cursor.first():
        txn.put(*cursor.item())


def delete_here(txn: Txn, cursor: Cursor) -> bool:
    """Remove the row at this cursor of the transaction, which stands on the next one then. Returns whether there is
    one."""
    if isinstance(txn, RecordedTransaction):
        txn.note_removed(cursor.key())
    return cursor.delete()
