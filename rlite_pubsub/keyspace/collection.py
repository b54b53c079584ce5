"""The common ground of collections (lists.py, sets.py, hashes.py).

A small one stands in the record of its key, whole, and costs what a string does (packing.py). A large one has a number,
and under it a record for each member, so that changing one member writes one record. Changed records are written with
the record of its key, or before a walk over them; those it has read stay in memory, up to a bound, as long as the key's
record is cached (part.py). Code that changes a collection gets it from `Keyspace.for_change`; the command removes one
that has become empty.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, ClassVar, Final

from mypy_extensions import mypyc_attr

from rlite_pubsub.keyspace.records import Record
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.keys import garbage, key_records
from rlite_pubsub.storage.keys.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.keyspace.packing import Packing
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.keys.key_records import KeyRecord

NUMBER: Final = Struct(">Q")
SMALL: Final = NUMBER.pack(0)
"""Of what stands in the record of its key."""
_FEW: Final = 64
"""The size up to which a large collection is removed at once, without garbage."""
_MOST_HELD_BYTES: Final = 16 << 20
"""Of the content of one."""


class Shelter:
    """What a collection asks of the part of the keyspace that it is in."""

    packing: Packing
    clock_ms: Callable[[], int]
    cached_bytes: int
    """About how many bytes of memory its contents take."""

    def reading(self) -> Txn:
        """Return the turn's transaction."""
        raise NotImplementedError

    def writing(self) -> Txn:
        """Return the turn's transaction, which writes from now on. Raises StoreError."""
        raise NotImplementedError

    def changed(self, record: Record, grown_bytes: int = 0) -> None:
        """Note that a record was changed."""
        raise NotImplementedError

    def appended(self, record: Record, count: int = 0) -> None:
        """Note that a record was changed, and wake the clients that are blocked on it."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Collection(Record):
    """The base of all collections."""

    __slots__ = ("_counted_bytes", "_keyspace", "_rows", "number")

    database_bytes: ClassVar[tuple[bytes, ...]]
    """Where the contents of a large one stand."""

    def __init__(self, keyspace: Shelter, database: int, name: bytes, place: bytes) -> None:
        super().__init__(database, name, place)
        self._keyspace = keyspace
        self.number = 0  # of a large one
        self._rows = Rows()  # of a large one
        self._counted_bytes = 0  # of what it holds, in what is cached

    def __len__(self) -> int:
        raise NotImplementedError

    def __bool__(self) -> bool:
        return True

    def loaded(self, stored: KeyRecord) -> None:
        super().loaded(stored)
        self.number = NUMBER.unpack_from(stored.body)[0]

    def drop(self, txn: Txn) -> None:
        """Remove it: the contents of a large one become garbage."""
        if not self.number:
            return
        self._rows.forget()
        if len(self) <= _FEW:
            for byte in self.database_bytes:
                databases.delete_all(txn, byte + NUMBER.pack(self.number))
        else:
            garbage.add(txn, garbage.TOPIC, self.number)

    def copy_content(self, other: Collection) -> None:
        """Copy the records of another large one of the same kind; this one is new."""
        txn = self._keyspace.writing()
        other.bring(txn)
        self.number = key_records.new_topic(txn)
        for byte in self.database_bytes:
            databases.copy_all(txn, byte + NUMBER.pack(other.number), byte + NUMBER.pack(self.number))

    def copy_from(self, other: Collection) -> None:
        """Copy the contents of another one of the same kind; this one is new."""
        raise NotImplementedError

    @property
    def content_bytes(self) -> int:
        """About how many bytes of the store its contents take."""
        raise NotImplementedError

    @property
    def stored_bytes(self) -> int:
        return super().stored_bytes + self.content_bytes

    def packed(self, txn: Txn, modified: int) -> bytes:
        self.modified = modified
        self.is_stored = True
        if self.number:
            self.bring(txn)
        return key_records.pack(self.type, self.flags, self.expires_ms, modified, self.name, self.body(txn))

    # -- the content of a large one

    def bring(self, txn: Txn) -> None:
        """Write its changed contents."""
        self._rows.write(txn)

    def let_go(self) -> None:
        """Drop its contents from memory. All has been written."""
        self._rows.held_bytes = 0

    def _content(self) -> Txn:
        """Return the turn's transaction, with all changes of the contents."""
        txn = self._keyspace.reading()
        self.bring(txn)
        return txn

    def _mind_memory(self) -> None:
        """Keep its memory within bounds. Called when a single member is asked for."""
        rows = self._rows
        held_bytes = rows.held_bytes
        if held_bytes == self._counted_bytes:
            return
        if held_bytes > _MOST_HELD_BYTES:
            self.bring(self._keyspace.reading())
            self.let_go()
            held_bytes = 0
        self._keyspace.cached_bytes += held_bytes - self._counted_bytes
        self._counted_bytes = held_bytes
