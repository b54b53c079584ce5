"""Sets, as a turn works on them.

Redis keeps a set of integers as such, in order, while it has at most so many (packing.py). What it would keep so is
marked, for OBJECT ENCODING and for the order in which members are said.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, ClassVar, Final

from rlite_pubsub.keyspace.collection import SMALL, Collection, Shelter
from rlite_pubsub.keyspace.packing import MEMBER_BYTES, SET_MEMBERS
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.keys import digests, key_records, members, words

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.keys.key_records import KeyRecord

_BODY: Final = Struct(">QQ")
_INTEGER: Final = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_LONG: Final = 1 << 63
_OF_INTEGERS: Final = 1
_MEMBER_BYTES: Final = 40
"""What a member takes beside its bytes, about."""
_SAMPLES: Final = 5


def is_integer(member: bytes) -> bool:
    """Whether it is an integer of 64 bits, as Redis spells one."""
    return _INTEGER.fullmatch(member) is not None and -_LONG <= int(member) < _LONG


class Set(Collection):
    """A set."""

    __slots__ = ("_count", "_members", "is_of_integers")

    type = key_records.SET
    database_bytes: ClassVar[tuple[bytes, ...]] = (databases.MEMBERS,)

    def __init__(self, keyspace: Shelter, database: int, name: bytes, place: bytes) -> None:
        super().__init__(keyspace, database, name, place)
        self._members: dict[bytes, None] = {}  # of a small one
        self._count = 0  # of a large one
        self.is_of_integers = True  # and has never had anything else, or too many

    def __len__(self) -> int:
        return self._count if self.number else len(self._members)

    def loaded(self, stored: KeyRecord) -> None:
        super().loaded(stored)
        self.is_of_integers = bool(stored.flags & _OF_INTEGERS)
        if self.number:
            _, self._count = _BODY.unpack(stored.body)
        else:
            self._members = dict.fromkeys(words.unpack(stored.body, len(SMALL)))

    @property
    def flags(self) -> int:
        return _OF_INTEGERS if self.is_of_integers else 0

    def body(self, txn: Txn) -> bytes:
        if self.number:
            return _BODY.pack(self.number, self._count)
        return SMALL + words.pack(tuple(self._members))

    def copy_from(self, other: Collection) -> None:
        assert isinstance(other, Set)
        self.is_of_integers = other.is_of_integers
        if other.number:
            self._count = other._count
            self.copy_content(other)
        else:
            self._members = dict(other._members)
        self._keyspace.changed(self)

    @property
    def weight(self) -> int:
        return 400 + len(self._members) * 120

    @property
    def content_bytes(self) -> int:
        sample = [member for member, _ in zip(self._walk(), range(_SAMPLES), strict=False)]
        return sum(_MEMBER_BYTES + len(member) for member in sample) * len(self) // max(1, len(sample))

    # -- changing

    def add(self, added: Iterable[bytes]) -> int:
        """How many of them are new."""
        before = len(self)
        for member in added:
            if self.number:
                self._count += members.add(self._keyspace.writing(), self.number, member)
            else:
                self._members[member] = None
            if self.is_of_integers and not is_integer(member):
                self.is_of_integers = False
            if not self.number and len(member) > MEMBER_BYTES:
                self._grow()
        new = len(self) - before
        if new:
            if self.is_of_integers and len(self) > self._keyspace.packing.intset_entries:
                self.is_of_integers = False
            if not (self.number or self.is_of_integers) and len(self) > SET_MEMBERS:
                self._grow()
            self._keyspace.appended(self)
        return new

    def _grow(self) -> None:
        """It becomes large."""
        txn = self._keyspace.writing()
        self.number = key_records.new_topic(txn)
        self._count = len(self._members)
        for member in self._members:
            members.add(txn, self.number, member)
        self._members = {}

    def remove(self, removed: Iterable[bytes]) -> int:
        """How many of them there were."""
        before = len(self)
        for member in removed:
            if self.number:
                self._count -= members.remove(self._keyspace.writing(), self.number, member)
            else:
                self._members.pop(member, None)
        gone = before - len(self)
        if gone:
            self._keyspace.changed(self)
        return gone

    # -- reading

    def has(self, member: bytes) -> bool:
        """Whether it holds this member."""
        if self.number:
            return members.has(self._keyspace.reading(), self.number, member)
        return member in self._members

    def _walk(self) -> Iterator[bytes]:
        if self.number:
            return members.walk(self._keyspace.reading(), self.number)
        return iter(self._members)

    def members(self) -> Iterable[bytes]:
        """Every member; those of a set of integers in order. Change nothing meanwhile."""
        return sorted(self._walk(), key=int) if self.is_of_integers else self._walk()

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """A step of SSCAN: the next cursor, 0 at the end, and about `count` members; all of a small one."""
        if not self.number:
            return 0, list(self.members())
        return digests.page(self._keyspace.reading(), members.prefix(self.number), cursor, count)

    def any(self) -> bytes:
        """A member, each with the same chance."""
        if not self.number:
            return random.choice(tuple(self._members))
        return digests.any_of(self._keyspace.reading(), members.prefix(self.number), self._count)

    def draw(self, count: int) -> list[bytes]:
        """So many members, each time any of them."""
        if not self.number:
            return random.choices(tuple(self._members), k=count)
        return digests.many_of(self._keyspace.reading(), members.prefix(self.number), self._count, count)

    def sample(self, count: int) -> list[bytes]:
        """So many different members, whichever."""
        if count >= len(self):
            return list(self.members())
        if not self.number:
            return random.sample(tuple(self._members), count)
        return digests.some_of(self._keyspace.reading(), members.prefix(self.number), self._count, count)
