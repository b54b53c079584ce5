"""Sets, as a turn works on them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import TYPE_CHECKING

from rlite_pubsub.keyspace.collection import Collection, Shelter
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.keys import key_records, members

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.keys.key_records import KeyRecord


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
            self._keyspace.appended(self)
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
