"""Lists, as a turn works on them: pushed and popped at both ends, read by place."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import TYPE_CHECKING

from rlite_pubsub.keyspace.collection import Collection, Shelter
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.keys import elements, key_records

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.keys.key_records import KeyRecord


class List(Collection):
    """A list."""

    __slots__ = ("_start", "_stop")

    type = key_records.LIST
    database_byte = databases.ELEMENTS
    _BODY = Struct(">QQQ")

    def __init__(self, keyspace: Shelter, database: int, name: bytes, place: bytes) -> None:
        super().__init__(keyspace, database, name, place)
        self._start = self._stop = elements.MIDDLE

    def __len__(self) -> int:
        return self._stop - self._start

    def loaded(self, stored: KeyRecord) -> None:
        super().loaded(stored)
        _, self._start, self._stop = self._BODY.unpack(stored.body)

    def body(self, txn: Txn) -> bytes:
        return self._BODY.pack(self.number, self._start, self._stop)

    def copy_from(self, other: Collection) -> None:
        assert isinstance(other, List)
        self._start, self._stop = other._start, other._stop
        super().copy_from(other)

    def push(self, added: Iterable[bytes], *, left: bool) -> int:
        """Put elements, one after the other, at an end. How many there are then."""
        txn = self._keyspace.turn.txn or self._keyspace.writing()
        for element in added:
            if left:
                self._start -= 1
                elements.put(txn, self.number, self._start, element)
            else:
                elements.put(txn, self.number, self._stop, element)
                self._stop += 1
        self._keyspace.appended(self)
        return self._stop - self._start

    def pop(self, count: int, *, left: bool) -> list[bytes]:
        """Take elements, one after the other, from an end."""
        txn = self._keyspace.writing()
        found = []
        for _ in range(min(count, len(self))):
            if not left:
                self._stop -= 1
            index = self._start if left else self._stop
            found.append(elements.get(txn, self.number, index))
            elements.delete(txn, self.number, index)
            if left:
                self._start += 1
        self._keyspace.changed(self)
        return found

    def slice(self, start: int, stop: int) -> list[bytes]:
        """The elements from one place up to another, both within the list."""
        txn = self._keyspace.reading()
        return list(elements.between(txn, self.number, self._start + start, self._start + stop))

    def keep(self, start: int, stop: int) -> None:
        """Remove all that is not between these places."""
        self.pop(len(self) - stop, left=False)
        self.pop(start, left=True)

    def remove(self, element: bytes, count: int) -> int:
        """Remove so many equal elements, from the beginning, or (a negative count) from the end; 0: all. How many."""
        every = self.slice(0, len(self))
        places = [place for place, one in enumerate(every) if one == element]
        if count:
            places = places[:count] if count > 0 else places[count:]
        if places:
            gone = set(places)
            kept = [one for place, one in enumerate(every[places[0] :], places[0]) if place not in gone]
            self.keep(0, places[0])
            self.push(kept, left=False)
        return len(places)
