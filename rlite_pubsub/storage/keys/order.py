"""The order of one large sorted set during a turn: the nodes of ranks.py, in memory as far as they are needed.

A node is read when it is first needed, and is then held. A member is put into its node, and the nodes above learn how
many it has when a rank is asked for, or in `settle`, which writes each changed node once, however often it was changed.
A node that has become too large is split at once; small ones are joined in `settle`.

Call `settle` before writing the set's record, which says how many levels there are, before walking over the records,
and before letting the nodes go. What is held is valid as long as nobody else has committed (keyspace/part.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import RecordDamaged
from rlite_pubsub.storage.journal.recording import change_rows
from rlite_pubsub.storage.keys import key_bytes, ranks, words
from rlite_pubsub.storage.keys.rows import Rows

_left_of: Final = key_bytes.left_of  # compiled code finds its own names without a look-up
_right_of: Final = key_bytes.right_of
_put_in: Final = key_bytes.put_in
_take_out: Final = key_bytes.take_out
_pack_posts: Final = ranks.pack_posts
_MOST_BYTES: Final = ranks.MOST_BYTES
_WORD_BYTES: Final = ranks.WORD_BYTES
_POST_BYTES: Final = ranks.WORD_BYTES + ranks.COUNT_BYTES
_HELD_BYTES: Final = 60
"""About how much memory a word takes beside its bytes."""
_HELD_NODE_BYTES: Final = 500
_members_of: Final = key_bytes.members_of


class OrderNode:
    """A node."""

    __slots__ = (
        "below",
        "bound",
        "counted",
        "counts",
        "is_changed",
        "is_gone",
        "is_stored",
        "level",
        "names",
        "places",
        "size",
    )

    def __init__(self, level: int, bound: bytes) -> None:
        self.level = level
        self.bound = bound
        self.places: list[bytes] = []  # of members; above level 0 the bounds of the nodes below
        self.names: list[bytes] = []  # on level 0: the members of these places, if they were asked for
        self.counts: list[int] = []  # above level 0: the number of members of each node below
        self.below: list[OrderNode | None] = []  # above level 0: these nodes; None: not read yet
        self.size = 0  # bytes of its words
        self.counted = -1  # on level 0: how many members the node above counts; -1: the actual number
        self.is_changed = False  # changed since it was written
        self.is_stored = False  # there is a record under its key
        self.is_gone = False  # it was joined with another one

    @property
    def members(self) -> int:
        """The number of members."""
        return sum(self.counts) if self.level else len(self.places)

    def split(self) -> OrderNode:
        """Give up the second half, as a new node."""
        places = self.places
        word_bytes = _POST_BYTES if self.level else _WORD_BYTES
        at, size = 0, 0
        while at < len(places) - 1 and (at == 0 or 2 * size < self.size):
            size += len(places[at]) + word_bytes
            at += 1
        bound = places[at] if self.level else ranks.between(places[at - 1], places[at])
        right = OrderNode(self.level, bound)
        right.places = places[at:]
        del places[at:]
        if self.level:
            right.counts, right.below = self.counts[at:], self.below[at:]
            del self.counts[at:], self.below[at:]
        right.size = self.size - size
        self.size = size
        return right

    def join(self, right: OrderNode) -> None:
        """Take over the contents of the next node."""
        self.places += right.places
        self.counts += right.counts
        self.below += right.below
        self.size += right.size

    def packed(self) -> bytes:
        """Return its record."""
        return _pack_posts(self.counts, self.places) if self.level else words.pack(self.places)


class Order:
    """The order of one sorted set. Raises RecordDamaged if its counts are wrong."""

    __slots__ = ("_changed", "_gone", "_prefix", "_rows", "_top", "_uncounted", "levels", "number")

    def __init__(self, number: int, levels: int, rows: Rows) -> None:
        self.number = number
        self.levels = levels  # above level 0
        self._prefix = ranks.prefix(number, 0)
        self._rows = rows
        self._top: OrderNode | None = None
        self._changed: list[OrderNode] = []  # not written yet
        self._uncounted: list[OrderNode] = []  # on level 0: the nodes above count another number of members
        self._gone: list[bytes] = []  # keys of records to remove

    def begin(self) -> None:
        """Begin a new set, which has no records."""
        self._top = OrderNode(0, b"")

    # -- changing

    def add(self, txn: Txn, place: bytes) -> None:
        """Add a member that is not there, by its place."""
        node = self._leaf(txn, place)
        if node.counted < 0:
            node.counted = len(node.places)
            self._uncounted.append(node)
        _put_in(node.places, place)
        if node.names:
            self._forget_names(node)
        more = len(place) + _WORD_BYTES
        node.size += more
        self._rows.held_bytes += more + _HELD_BYTES
        if not node.is_changed:
            self._change(node)
        if node.size > _MOST_BYTES and len(node.places) > 1:
            self._tell(txn, node)
            self._split(txn, node)

    def remove(self, txn: Txn, place: bytes) -> None:
        """Remove a member that is there."""
        node = self._leaf(txn, place)
        if node.counted < 0:
            node.counted = len(node.places)
            self._uncounted.append(node)
        if not _take_out(node.places, place):
            raise _damaged(self.number)
        if node.names:
            self._forget_names(node)
        less = len(place) + _WORD_BYTES
        node.size -= less
        self._rows.held_bytes -= less + _HELD_BYTES
        if not node.is_changed:
            self._change(node)

    def take(self, txn: Txn, count: int, *, highest: bool) -> list[bytes]:
        """Remove this many existing members from the end with the highest, or else the lowest scores; return their
        places, beginning at that end."""
        found: list[bytes] = []
        while len(found) < count:
            node = self._highest(txn)
            while node.level:
                node = self._under(txn, node, len(node.below) - 1 if highest else 0)
            if not node.places:
                if self._leave(txn, node):
                    continue
                break
            if node.counted < 0:
                node.counted = len(node.places)
                self._uncounted.append(node)
            if node.names:
                self._forget_names(node)
            more = min(count - len(found), len(node.places))
            some = node.places[-more:][::-1] if highest else node.places[:more]
            if highest:
                del node.places[-more:]
            else:
                del node.places[:more]
            for place in some:
                less = len(place) + _WORD_BYTES
                node.size -= less
                self._rows.held_bytes -= less + _HELD_BYTES
            self._change(node)
            if more == count:
                return some
            found += some
        if len(found) < count:  # after nodes that are empty, and stay so for now
            self._count(txn)
            more = count - len(found)
            rest = self.places(txn, self._highest(txn).members - more if highest else 0, more)
            for place in rest:
                self.remove(txn, place)
            found += rest[::-1] if highest else rest
        return found

    def _leave(self, txn: Txn, leaf: OrderNode) -> bool:
        """Join an empty node at an end with its neighbour, if both are under the same node."""
        if leaf.counted >= 0:
            self._tell(txn, leaf)
        return leaf is not self._top and len(self._above(txn, leaf).places) > 1 and bool(self._join(txn, leaf).places)

    def _change(self, node: OrderNode) -> None:
        if not node.is_changed:
            node.is_changed = True
            self._changed.append(node)

    def _split(self, txn: Txn, node: OrderNode) -> None:
        """Split a node with too many words; the node above counts all of them."""
        members = node.members
        right = node.split()
        self._change(node)
        self._change(right)
        self._rows.held_bytes += _HELD_NODE_BYTES
        if node is self._top:
            above = OrderNode(node.level + 1, b"")
            above.places.append(b"")
            above.counts.append(members)
            above.below.append(node)
            above.size = _POST_BYTES
            self._top = above
            self.levels += 1
            self._rows.held_bytes += _HELD_NODE_BYTES
            turn = 0
        else:
            above = self._above(txn, node)
            turn = _right_of(above.places, node.bound) - 1
        moved = right.members
        above.counts[turn] -= moved
        above.places.insert(turn + 1, right.bound)
        above.counts.insert(turn + 1, moved)
        above.below.insert(turn + 1, right)
        above.size += len(right.bound) + _POST_BYTES
        self._change(above)
        if above.size > _MOST_BYTES:
            self._split(txn, above)

    def _join(self, txn: Txn, node: OrderNode) -> OrderNode:
        """Join a node of few words with a neighbour, if there is room; return the node above."""
        above = self._above(txn, node)
        turn = _right_of(above.places, node.bound) - 1
        if turn:
            left, right = self._under(txn, above, turn - 1), node
        elif len(above.places) > 1:
            turn = 1
            left, right = node, self._under(txn, above, turn)
        else:
            return above
        room_bytes = ranks.JOINED_BYTES if len(node.places) > 1 else ranks.MOST_BYTES
        if left.size + right.size > room_bytes and node.places:
            return above
        for one in (left, right):
            if one.counted >= 0:
                self._tell(txn, one)
            if one.names:
                self._forget_names(one)
        left.join(right)
        self._rows.held_bytes -= _HELD_NODE_BYTES
        self._change(left)
        right.is_gone = True
        if right.is_stored:
            self._gone.append(self._key(right))
        above.counts[turn - 1] += above.counts[turn]
        above.size -= len(above.places[turn]) + _POST_BYTES
        del above.places[turn], above.counts[turn], above.below[turn]
        self._change(above)
        return above

    def _count(self, txn: Txn) -> None:
        """Bring the counts of the nodes above up to date."""
        uncounted, self._uncounted = self._uncounted, []
        for leaf in uncounted:
            if leaf.counted >= 0:  # else it was told already
                self._tell(txn, leaf)

    def _tell(self, txn: Txn, leaf: OrderNode) -> None:
        """Bring the counts above one node of level 0 up to date."""
        more = len(leaf.places) - leaf.counted
        leaf.counted = -1
        if not more:
            return
        node = self._highest(txn)
        while node.level:
            turn = _right_of(node.places, leaf.bound) - 1
            node.counts[turn] += more
            self._change(node)
            below = node.below[turn]
            assert below is not None  # it was passed on the way to the leaf
            node = below

    def settle(self, txn: Txn) -> None:
        """Write what has changed."""
        if not self._changed:
            return
        self._count(txn)
        small = [node for node in self._changed if node.size < ranks.LEAST_BYTES]
        while small:
            node = small.pop()
            if node.is_gone or node is self._top:
                continue
            above = self._join(txn, node)
            if above.size < ranks.LEAST_BYTES:
                small.append(above)
        top = self._highest(txn)
        while top.level and len(top.places) == 1:
            top.is_gone = True
            if top.is_stored:
                self._gone.append(self._key(top))
            top = self._top = self._under(txn, top, 0)
            self.levels -= 1
            self._rows.held_bytes -= _HELD_NODE_BYTES
        changed, self._changed = self._changed, []
        records: dict[bytes, bytes | None] = dict.fromkeys(self._gone)
        self._gone = []
        for node in changed:
            node.is_changed = False
            if not node.is_gone:
                node.is_stored = True
                records[self._key(node)] = node.packed()
        change_rows(txn, records)

    def let_go(self) -> None:
        """Drop all nodes from memory. All must have been written."""
        self._top = None

    # -- reading

    def count_before(self, txn: Txn, bound: bytes) -> int:
        """Return how many members stand before a place."""
        if self._uncounted:
            self._count(txn)
        total = 0
        node = self._highest(txn)
        while node.level:
            turn = _right_of(node.places, bound) - 1
            for count in node.counts[:turn]:
                total += count
            node = self._under(txn, node, turn)
        return total + _left_of(node.places, bound)

    def places(self, txn: Txn, start: int, count: int) -> list[bytes]:
        """Return the places of this many members, from this rank on. All of them must exist."""
        return self._stretch(txn, start, count, as_names=False)

    def members(self, txn: Txn, start: int, count: int) -> list[bytes]:
        """Return the members that stand there."""
        return self._stretch(txn, start, count, as_names=True)

    def _stretch(self, txn: Txn, start: int, count: int, *, as_names: bool) -> list[bytes]:
        if self._uncounted:
            self._count(txn)
        found: list[bytes] = []
        while count > 0:
            before = count
            node, place = self._of_rank(txn, start)
            above, turn = node, 0
            if node.level:
                turn, place = self._turn(node, place)
                node = self._under(txn, above, turn)
            while True:  # along this one and its neighbours
                held = node.places
                if as_names:
                    held = node.names or self._read_names(node)
                some = held[place : place + count]
                found += some
                start += len(some)
                count -= len(some)
                turn += 1
                if count <= 0 or not above.level or turn >= len(above.below):
                    break
                node, place = self._under(txn, above, turn), 0
            if count == before:
                raise _damaged(self.number)
        return found

    def _read_names(self, node: OrderNode) -> list[bytes]:
        """Make a list of the members of a node of level 0."""
        names = node.names = _members_of(node.places)
        self._rows.held_bytes += _HELD_BYTES * len(names) + node.size
        return names

    def _forget_names(self, node: OrderNode) -> None:
        """Drop that list, before the node is changed."""
        self._rows.held_bytes -= _HELD_BYTES * len(node.names) + node.size
        node.names = []

    def _of_rank(self, txn: Txn, rank: int) -> tuple[OrderNode, int]:
        """Return the node above the one that holds this rank, or that one if there is none above; and the rank within
        it."""
        node = self._highest(txn)
        while node.level > 1:
            turn, rank = self._turn(node, rank)
            node = self._under(txn, node, turn)
        return node, rank

    def _turn(self, node: OrderNode, rank: int) -> tuple[int, int]:
        """Return which of the nodes below holds this rank, and the rank within it."""
        turn = 0
        for count in node.counts:
            if rank < count:
                return turn, rank
            rank -= count
            turn += 1
        raise _damaged(self.number)

    def walk(self, txn: Txn, start: int, count: int, *, backwards: bool) -> Iterator[bytes]:
        """Like `places`, without holding the nodes it passes; `backwards` towards the first one. All must have been
        settled; change nothing meanwhile."""
        if count <= 0:
            return
        first = self.places(txn, start, 1)[0]
        cursor = txn.cursor()
        if not databases.seek_back(cursor, self._prefix, self._prefix + first[: ranks.MOST_BOUND_BYTES]):
            raise _damaged(self.number)
        for key, value in cursor.iterprev() if backwards else cursor.iternext():
            if not key.startswith(self._prefix):
                raise _damaged(self.number)
            some = words.unpack(value, 0)
            if backwards:
                some.reverse()
            if first:
                some = some[some.index(first) :]
                first = b""
            yield from some[:count]
            count -= len(some)
            if count <= 0:
                return

    # -- what is read once, and held

    def _highest(self, txn: Txn) -> OrderNode:
        top = self._top
        if top is None:
            top = self._top = self._read(txn, self.levels, b"")
        return top

    def _leaf(self, txn: Txn, place: bytes) -> OrderNode:
        """Return the node of level 0 that a place is in."""
        node = self._top
        if node is None:
            node = self._highest(txn)
        while node.level:
            turn = _right_of(node.places, place) - 1
            below = node.below[turn]
            node = self._under(txn, node, turn) if below is None else below
        return node

    def _above(self, txn: Txn, wanted: OrderNode) -> OrderNode:
        """Return the node that counts a node, which is not the highest."""
        level, bound = wanted.level + 1, wanted.bound
        node = self._highest(txn)
        while node.level > level:
            node = self._under(txn, node, _right_of(node.places, bound) - 1)
        return node

    def _under(self, txn: Txn, node: OrderNode, turn: int) -> OrderNode:
        """Return one of the nodes below."""
        below = node.below[turn]
        if below is not None:
            return below
        below = self._read(txn, node.level - 1, node.places[turn])
        if below.members != node.counts[turn]:
            raise _damaged(self.number)
        node.below[turn] = below
        return below

    def _key(self, node: OrderNode) -> bytes:
        return ranks.prefix(self.number, node.level) + node.bound

    def _read(self, txn: Txn, level: int, bound: bytes) -> OrderNode:
        node = OrderNode(level, bound)
        stored = txn.get(self._key(node))
        if stored is None:
            raise _damaged(self.number)
        found = words.unpack(stored, 0)
        if level:
            for word in found:
                count, place = ranks.unpack_post(word)
                node.places.append(place)
                node.counts.append(count)
                node.below.append(None)
            if not found or node.places[0] != bound:
                raise _damaged(self.number)
        else:
            node.places = found
        node.size = len(stored) - _WORD_BYTES
        node.is_stored = True
        self._rows.held_bytes += _HELD_NODE_BYTES + len(stored) + len(found) * _HELD_BYTES
        return node


def _damaged(number: int) -> RecordDamaged:
    return RecordDamaged(f"the sorted set {number} has other members than are counted")
