"""Sorted sets, as a turn works on them.

A small one is in memory while it is worked on: scores by member, and the order. A large one is there as far as it was
needed: its scores stand under the members' digests (storage/keys/scores.py), its order with counts
(storage/keys/order.py), so a score, a rank, and the beginning of any range cost a few steps, whatever the size.

The record of a sorted set, after its number (0: it is small):

    small   words (words.py): members and scores (f64) by turns, in order
    large   members u64, levels of the order above level 0 u8; flags 1: a score may be -0
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from math import copysign
from struct import Struct
from typing import TYPE_CHECKING, ClassVar, Final

from rlite_pubsub.keyspace.collection import SMALL, Collection, Shelter
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.keys import digests, key_records, ranks, scores, words
from rlite_pubsub.storage.keys.order import Order
from rlite_pubsub.storage.keys.scores import HeldScore

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.keys.key_records import KeyRecord

Scored = tuple[bytes, float]
"""A member and its score."""

_LARGE: Final = Struct(">QQB")
_SCORE: Final = Struct(">d")
_MEMBER_BYTES: Final = 90
"""About how many bytes a member takes beside its own, twice."""
_SAMPLES: Final = 5
_WITH_MINUS_ZERO: Final = 1
_HELD_BYTES: Final = 300
"""About how many bytes of memory a member's score takes beside the member."""
_MOST_AT_ONCE: Final = 1000
"""How many members of a range are held; a longer range is walked over."""


