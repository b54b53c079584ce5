"""The order of one large sorted set as a turn works on it: records of ranks.py, in memory as far as they are needed.

What stands on a level from one post of the level above up to the next is a *node*, of some 32 rows; the whole of the
highest level is one as well. A node is read, with one walk over its records, when somebody first comes by, and is then
held: to find a rank or a member is to look into one node of each level. Changes are made to nodes; what they change in
the store goes to the collection's rows (rows.py), counts only in `settle`.

Call `settle` before the rows' key is written and before the nodes are released. What is held is true as long as
nobody else has committed (keyspace/part.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import RecordDamaged
from rlite_pubsub.storage.keys import key_bytes, ranks
from rlite_pubsub.storage.keys.rows import Rows

_left_of: Final = key_bytes.left_of  # compiled code finds what is its own without a look-up
_right_of: Final = key_bytes.right_of
_place: Final = key_bytes.place
_NOT_STORED: Final = -1
_MEMBER_BYTES: Final = 200
_POST_BYTES: Final = 250
"""What a member and a post take in memory, about."""
_AT_ONCE: Final = 128
"""Members that `walk` reads before the first of them is looked at."""


class OrderNode:
    """What stands on a level from a post of the level above up to the next one."""

    __slots__ = ("below", "counts", "end", "level", "members", "places", "scores", "stored")

    def __init__(self, level: int, end: bytes) -> None:
        self.level = level
        self.end = end  # the place of the next post; nothing: there is none
        self.places: list[bytes] = []
        self.members: list[bytes] = []  # on level 0
        self.scores: list[float] = []  # on level 0
        self.counts: list[int] = []  # above: members from each post up to the next one
        self.stored: list[int] = []  # above: these counts as the store has them
        self.below: list[OrderNode | None] = []  # above: what stands below each post; None: it was not read yet

    @property
    def size(self) -> int:
        """How many members there are."""
        return sum(self.counts) if self.level else len(self.places)

    def split(self, at: int) -> OrderNode:
        """Give up what stands from there on."""
        right = OrderNode(self.level, self.end)
        self.end = self.places[at]
        right.places = self.places[at:]
        del self.places[at:]
        if self.level:
            right.counts, right.stored, right.below = self.counts[at:], self.stored[at:], self.below[at:]
            del self.counts[at:], self.stored[at:], self.below[at:]
        else:
            right.members, right.scores = self.members[at:], self.scores[at:]
            del self.members[at:], self.scores[at:]
        return right

    def join(self, right: OrderNode) -> None:
        """Take over what the next one has."""
        self.end = right.end
        self.places += right.places
        self.counts += right.counts
        self.stored += right.stored
        self.below += right.below
        self.members += right.members
        self.scores += right.scores


class Order:
    """Of one sorted set. Raises RecordDamaged where counts are not those of what is counted."""

    __slots__ = ("_changed", "_prefix", "_rows", "_top", "levels", "number")

    def __init__(self, number: int, levels: int, rows: Rows) -> None:
        self.number = number
        self.levels = levels
        self._prefix = ranks.prefix(number, 0)
        self._rows = rows
        self._top: OrderNode | None = None
        self._changed: dict[OrderNode, None] = {}  # above level 0: what has other counts than are in the rows

    def begin(self) -> None:
        """The set is new, and has no records."""
        self._top = OrderNode(0, b"")

    # -- changing

    def add(self, txn: Txn, score: float, member: bytes, key: bytes) -> None:
        """A member that is not there; `key` ends in its digest."""
        at = _place(score, member if len(member) <= ranks.LONG_BYTES else _shortened(member, key))
        node = self._highest(txn)
        ways: list[OrderNode] = []
        turns: list[int] = []
        while node.level:
            turn = _right_of(node.places, at) - 1
            ways.append(node)
            turns.append(turn)
            node = self._under(txn, node, turn)
        place = _left_of(node.places, at)
        node.places.insert(place, at)
        node.members.insert(place, member)
        node.scores.insert(place, score)
        for level, way in enumerate(ways):
            way.counts[turns[level]] += 1
            self._changed[way] = None
        height = ranks.height_of(key) if self.levels else 0
        for level in range(1, min(height, self.levels) + 1):  # it is a post: what stands behind it is its own
            above = ways[self.levels - level]
            turn = turns[self.levels - level]
            right = self._split(node, place)
            size = right.size
            above.counts[turn] -= size
            place = turn + 1
            above.places.insert(place, at)
            above.counts.insert(place, size)
            above.stored.insert(place, _NOT_STORED)
            above.below.insert(place, right)
            node = above
        rows = self._rows
        rows.held_bytes += _MEMBER_BYTES
        rows.put(txn, self._prefix + at, ranks.pack(score, member))

    def remove(self, txn: Txn, score: float, member: bytes, key: bytes) -> None:
        """A member that is there; `key` ends in its digest."""
        at = _place(score, member if len(member) <= ranks.LONG_BYTES else _shortened(member, key))
        rows = self._rows
        node = self._highest(txn)
        while node.level:
            turn = _right_of(node.places, at) - 1
            below = self._under(txn, node, turn)
            self._changed[node] = None
            if node.places[turn] == at:  # a post goes: what stands behind it is its neighbour's
                left = self._under(txn, node, turn - 1)
                left.join(below)
                self._changed.pop(below, None)  # and its neighbour is next
                node.counts[turn - 1] += node.counts[turn]
                if node.stored[turn] != _NOT_STORED:
                    rows.delete(txn, ranks.prefix(self.number, node.level) + at)
                del node.places[turn], node.counts[turn], node.stored[turn], node.below[turn]
                turn -= 1
                below = left
            node.counts[turn] -= 1
            node = below
        place = _left_of(node.places, at)
        if place == len(node.places) or node.places[place] != at:
            raise _damaged(self.number)
        node.places.pop(place)
        node.members.pop(place)
        node.scores.pop(place)
        rows.held_bytes -= _MEMBER_BYTES
        rows.delete(txn, self._prefix + at)

    def add_level(self, txn: Txn) -> None:
        """Keep another level: what it says is counted from the one below."""
        below = self._highest(txn)
        level = self.levels + 1
        top = OrderNode(level, b"")
        posts = [
            place for place, at in enumerate(below.places) if len(at) > 0 and ranks.height(at) >= level
        ]
        parts: list[tuple[bytes, OrderNode]] = []
        for place in reversed(posts):
            at = below.places[place]
            parts.append((at, self._split(below, place)))
        parts.append((b"", below))
        for at, part in reversed(parts):
            top.places.append(at)
            top.counts.append(part.size)
            top.stored.append(_NOT_STORED)
            top.below.append(part)
        self._top = top
        self._changed[top] = None
        self.levels = level

    def settle(self, txn: Txn) -> None:
        """Bring the counts that have changed into the rows."""
        if not self._changed:
            return
        changed, self._changed = self._changed, {}
        rows = self._rows
        for node in changed:
            prefix = ranks.prefix(self.number, node.level)
            stored, places = node.stored, node.places
            for place, count in enumerate(node.counts):
                if count != stored[place]:
                    stored[place] = count
                    rows.put(txn, prefix + places[place], ranks.pack_count(count))

    def let_go(self) -> None:
        """Hold nothing. The rows must have been written."""
        self._top = None

    def _split(self, node: OrderNode, place: int) -> OrderNode:
        right = node.split(place)
        if node in self._changed:
            self._changed[right] = None
        return right

    # -- reading

    def count_before(self, txn: Txn, bound: bytes) -> int:
        """How many members stand before a place."""
        total = 0
        node = self._highest(txn)
        while node.level:
            turn = _right_of(node.places, bound) - 1
            for count in node.counts[:turn]:
                total += count
            node = self._under(txn, node, turn)
        return total + _left_of(node.places, bound)

    def members(self, txn: Txn, start: int, count: int) -> list[bytes]:
        """This many members, from the one of this rank on. All of them must be there."""
        found: list[bytes] = []
        for node, place, end in self._stretches(txn, start, count):
            found += node.members[place:end]
        return found

    def scored(self, txn: Txn, start: int, count: int) -> list[tuple[bytes, float]]:
        """The same with their scores."""
        found: list[tuple[bytes, float]] = []
        for node, place, end in self._stretches(txn, start, count):
            found += zip(node.members[place:end], node.scores[place:end], strict=True)
        return found

    def walk(self, txn: Txn, start: int, count: int, *, backwards: bool) -> Iterator[tuple[bytes, float]]:
        """The same, without holding what it passes; `backwards` towards the first one. The rows must have been
        written; change nothing meanwhile."""
        if count <= 0:
            return
        node, place, _ = self._stretches(txn, start, 1)[0]
        prefix = self._prefix
        cursor = txn.cursor()
        if not cursor.set_range(prefix + node.places[place]):
            raise _damaged(self.number)
        rows = cursor.iterprev() if backwards else cursor.iternext()
        skipped = len(prefix)
        while count > 0:
            some = [ranks.unpack(key[skipped:], value) for key, value in islice(rows, min(count, _AT_ONCE))]
            count -= _AT_ONCE
            yield from some

    def _stretches(self, txn: Txn, start: int, count: int) -> list[tuple[OrderNode, int, int]]:
        """Where this many members stand, from the one of this rank on: nodes of level 0, each from where to where."""
        found: list[tuple[OrderNode, int, int]] = []
        while count > 0:
            before = count
            node = self._highest(txn)
            above: OrderNode | None = None
            turn, place = 0, start
            while node.level:
                above, turn = node, 0
                for size in node.counts:
                    if place < size:
                        break
                    place -= size
                    turn += 1
                else:
                    raise _damaged(self.number)
                node = self._under(txn, above, turn)
            while True:  # along this one and its neighbours
                end = min(len(node.places), place + count)
                if end > place:
                    found.append((node, place, end))
                    start += end - place
                    count -= end - place
                turn += 1
                if count <= 0 or above is None or turn >= len(above.below):
                    break
                node, place = self._under(txn, above, turn), 0
            if count == before:
                raise _damaged(self.number)
        return found

    # -- what is read once, and held

    def _highest(self, txn: Txn) -> OrderNode:
        top = self._top
        if top is None:
            top = self._top = self._read(txn, self.levels, b"", b"")
        return top

    def _under(self, txn: Txn, node: OrderNode, turn: int) -> OrderNode:
        """What stands below a post of a node."""
        below = node.below[turn]
        if below is not None:
            return below
        end = node.places[turn + 1] if turn + 1 < len(node.places) else node.end
        below = self._read(txn, node.level - 1, node.places[turn], end)
        if below.size != node.counts[turn]:
            raise _damaged(self.number)
        node.below[turn] = below
        return below

    def _read(self, txn: Txn, level: int, start: bytes, end: bytes) -> OrderNode:
        """The node from one place up to another: none of its records waits to be written."""
        node = OrderNode(level, end)
        prefix = ranks.prefix(self.number, level)
        skipped = len(prefix)
        cursor = txn.cursor()
        if cursor.set_range(prefix + start):
            for key, value in cursor.iternext():
                if not key.startswith(prefix):
                    break
                at = key[skipped:]
                if end and at >= end:
                    break
                node.places.append(at)
                if level:
                    count = ranks.unpack_count(value)
                    node.counts.append(count)
                    node.stored.append(count)
                    node.below.append(None)
                else:
                    member, score = ranks.unpack(at, value)
                    node.members.append(member)
                    node.scores.append(score)
        if level and (not node.places or node.places[0] != start):
            raise _damaged(self.number)
        self._rows.held_bytes += len(node.places) * (_POST_BYTES if level else _MEMBER_BYTES)
        return node


def _shortened(member: bytes, key: bytes) -> bytes:
    return member[: ranks.LONG_BYTES] + key[-key_bytes.DIGEST_BYTES :]


def _damaged(number: int) -> RecordDamaged:
    return RecordDamaged(f"the sorted set {number} has other members than are counted")
