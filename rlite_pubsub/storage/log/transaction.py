"""A transaction over the log and LMDB: a snapshot, and the rows that the present turn has changed.

    own rows          what this turn has changed, in a dict
    active window     what was committed since the last window was frozen
    frozen windows    what is on its way into LMDB; most of the time there is none
    LMDB              all that was before, in a read transaction of its own

A key is looked up in this order, and the first that knows it is right: a window also knows which keys were removed. A
cursor merges them, in the order of keys.

    LAW   A snapshot takes no lock and keeps no page of LMDB from being used again for longer than a checkpoint: the
          windows' tips are two numbers, and LMDB's read transaction belongs to the log, which renews it.
    LAW   A cursor walks the database of the key that it was put at (its first byte), and no further.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rlite_pubsub.storage.keys.key_bytes import ROW_BYTES
from rlite_pubsub.storage.log.gaps import LEAST_STEPS, Gap, Gaps, around, fill, note
from rlite_pubsub.storage.log.place import Place

if TYPE_CHECKING:
    import lmdb

    from rlite_pubsub.storage.window.window import View, Window

    LmdbTransaction: TypeAlias = "lmdb.Transaction[bytes]"
    LmdbCursor: TypeAlias = "lmdb.Cursor[bytes]"

POSITION: Final = b"\0log"
"""A row of LMDB: up to which segment it has everything, and which commit is the last of that."""
_SEGMENT: Final = Struct(">Q")

Rows: TypeAlias = dict[bytes, bytes | None]
"""Values by their keys; None: the row is removed."""

_EVERYTHING: Final = -1


def segment_at_home(txn: LmdbTransaction) -> int:
    """Return the number of the last segment that LMDB has, in a transaction of LMDB's."""
    found = txn.get(POSITION)
    return int(_SEGMENT.unpack_from(found)[0]) if found is not None else 0


class Layer:
    """A window, and its keys in order for whoever walks there."""

    __slots__ = ("_view_of", "_views", "number", "window")

    def __init__(self, window: Window, view_of: Callable[[Window, int], View]) -> None:
        self.window = window
        self.number = int(window.number)
        """Of its segment, also when it is closed."""
        self._view_of = view_of
        self._views: dict[int, View] = {}

    def view(self, database: int) -> View:
        """Return the keys of a database; of all of them for -1."""
        found = self._views.get(database)
        if found is None:
            found = self._views[database] = self._view_of(self.window, database)
        return found

    def close(self) -> None:
        """Close the window, and its views."""
        for view in self._views.values():
            view.close()
        self._views = {}
        self.window.close()


Snapshot: TypeAlias = tuple[Layer, int]
"""A window, and what it had committed."""