class SortedSet(Collection):
    """A sorted set."""

    __slots__ = ("_count", "_has_minus_zero", "_held", "_order", "_ranks", "_scores")

    type = key_records.SORTED_SET
    database_bytes: ClassVar[tuple[bytes, ...]] = (databases.SCORES, databases.ORDERS)

    def __init__(self, keyspace: Shelter, database: int, name: bytes, place: bytes) -> None:
        super().__init__(keyspace, database, name, place)
        self._scores: dict[bytes, float] = {}  # of a small one
        self._order: list[tuple[float, bytes]] = []  # of a small one
        self._count = 0  # of a large one
        self._held: dict[bytes, HeldScore] = {}  # of a large one: scores that were looked up
        self._ranks = Order(0, 0, self._rows)  # of a large one
        self._has_minus_zero = False  # of a large one, or it may have: its places do not tell

    def __len__(self) -> int:
        return self._count if self.number else len(self._scores)

    @property
    def is_small(self) -> bool:
        """True if Redis would keep it in a listpack."""
        return not self.number

    # -- stored

    def loaded(self, stored: KeyRecord) -> None:
        super().loaded(stored)
        if self.number:
            _, self._count, levels = _LARGE.unpack(stored.body)
            self._ranks = Order(self.number, levels, self._rows)
            self._has_minus_zero = bool(stored.flags & _WITH_MINUS_ZERO)
            return
        found = words.unpack(stored.body, len(SMALL))
        self._scores = {
            member: float(_SCORE.unpack(score)[0]) for member, score in zip(found[::2], found[1::2], strict=True)
        }
        self._order = [(score, member) for member, score in self._scores.items()]

    @property
    def flags(self) -> int:
        return _WITH_MINUS_ZERO if self._has_minus_zero else 0

    def body(self, txn: Txn) -> bytes:
        if self.number:
            return _LARGE.pack(self.number, self._count, self._ranks.levels)
        found = [(member, _SCORE.pack(score)) for score, member in self._order]
        return SMALL + words.pack(tuple(chain.from_iterable(found)))

    def copy_from(self, other: Collection) -> None:
        assert isinstance(other, SortedSet)
        if other.number:
            self._count = other._count
            self.copy_content(other)
            self._ranks = Order(self.number, other._ranks.levels, self._rows)
            self._has_minus_zero = other._has_minus_zero
        else:
            self._scores, self._order = dict(other._scores), list(other._order)
        self._keyspace.changed(self)

    @property
    def weight(self) -> int:
        return 400 + len(self._scores) * 200

    @property
    def content_bytes(self) -> int:
        sample = list(islice(self.walk(), _SAMPLES))
        return sum(_MEMBER_BYTES + 2 * len(member) for member, _ in sample) * len(self) // max(1, len(sample))

    # -- changing

    def put(self, member: bytes, score: float) -> None:
        """Set a member's score, which is a number, adding the member if it does not exist."""
        self.rescore(member, self.score(member), score)

    def rescore(self, member: bytes, before: float | None, score: float) -> None:
        """The same for a member with this score `before`; None: it does not exist."""
        if not self.number:
            packing = self._keyspace.packing
            if len(member) <= packing.sorted_set_value_bytes:
                if before is not None:
                    del self._order[bisect_left(self._order, (before, member))]
                score += 0.0  # in a listpack -0 is 0
                self._scores[member] = score
                insort(self._order, (score, member))
                if len(self._scores) > packing.sorted_set_entries:
                    self._grow()
                self._keyspace.appended(self)
                return
            self._grow()
        self._mind_memory()
        txn = self._keyspace.writing()
        held = self._held.get(member)
        if held is None:
            held = self._hold(member, scores.key(self.number, member), score)
        else:
            held.score = score
        order, place = self._ranks, ranks.place(score, member)
        if before is not None:
            order.remove(txn, held.place or ranks.place(before, member))
        else:
            self._count += 1
        order.add(txn, place)
        held.place = place
        if score == 0 and copysign(1, score) < 0:
            self._has_minus_zero = True
        self._rows.put(txn, held.key, scores.pack(score, member))
        self._keyspace.appended(self)

    def _hold(self, member: bytes, key: bytes, score: float) -> HeldScore:
        held = self._held[member] = HeldScore(key, score)
        self._rows.held_bytes += _HELD_BYTES + len(member)
        return held

    def _grow(self) -> None:
        """Become large."""
        txn = self._keyspace.writing()
        self.number = key_records.new_topic(txn)
        self._count = len(self._scores)
        order = self._ranks = Order(self.number, 0, self._rows)
        order.begin()
        for score, member in self._order:
            order.add(txn, ranks.place(score, member))
            held = self._hold(member, scores.key(self.number, member), score)
            self._rows.put(txn, held.key, scores.pack(score, member))
        self._scores, self._order = {}, []

    def take(self, found: Sequence[Scored], *, longest: int = 0) -> None:
        """Take over different members; this one is new. Too many make it large before the first of them is added, and
        so does the length of the longest, if it is known."""
        packing = self._keyspace.packing
        if len(found) > packing.sorted_set_entries or longest > packing.sorted_set_value_bytes:
            self._grow()
        for member, score in found:
            self.put(member, score)

    def take_packed(self, found: Iterable[Scored]) -> None:
        """Take over members that were packed already, even if they are long; this one is new. Too many make it
        large."""
        self._scores = dict(found)
        self._order = sorted((score, member) for member, score in self._scores.items())
        if len(self._scores) > self._keyspace.packing.sorted_set_entries:
            self._grow()
        self._keyspace.appended(self)

    def remove(self, members: Iterable[bytes]) -> int:
        """Remove members; return how many existed."""
        removed = 0
        for member in members:
            if self.number:
                self._mind_memory()
            score = self.score(member)
            if score is None:
                continue
            removed += 1
            if not self.number:
                del self._scores[member]
                del self._order[bisect_left(self._order, (score, member))]
                continue
            txn = self._keyspace.writing()
            self._ranks.remove(txn, ranks.place(score, member))
            self._forget(txn, member)
        if removed:
            self._keyspace.changed(self)
        return removed

    def pop(self, count: int, *, highest: bool) -> list[Scored]:
        """Remove this many members, or all, beginning with the highest or else the lowest scores; return them."""
        count = min(count, len(self))
        if not self.number:
            popped = list(self.slice(0, count, backwards=highest))
            self.remove([member for member, _ in popped])
            return popped
        self._mind_memory()
        txn = self._keyspace.writing()
        popped = []
        for place in self._ranks.take(txn, count, highest=highest):
            scored = self._scored(place)
            popped.append(scored)
            self._forget(txn, scored[0])
        if popped:
            self._keyspace.changed(self)
        return popped

    def _forget(self, txn: Txn, member: bytes) -> None:
        """Remove a member of a large one from the order."""
        held = self._held.pop(member, None)
        if held is not None:
            self._rows.held_bytes -= _HELD_BYTES + len(member)
        self._rows.delete(txn, scores.key(self.number, member) if held is None else held.key)
        self._count -= 1

    # -- reading

    def score(self, member: bytes) -> float | None:
        """Return a member's score; None if there is no such member."""
        if not self.number:
            return self._scores.get(member)
        held = self._held.get(member)
        if held is not None:
            return held.score
        if len(self._held) == self._count:
            return None  # all members are held
        self._mind_memory()
        key = scores.key(self.number, member)
        found = self._rows.get(self._keyspace.reading(), key)
        return None if found is None else self._hold(member, key, scores.unpack(found)[1]).score

    def rank(self, member: bytes) -> int | None:
        """Return how many members are before it; None if there is no such member."""
        score = self.score(member)
        if score is None:
            return None
        if not self.number:
            return bisect_left(self._order, (score, member))
        return self._before(ranks.place(score, member))

    def _before(self, place: bytes) -> int:
        self._mind_memory()
        return self._ranks.count_before(self._keyspace.reading(), place)

    def below(self, score: float, *, included: bool) -> int:
        """Return how many members have a lower score or, with `included`, at most this one."""
        if self.number:
            return self._before(ranks.behind(score) if included else ranks.sortable(score))
        if not included:
            return bisect_left(self._order, (score, b""))
        return bisect_left(self._order, True, key=lambda one: one[0] > score)

    def before_member(self, bound: bytes, *, included: bool) -> int:
        """Return how many members are before one, which need not exist, or at most equal to it; all have the same
        score."""
        if self.number:
            first = next(self.slice(0, 1), None)
            place = ranks.sortable(first[1] if first is not None else 0.0) + bound
            return self._before(place + b"\0" if included else place)
        if included:
            return next((at for at, (_, member) in enumerate(self._order) if member > bound), len(self._order))
        return next((at for at, (_, member) in enumerate(self._order) if member >= bound), len(self._order))

    def slice(self, start: int, stop: int, *, backwards: bool = False) -> Iterator[Scored]:
        """Yield members and scores by rank, from `start` up to `stop`, or, `backwards`, by rank from the end. Change
        nothing meanwhile."""
        start = max(start, 0)
        stop = max(start, min(stop, len(self)))
        if not self.number:
            order = self._order[::-1] if backwards else self._order
            return ((member, score) for score, member in order[start:stop])
        count = stop - start
        if count > _MOST_AT_ONCE:
            first = self._count - 1 - start if backwards else start
            return map(self._scored, self._ranks.walk(self._content(), first, count, backwards=backwards))
        return iter([self._scored(place) for place in self._found(self._ranks.places, start, stop, backwards)])

    def _found(
        self, read: Callable[[Txn, int, int], list[bytes]], start: int, stop: int, backwards: bool
    ) -> list[bytes]:
        """Return what the order says of these ranks."""
        self._mind_memory()
        first = self._count - stop if backwards else start
        found = read(self._keyspace.reading(), first, stop - start)
        if backwards:
            found.reverse()
        return found

    def _scored(self, place: bytes) -> Scored:
        """Return the member at this place, with its score."""
        member, score = ranks.member_of(place), ranks.score_of(place)
        if score == 0 and self._has_minus_zero:
            known = self.score(member)
            assert known is not None
            score = known
        return member, score

    def members(self, start: int, stop: int, *, backwards: bool = False) -> list[bytes]:
        """Like `slice`, without the scores."""
        start = max(start, 0)
        stop = max(start, min(stop, len(self)))
        if not self.number or stop - start > _MOST_AT_ONCE:
            return [member for member, _ in self.slice(start, stop, backwards=backwards)]
        return self._found(self._ranks.members, start, stop, backwards)

    def walk(self) -> Iterator[Scored]:
        """Yield everything, in order. Change nothing meanwhile."""
        return self.slice(0, len(self))

    def page(self, cursor: int, count: int) -> tuple[int, list[Scored]]:
        """Do a step of ZSCAN: return the next cursor, 0 at the end, and about `count` members; all of a small one."""
        if not self.number:
            return 0, list(self.walk())
        next_cursor, found = digests.page(self._content(), scores.prefix(self.number), cursor, count, len(self))
        return next_cursor, [scores.unpack(value) for value in found]

    def any(self, count: int) -> list[Scored]:
        """Return this many random members, which may repeat, each with the same chance."""
        if not self.number:
            return random.choices(list(self._scores.items()), k=count)
        txn, prefix = self._content(), scores.prefix(self.number)
        return [scores.unpack(value) for value in digests.many_of(txn, prefix, self._count, count)]

    def sample(self, count: int) -> list[Scored]:
        """Return this many different random members; all in order, if there are no more."""
        if count >= len(self):
            return list(self.walk())
        if not self.number:
            return random.sample(list(self._scores.items()), count)
        found = digests.some_of(self._content(), scores.prefix(self.number), self._count, count)
        return [scores.unpack(value) for value in found]

    # -- the content of a large one

    def bring(self, txn: Txn) -> None:
        self._ranks.settle(txn)
        super().bring(txn)

    def let_go(self) -> None:
        super().let_go()
        self._held = {}
        self._ranks.let_go()
