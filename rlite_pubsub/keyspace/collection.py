"""What collections (lists.py, sets.py) have in common: records of their own for what they hold.

Elements and members are records of their own, under the collection's number: to change one is to write one. Whoever
changes a collection has it from `Keyspace.for_change`; one that has become empty is removed by the command.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Protocol

from rlite_pubsub.keyspace.records import Record
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.keys import garbage, key_records

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.keys.key_records import KeyRecord
    from rlite_pubsub.storage.turn import Turn

NUMBER = Struct(">Q")
_SMALL = 64
"""A collection of at most so many is removed at once, without garbage."""


class Shelter(Protocol):
    """What it asks of the keyspace that it is in."""

    def reading(self) -> Txn:
        """The turn's transaction."""

    def writing(self) -> Txn:
        """The turn's transaction, which writes from now on. Raises StoreError."""

    @property
    def turn(self) -> Turn: ...

    def changed(self, record: Record) -> None:
        """It was changed."""

    def appended(self, record: Record) -> None:
        """It was changed, and whoever is blocked on it should look."""

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
        self.number = NUMBER.unpack_from(stored.body)[0]

    def drop(self, txn: Txn) -> None:
        """It is removed: what it holds is garbage."""
        garbage.add(txn, garbage.TOPIC, self.number)
        if len(self) <= _SMALL:
            garbage.sweep_topic(txn, self.number)

    def copy_from(self, other: Collection) -> None:
        """Take over all that another one of the kind holds; this one is new."""
        txn = self._keyspace.writing()
        old, new = (self.database_byte + NUMBER.pack(number) for number in (other.number, self.number))
        databases.copy_all(txn, old, new)
        self._keyspace.changed(self)

    def packed(self, txn: Txn, modified: int) -> bytes:
        self.modified = modified
        return key_records.pack(self.type, 0, self.expires_ms, modified, self.name, self.body(txn))
