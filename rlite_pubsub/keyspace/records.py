"""Keys in memory while this process works with them: the stored state with this turn's changes.

A record lives in the cache of the part of the keyspace that it is in (part.py). Code that changes one says so to
`Part.changed`; it is written once, at the end of the turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from mypy_extensions import mypyc_attr

from rlite_pubsub.storage.keys import key_records
from rlite_pubsub.storage.keys.key_records import STRING, KeyRecord, pack

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Txn

AS_IT_IS: Final = 0
PLAIN: Final = 1
RAW: Final = 2
"""The form in which Redis would keep a string, for OBJECT ENCODING: as the value allows, never as an integer, or as put
together."""

_FRAME_BYTES: Final = 56
"""A key's place and head, and what a page of LMDB's needs to hold them."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Record:
    """A key."""

    __slots__ = (
        "database",
        "expires_ms",
        "is_stored",
        "modified",
        "name",
        "place",
        "row",
        "stored_expires_ms",
        "used_at",
    )

    type: ClassVar[int]

    def __init__(self, database: int, name: bytes, place: bytes) -> None:
        self.database = database
        self.name = name
        self.place = place
        self.row = key_records.row(place)  # the key that it stands under
        self.expires_ms = 0  # 0: never
        self.modified = 0  # the transaction that wrote it last
        self.is_stored = False
        self.stored_expires_ms = 0  # as the order of expiries has it
        self.used_at = 0.0  # by this process, roughly

    def loaded(self, stored: KeyRecord) -> None:
        """Fill it from the store."""
        self.expires_ms = self.stored_expires_ms = stored.expires_ms
        self.modified = stored.modified
        self.is_stored = True

    def rename(self, database: int, name: bytes, place: bytes) -> None:
        """Move it to this place; it is not in the store under any name."""
        self.database, self.name, self.place = database, name, place
        self.row = key_records.row(place)

    def expire_at(self, expires_ms: int) -> None:
        """Set when it expires; 0: never."""
        self.expires_ms = expires_ms

    def touch(self, at: float) -> None:
        """Note that this process used it at this time."""
        self.used_at = at

    def schedule(self, txn: Txn) -> int:
        """Update the order of expiries; return how many more keys expire now: 1, 0 or -1."""
        before, after = self.stored_expires_ms, self.expires_ms
        key_records.set_expiry(txn, self.place, before, after)
        self.stored_expires_ms = after
        return bool(after) - bool(before)

    def erase(self, txn: Txn) -> bool:
        """Remove it from the store, except what it holds beside its record; return whether it expired there."""
        if self.is_stored:
            txn.delete(self.row)
            self.is_stored = False
        before, self.stored_expires_ms = self.stored_expires_ms, 0
        if before:
            key_records.set_expiry(txn, self.place, before, 0)
        return bool(before)

    def body(self, txn: Txn) -> bytes:
        """Return its stored body, and write what does not stand in the body."""
        raise NotImplementedError

    def packed(self, txn: Txn, modified: int) -> bytes:
        """Return its record for this transaction, and count it as stored."""
        self.modified = modified
        self.is_stored = True
        return pack(self.type, self.flags, self.expires_ms, modified, self.name, self.body(txn))

    @property
    def flags(self) -> int:
        """The flags stored beside it."""
        return 0

    @property
    def stored_bytes(self) -> int:
        """About how many bytes of the store it takes."""
        return _FRAME_BYTES + len(self.name)

    @property
    def weight(self) -> int:
        """About how many bytes of memory it takes."""
        return 400


class Text(Record):
    """A string."""

    __slots__ = ("form", "value")

    type = STRING

    def __init__(self, database: int, name: bytes, place: bytes, value: bytes = b"") -> None:
        super().__init__(database, name, place)
        self.value = value
        self.form = AS_IT_IS

    def put(self, value: bytes, form: int, expires_ms: int, at: float) -> None:
        """Set the string."""
        self.value = value
        self.form = form
        self.expires_ms = expires_ms
        self.used_at = at

    def keep_raw(self) -> None:
        """Note that the string was put together, without a change."""
        self.form = RAW

    def loaded(self, stored: KeyRecord) -> None:
        super().loaded(stored)
        self.form = stored.flags

    def body(self, txn: Txn) -> bytes:
        return self.value

    @property
    def flags(self) -> int:
        return self.form

    def packed(self, txn: Txn, modified: int) -> bytes:
        self.modified = modified
        self.is_stored = True
        return pack(STRING, self.form, self.expires_ms, modified, self.name, self.value)

    @property
    def stored_bytes(self) -> int:
        return super().stored_bytes + len(self.value)

    @property
    def weight(self) -> int:
        return 400 + len(self.value)
