"""Lists and sets: enough of them for what clients keep beside topics, such as queues of tasks and their bindings.

Elements and members are records of their own, under the collection's number: to change one is to write one. Whoever
changes a collection has it from `Keyspace.for_change`; one that has become empty is removed by the command.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Protocol

from rlite_pubsub.keyspace.records import Record
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.keys import elements, garbage, key_records, members

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.keys.key_records import KeyRecord

_NUMBER = Struct(">Q")
_SMALL = 64
"""A collection of at most so many is removed at once, without garbage."""


class Shelter(Protocol):
    """What it asks of the keyspace that it is in."""

    def reading(self) -> Txn:
        """The turn's transaction."""

    def writing(self) -> Txn:
        """The turn's transaction, which writes from now on. Raises StoreError."""

    def changed(self, record: Record) -> None:
        """It was changed."""

    def signal(self, database: int, name: bytes | None) -> None:
        """Whoever is blocked on this key should look."""


class Collection(Record):
    """What lists and sets have in common: a number, under which their content stands."""

    __slots__ = ("_keyspace", "number")

    database_byte: bytes

    def __init__(self, keyspace: Shelter, database: int, name: bytes, place: bytes) -> None:
        super().__init__(database, name, place)
        self._keyspace = keyspace
        self.number = 0

    def __len__(self) -> int:
        raise NotImplementedError

    def __bool__(self) -> bool:
        return True

    def loaded(self, stored: KeyRecord) -> None:
        super().loaded(stored)
        self.number = _NUMBER.unpack_from(stored.body)[0]

    def drop(self, txn: Txn) -> None:
        """It is removed: what it holds is garbage."""
        garbage.add(txn, garbage.TOPIC, self.number)
        if len(self) <= _SMALL:
            garbage.sweep_topic(txn, self.number)

    def copy_from(self, other: Collection) -> None:
        """Take over all that another one of the kind holds; this one is new."""
        txn = self._keyspace.writing()
        old, new = (self.database_byte + _NUMBER.pack(number) for number in (other.number, self.number))
        databases.copy_all(txn, old, new)
        self._keyspace.changed(self)

    def signal(self) -> None:
        """It has changed: whoever is blocked on it should look."""
        self._keyspace.changed(self)
        self._keyspace.signal(self.database, self.name)


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

    def push(self, added: Iterable[bytes], *, left: bool) -> None:
        """Put elements, one after the other, at an end."""
        txn = self._keyspace.writing()
        for element in added:
            if left:
                self._start -= 1
                elements.put(txn, self.number, self._start, element)
            else:
                elements.put(txn, self.number, self._stop, element)
                self._stop += 1
        self.signal()

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


class Set(Collection):
    """A set."""

    __slots__ = ("_count",)

    type = key_records.SET
    database_byte = databases.MEMBERS
    _BODY = Struct(">QQ")

    def __init__(self, keyspace: Shelter, database: int, name: bytes, place: bytes) -> None:
        super().__init__(keyspace, database, name, place)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def loaded(self, stored: KeyRecord) -> None:
        super().loaded(stored)
        _, self._count = self._BODY.unpack(stored.body)

    def body(self, txn: Txn) -> bytes:
        return self._BODY.pack(self.number, self._count)

    def copy_from(self, other: Collection) -> None:
        self._count = len(other)
        super().copy_from(other)

    def add(self, added: Iterable[bytes]) -> int:
        """How many of them are new."""
        txn = self._keyspace.writing()
        new = sum([members.add(txn, self.number, member) for member in added])
        if new:
            self._count += new
            self.signal()
        return new

    def remove(self, removed: Iterable[bytes]) -> int:
        """How many of them there were."""
        txn = self._keyspace.writing()
        gone = sum([members.remove(txn, self.number, member) for member in removed])
        if gone:
            self._count -= gone
            self._keyspace.changed(self)
        return gone

    def has(self, member: bytes) -> bool:
        """Whether it holds this member."""
        return members.has(self._keyspace.reading(), self.number, member)

    def members(self) -> Iterator[bytes]:
        """Every member. Change nothing meanwhile."""
        return members.walk(self._keyspace.reading(), self.number)

    def sample(self, count: int) -> list[bytes]:
        """So many different members, whichever."""
        if count >= self._count:
            return list(self.members())
        if count == 1:
            digest = random.randbytes(members.DIGEST_BYTES)
            found = next(members.walk(self._keyspace.reading(), self.number, digest), None)
            return [found] if found is not None else [next(self.members())]
        return random.sample(list(self.members()), count)