class LogTransaction:
    """What one turn sees, and what it has changed. The methods are those of LMDB's transaction."""

    __slots__ = (
        "_changes",
        "_gaps",
        "_known_gaps",
        "_number",
        "_ordered",
        "_ordered_at",
        "has_found_gaps",
        "is_committed",
        "layers",
        "lmdb",
        "own",
        "size",
        "windows",
    )

    def __init__(
        self,
        number: int,
        layers: list[Snapshot],
        lmdb: LmdbTransaction,
        windows: tuple[object, ...] = (),
        known_gaps: Gaps | None = None,
    ) -> None:
        """`layers`: the newest one first. `windows`: what the log had open then. `known_gaps`: what walks before have
        found."""
        self._number = number
        self.layers = layers
        self.lmdb = lmdb
        self.windows = windows
        self._known_gaps = known_gaps
        self._gaps: list[Gap] | None = None
        self.has_found_gaps = False
        """A walk has learned something that others can use."""
        self.is_committed = False
        self.own: Rows = {}
        self.size = 0
        """About how many bytes more there are by this turn: what it has replaced is not taken off."""
        self._changes = 0
        self._ordered: list[bytes] = []
        self._ordered_at = 0

    @property
    def place(self) -> Place:
        """How far the log is read that it sees."""
        layer, tip = self.layers[0]
        return Place(layer.number, tip)

    def id(self) -> int:
        """Return the number of the commit that is being made; of one that only reads, that of the last one it sees."""
        return self._number

    def begin_writing(self) -> None:
        """From now on it may change rows: its number is that of the commit which it makes."""
        self._number += 1

    def get(self, key: bytes) -> bytes | None:
        """Return a row's value; None if there is no such row."""
        own = self.own
        if own and key in own:
            return own[key]
        return self.committed(key)

    def committed(self, key: bytes) -> bytes | None:
        """Return what a row was before this turn."""
        for layer, tip in self.layers:
            found = layer.window.get(tip, key)
            if found is not None:
                return None if found is False else found
        value: bytes | None = self.lmdb.get(key)
        return value

    def put(self, key: bytes, value: bytes) -> bool:
        """Write a row."""
        if self._gaps:
            fill(self._gaps, key)
        self.own[key] = value
        self.size += ROW_BYTES + len(value)
        self._changes += 1
        return True

    def delete(self, key: bytes) -> bool:
        """Remove a row; return whether it was there."""
        found = self.get(key)
        if found is None:
            return False
        self.own[key] = None
        self.size -= ROW_BYTES + len(found)
        self._changes += 1
        return True

    def change(self, rows: Rows) -> None:
        """Write rows, and remove those that are None. The caller gives the dictionary away."""
        if self._gaps:
            for key, value in rows.items():
                if value is not None:
                    fill(self._gaps, key)
        if self.own:
            self.own.update(rows)
        else:
            self.own = rows
        for value in rows.values():
            if value is not None:
                self.size += ROW_BYTES + len(value)
        self._changes += 1

    def gaps(self) -> list[Gap]:
        """Return where it has no rows, as far as that is known."""
        found = self._gaps
        if found is None:
            known = self._known_gaps
            found = self._gaps = known.at(self.place) if known is not None else []
            if found:
                for key, value in self.own.items():
                    if value is not None:
                        fill(found, key)
        return found

    def note_gap(self, begin: bytes, end: bytes) -> None:
        """There is nothing between these keys."""
        note(self.gaps(), begin, end)
        self.has_found_gaps = True

    def tell_gaps(self, place: Place) -> None:
        """Let others know what has been found, which holds at this place: its own, or that of its commit."""
        if self._known_gaps is not None and self._gaps is not None:
            self._known_gaps.learn(self._gaps, place)

    def added(self) -> int:
        """Return how many of its rows have a value."""
        return sum(value is not None for value in self.own.values())

    def stat(self) -> dict[str, int]:
        """Return what LMDB says of its pages, with those that it will need besides for what is not home yet. `entries`
        is 0 if there has never been a row."""
        stat = dict[str, int](**self.lmdb.stat())
        home = segment_at_home(self.lmdb)
        grown, commits = self.size, 0
        for layer, tip in self.layers:
            if layer.window.number > home:
                grown += layer.window.grown
                commits += tip >> 32
        stat["leaf_pages"] = max(0, stat["leaf_pages"] + grown // stat["psize"])
        stat["entries"] += commits + len(self.own)
        return stat

    def cursor(self) -> LogCursor:
        """Return a cursor, which stands nowhere."""
        return LogCursor(self)

    @property
    def changes(self) -> int:
        """A number that every change increases: a cursor learns from it that its own rows are others."""
        return self._changes

    def ordered(self) -> list[bytes]:
        """Return the keys of the turn's own rows, in order."""
        if self._ordered_at != self._changes:
            self._ordered_at = self._changes
            self._ordered = sorted(self.own)
        return self._ordered


class LogCursor:
    """A place among the rows of a transaction. The methods are those of LMDB's cursor.

    It holds the next key that each source has in the direction in which it walks, so a step asks only those sources
    that had the key where it stood.
    """

    __slots__ = (
        "_at",
        "_changes",
        "_database",
        "_heads",
        "_is_forward",
        "_layers",
        "_lmdb_cursor",
        "_txn",
        "_value",
    )

    def __init__(self, txn: LogTransaction) -> None:
        self._txn = txn
        self._layers = txn.layers
        self._lmdb_cursor: LmdbCursor | None = None
        self._at: bytes | None = None
        self._value: bytes | None = None
        self._database = _EVERYTHING
        self._heads: list[bytes | None] = []
        """The next keys of own rows, LMDB, and each window; empty: they have to be looked for."""
        self._is_forward = True
        self._changes = 0

    # -- where it stands

    def key(self) -> bytes:
        """Return the key of the row where it stands; b"" if it stands nowhere."""
        return b"" if self._at is None else self._at

    def value(self) -> bytes:
        """Return the value of that row."""
        if self._at is None:
            return b""
        found = self._value if self._changes == self._txn.changes else self._txn.get(self._at)
        return b"" if found is None else found

    def item(self) -> tuple[bytes, bytes]:
        """Return both."""
        return self.key(), self.value()

    # -- where it goes

    def set_range(self, key: bytes) -> bool:
        """Go to the first row that is not less than the key, in the key's database. Returns whether there is one; if
        not, it stands nowhere."""
        self._database = key[0] if key else _EVERYTHING
        return self._walk_from(key, True, True)

    def set_key(self, key: bytes) -> bool:
        """Go to this row. Returns whether there is one."""
        return self.set_range(key) and self._at == key

    def first(self) -> bool:
        """Go to the first row of the database that it was put at; of all if it was put at none."""
        return self._walk_from(b"" if self._database == _EVERYTHING else bytes([self._database]), True, True)

    def last(self) -> bool:
        """Go to the last row of that database."""
        return self._walk_from(None, False, False)

    def next(self) -> bool:
        """Go to the next row; from nowhere, to the first one."""
        if self._at is None:
            return self.first()
        if self._heads and self._is_forward and self._changes == self._txn.changes:
            return self._settle()
        return self._walk_from(self._at, True, False)

    def prev(self) -> bool:
        """Go to the row before; from nowhere, to the last one."""
        if self._at is None:
            return self.last()
        if self._heads and not self._is_forward and self._changes == self._txn.changes:
            return self._settle()
        return self._walk_from(self._at, False, False)

    def delete(self) -> bool:
        """Remove the row where it stands, and go to the next one. Returns whether there is one."""
        if self._at is None:
            return False
        self._txn.delete(self._at)
        return self.next()

    def iternext(self, keys: bool = True, values: bool = True) -> Iterator[Any]:
        """Yield the rows from where it stands on; from nowhere, from the first one. Without `values`, only keys."""
        found = self._at is not None or self.first()
        while found:
            yield self.item() if values else self.key()
            found = self.next()

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self.iternext()

    def putmulti(self, rows: list[tuple[bytes, bytes]]) -> None:
        """Write rows."""
        self._txn.change(dict(rows))

    def iterprev(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows from where it stands backwards; from nowhere, from the last one."""
        found = self._at is not None or self.last()
        while found:
            yield self.item()
            found = self.prev()

    # -- merging

    def _walk_from(self, key: bytes | None, is_forward: bool, or_at: bool) -> bool:
        """Look for the next keys of all sources, and go to the first of them that has a value."""
        self._is_forward = is_forward
        self._changes = self._txn.changes
        self._heads = self._heads_from(key, or_at)
        return self._settle()

    def _heads_from(self, key: bytes | None, or_at: bool) -> list[bytes | None]:
        """Return the next keys of all sources: of own rows, LMDB, and each window."""
        heads = [self._own_head(key, or_at), self._lmdb_head(key, or_at)]
        for layer, tip in self._layers:
            heads.append(_head_in(layer, tip, self._database, key, self._is_forward, or_at))
        return heads

    def _settle(self) -> bool:
        """Go to the nearest of the next keys that has a value."""
        heads = self._heads
        steps = 0  # over removed rows
        start = b""  # the first of them
        while True:
            nearest: bytes | None = None
            if self._is_forward:
                for head in heads:
                    if head is not None and (nearest is None or head < nearest):
                        nearest = head
            else:
                for head in heads:
                    if head is not None and (nearest is None or head > nearest):
                        nearest = head
            self._at = nearest
            if nearest is None:
                if steps >= LEAST_STEPS:
                    self._note(start, None)
                return False
            for source in range(len(heads)):
                if heads[source] == nearest:
                    heads[source] = self._beyond(source, nearest)
            value = self._value = self._txn.get(nearest)
            if value is not None:
                if steps >= LEAST_STEPS:
                    self._note(start, nearest)
                return True
            if not steps:
                start = nearest
            steps += 1
            gap = around(self._txn.gaps(), nearest)
            if gap is not None:
                heads = self._heads = self._heads_from(gap[1] if self._is_forward else gap[0], self._is_forward)

    def _note(self, start: bytes, found: bytes | None) -> None:
        """There was nothing between the first removed row and the one that was found; None: the end of the database."""
        if found is None and self._database in (_EVERYTHING, 255):
            return
        if self._is_forward:
            self._txn.note_gap(start, bytes([self._database + 1]) if found is None else found)
        else:
            self._txn.note_gap(bytes([self._database]) if found is None else found + b"\0", start + b"\0")

    def _beyond(self, source: int, key: bytes) -> bytes | None:
        """Return the next key of one source after this one, where it stands."""
        if source == 0:
            return self._own_head(key, False)
        if source == 1:
            cursor = self._lmdb_cursor
            assert cursor is not None
            return self._within(cursor, cursor.next() if self._is_forward else cursor.prev())
        layer, tip = self._layers[source - 2]
        return _head_in(layer, tip, self._database, key, self._is_forward, False)

    def _own_head(self, key: bytes | None, or_at: bool) -> bytes | None:
        if not self._txn.own:
            return None
        ordered = self._txn.ordered()
        if self._is_forward:
            at = bisect_left(ordered, key or b"") if or_at else bisect_right(ordered, key or b"")
            found = ordered[at] if at < len(ordered) else None
        else:
            at = len(ordered) if key is None else bisect_left(ordered, key)
            if key is None and self._database != _EVERYTHING:
                at = bisect_left(ordered, bytes([self._database + 1])) if self._database < 255 else len(ordered)
            found = ordered[at - 1] if at else None
        return found if found is None or self._database in (_EVERYTHING, found[0]) else None

    def _lmdb_head(self, key: bytes | None, or_at: bool) -> bytes | None:
        cursor = self._lmdb_cursor
        if cursor is None:
            cursor = self._lmdb_cursor = self._txn.lmdb.cursor()
        if self._is_forward:
            found = cursor.set_range(key) if key else cursor.first()
            if found and not or_at and cursor.key() == key:
                found = cursor.next()
        else:
            if key is None and self._database not in (_EVERYTHING, 255):
                key = bytes([self._database + 1])
            found = cursor.prev() if key is not None and cursor.set_range(key) else cursor.last()
        return self._within(cursor, found)

    def _within(self, cursor: LmdbCursor, found: bool) -> bytes | None:
        if not found:
            return None
        key: bytes = cursor.key()
        return key if self._database in (_EVERYTHING, key[0]) else None


def _head_in(layer: Layer, tip: int, database: int, key: bytes | None, is_forward: bool, or_at: bool) -> bytes | None:
    view = layer.view(database)
    if not is_forward:
        return view.before(tip, key)
    return view.at_or_after(tip, key or b"") if or_at else view.after(tip, key or b"")
