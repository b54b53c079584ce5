"""What collections (lists.py, sets.py, hashes.py) have in common.

A small one stands in the record of its key, whole, and costs what a string does (packing.py). A large one has a number,
and records of their own, under it, for what it holds: to change one member is to write one record. Whoever changes a
collection has it from `Keyspace.for_change`; one that has become empty is removed by the command.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from mypy_extensions import mypyc_attr

from rlite_pubsub.keyspace.records import Record
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.keys import garbage, key_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.keyspace.packing import Packing
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.keys.key_records import KeyRecord
    from rlite_pubsub.storage.turn import Turn

NUMBER: Final = Struct(">Q")
SMALL: Final = NUMBER.pack(0)
"""Of what stands in the record of its key."""
_FEW: Final = 64
"""A large collection of at most so many is removed at once, without garbage."""


class Shelter(Protocol):
    """What it asks of the part of the keyspace that it is in."""

    packing: Packing
    clock_ms: Callable[[], int]

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


@mypyc_attr(allow_interpreted_subclasses=True)
class Collection(Record):
    """What all of them have."""

    __slots__ = ("_keyspace", "number")

    database_bytes: ClassVar[tuple[bytes, ...]]
    """Where the content of a large one stands."""

    def __init__(self, keyspace: Shelter, database: int, name: bytes, place: bytes) -> None:
        super().__init__(database, name, place)
        self._keyspace = keyspace
        self.number = 0  # of a large one

    def __len__(self) -> int:
        raise NotImplementedError

    def __bool__(self) -> bool:
        return True

    def loaded(self, stored: KeyRecord) -> None:
        super().loaded(stored)
        self.number = NUMBER.unpack_from(stored.body)[0]

    def drop(self, txn: Txn) -> None:
        """It is removed: what a large one holds is garbage."""
        if not self.number:
            return
        if len(self) <= _FEW:
            for byte in self.database_bytes:
                databases.delete_all(txn, byte + NUMBER.pack(self.number))
        else:
            garbage.add(txn, garbage.TOPIC, self.number)

    def copy_content(self, other: Collection) -> None:
        """Take over the records of another large one of the kind; this one is new."""
        txn = self._keyspace.writing()
        self.number = key_records.new_topic(txn)
        for byte in self.database_bytes:
            databases.copy_all(txn, byte + NUMBER.pack(other.number), byte + NUMBER.pack(self.number))

    def copy_from(self, other: Collection) -> None:
        """Take over all that another one of the kind holds; this one is new."""
        raise NotImplementedError

    @property
    def content_bytes(self) -> int:
        """About how many bytes of the store what it holds takes."""
        raise NotImplementedError

    @property
    def stored_bytes(self) -> int:
        return super().stored_bytes + self.content_bytes

    def packed(self, txn: Txn, modified: int) -> bytes:
        self.modified = modified
        self.is_stored = True
        return key_records.pack(self.type, self.flags, self.expires_ms, modified, self.name, self.body(txn))
