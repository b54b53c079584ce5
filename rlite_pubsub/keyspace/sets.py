"""Sets, as a turn works on them.

Redis keeps a set of integers as such, in order, while it has at most this many (packing.py). A set that it would keep
so is marked, for OBJECT ENCODING and for the order of its members.

A large one holds in memory the members that were looked up and found, and all members of the stretches of digests
(storage/keys/digests.py) that a draw has come to. The latter stand in one list, so that a draw picks a place in it; a
place after its end stands for a member of a stretch that has not been read yet.
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
from rlite_pubsub.storage.keys.members import HeldMember

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.keys.key_records import KeyRecord

_BODY: Final = Struct(">QQ")
_INTEGER: Final = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_LONG: Final = 1 << 63
_SURE_DIGITS: Final = 18
"""The number of digits that always fit into 64 bits."""
_ZERO: Final = 0x30
_OF_INTEGERS: Final = 1
_MEMBER_BYTES: Final = 40
"""About how many bytes a member takes beside its own."""
_SAMPLES: Final = 5
_HELD_BYTES: Final = 300
"""About how many bytes of memory a member takes beside its own."""
_STRETCH_BYTES: Final = 100
_MANY: Final = 1000
"""So many members that are added at once need not be held."""
_FEWEST, _MOST = 4, 32
"""Members of a stretch on average, before others are cut."""
_random: Final = random.random


def is_integer(member: bytes) -> bool:
    """Return whether it is an integer of 64 bits, as Redis spells one."""
    size = len(member)
    if size <= _SURE_DIGITS and member.isdigit():  # as most are
        return size == 1 or member[0] != _ZERO
    return _INTEGER.fullmatch(member) is not None and -_LONG <= int(member) < _LONG


class Set(Collection):
    """A set."""

    __slots__ = ("_bits", "_count", "_drawn_from", "_held", "_members", "_stretches", "is_of_integers")

    type = key_records.SET
    database_bytes: ClassVar[tuple[bytes, ...]] = (databases.MEMBERS,)

    def __init__(self, keyspace: Shelter, database: int, name: bytes, place: bytes) -> None:
        super().__init__(keyspace, database, name, place)
        self._members: dict[bytes, None] = {}  # of a small one
        self._count = 0  # of a large one
        self._held: dict[bytes, HeldMember] = {}  # of a large one: members that were looked up
        self._drawn_from: list[HeldMember] = []  # of a large one: members of the stretches that were read
        self._stretches: set[int] = set()  # those stretches, by the first bits of their digests
        self._bits = 0  # this many
        self.is_of_integers = True  # and has never held anything else, or too many

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
        """Add members; return how many are new."""
        before = len(self)
        most = self._keyspace.packing.intset_entries
        if isinstance(added, list) and len(added) >= _MANY:
            distinct = list(dict.fromkeys(added))
            if len(distinct) > max(most, _MANY):
                self._add_many(distinct)
                self.is_of_integers = False
                added = ()
        for member in added:
            if self.number:
                self._add(self._keyspace.writing(), member)
            else:
                self._members[member] = None
            if self.is_of_integers and (len(self) > most or not is_integer(member)):
                self.is_of_integers = False
            if not self.number and len(member) > MEMBER_BYTES:
                self._grow()
        new = len(self) - before
        if new:
            if not (self.number or self.is_of_integers) and len(self) > SET_MEMBERS:
                self._grow()
            self._keyspace.appended(self)
        return new

    def _add_many(self, added: list[bytes]) -> None:
        """Add so many different members that it is large with them. They are not held: who adds many at once seldom
        asks for them one by one."""
        if not self.number:
            self._grow()
        self._mind_memory()
        txn = self._keyspace.writing()
        found = members.rows(self.number, added)
        if self._count:
            are_held = len(self._held) == self._count  # all members
            for key, member in list(found.items()):
                assert member is not None
                if member in self._held or (not are_held and self._rows.get(txn, key) is not None):
                    del found[key]
        if self._drawn_from or self._stretches:
            self._cut_stretches()
        self._count += len(found)
        self._rows.put_all(txn, found)

    def _grow(self) -> None:
        """Become large."""
        txn = self._keyspace.writing()
        self.number = key_records.new_topic(txn)
        self._count = len(self._members)
        for member in self._members:
            held = self._hold(member, members.key(self.number, member))
            self._rows.put(txn, held.key, member)
        self._members = {}

    def remove(self, removed: Iterable[bytes]) -> int:
        """Remove members; return how many existed."""
        before = len(self)
        for member in removed:
            if self.number:
                self._remove(self._keyspace.writing(), member)
            else:
                self._members.pop(member, None)
        gone = before - len(self)
        if gone:
            self._keyspace.changed(self)
        return gone

    # -- reading

    def has(self, member: bytes) -> bool:
        """Return whether it holds this member."""
        if self.number:
            return self._look_for(member) is not None
        return member in self._members

    def _walk(self) -> Iterator[bytes]:
        if self.number:
            return members.walk(self._content(), self.number)
        return iter(self._members)

    def members(self) -> Iterable[bytes]:
        """Return every member; those of a set of integers in order. Change nothing meanwhile."""
        return sorted(self._walk(), key=int) if self.is_of_integers else self._walk()

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """Do a step of SSCAN: return the next cursor, 0 at the end, and about `count` members; all of a small one."""
        if not self.number:
            return 0, list(self.members())
        return digests.page(self._content(), members.prefix(self.number), cursor, count, len(self))

    def any(self) -> bytes:
        """Return a random member, each with the same chance."""
        if not self.number:
            return random.choice(tuple(self._members))
        return self._any()

    def draw(self, count: int) -> list[bytes]:
        """Return this many random members, which may repeat."""
        if not self.number:
            return random.choices(tuple(self._members), k=count)
        return digests.many_of(self._content(), members.prefix(self.number), self._count, count)

    def sample(self, count: int) -> list[bytes]:
        """Return this many different random members."""
        if count >= len(self):
            return list(self.members())
        if not self.number:
            return random.sample(tuple(self._members), count)
        return digests.some_of(self._content(), members.prefix(self.number), self._count, count)

    # -- the content of a large one

    def _look_for(self, member: bytes) -> HeldMember | None:
        """Return a member; None if it does not exist."""
        held = self._held.get(member)
        if held is not None:
            return held
        if len(self._held) == self._count:
            return None  # all members are held
        self._mind_memory()
        key = members.key(self.number, member)
        if self._was_read(key) or self._rows.get(self._keyspace.reading(), key) is None:
            return None
        return self._hold(member, key)

    def _hold(self, member: bytes, key: bytes) -> HeldMember:
        held = self._held[member] = HeldMember(key, member)
        self._rows.held_bytes += _HELD_BYTES + len(member)
        return held

    def _add(self, txn: Txn, member: bytes) -> None:
        if member in self._held:
            return
        self._mind_memory()
        key = members.key(self.number, member)
        was_read = self._was_read(key)
        are_held = len(self._held) == self._count  # all members
        held = self._hold(member, key)
        if was_read:
            self._draw_from(held)
        elif not are_held and self._rows.get(txn, key) is not None:
            return
        self._rows.put(txn, key, member)
        self._count += 1

    def _remove(self, txn: Txn, member: bytes) -> None:
        held = self._look_for(member)
        if held is None:
            return
        del self._held[member]
        self._rows.held_bytes -= _HELD_BYTES + len(member)
        self._rows.delete(txn, held.key)
        self._count -= 1
        if held.at >= 0:
            last = self._drawn_from.pop()
            if last is not held:
                self._drawn_from[held.at] = last
                last.at = held.at

    def _was_read(self, key: bytes) -> bool:
        """Return whether all members of this key's stretch are held."""
        if len(self._drawn_from) == self._count:
            return True  # all members of all stretches are
        return bool(self._stretches) and members.stretch_of(key, self._bits) in self._stretches

    def _draw_from(self, held: HeldMember) -> None:
        held.at = len(self._drawn_from)
        self._drawn_from.append(held)

    def _any(self) -> bytes:
        self._mind_memory()
        count, bits = self._count, self._bits
        unread = count - len(self._drawn_from)
        if unread and (count > _MOST << bits or (bits and count < _FEWEST << bits)):
            self._cut_stretches()
            unread = count
        place = int(_random() * count)
        return self._drawn_from[place].member if place < count - unread else self._any_unread(unread)

    def _cut_stretches(self) -> None:
        """Cut new stretches, still unread, because there are too many members for the old ones, or too few."""
        for held in self._drawn_from:
            held.at = -1
        self._drawn_from = []
        self._stretches = set()
        self._bits = digests.stretch_bits(self._count)

    def _any_unread(self, count: int) -> bytes:
        """Return a random one of the `count` members of unread stretches, like `digests.any_of`."""
        stretches = 1 << self._bits
        unread = stretches - len(self._stretches)
        most = digests.most_in_stretch(count, max(1, unread))
        drawn: dict[int, list[HeldMember]] = {}  # only among those not read before, so as not to prefer the others
        for _ in range(digests.MOST_DRAWS * stretches // max(1, unread)):
            place = int(_random() * stretches)
            stretch = drawn.get(place)
            if stretch is None:
                if place in self._stretches:
                    continue
                stretch = drawn[place] = self._read_stretch(place)
            if stretch and (unread == 1 or _random() * most < len(stretch)):
                return stretch[int(_random() * len(stretch))].member
        raise digests.fewer(self._count)

    def _read_stretch(self, place: int) -> list[HeldMember]:
        found = []
        for key, member in digests.stretch(self._content(), members.prefix(self.number), place, self._bits):
            held = self._held.get(member) or self._hold(member, key)
            self._draw_from(held)
            found.append(held)
        self._stretches.add(place)
        self._rows.held_bytes += _STRETCH_BYTES
        return found

    def let_go(self) -> None:
        super().let_go()
        self._held = {}
        self._drawn_from = []
        self._stretches = set()
