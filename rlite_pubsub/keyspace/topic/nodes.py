"""Where redis-server would have put a topic's entries: its nodes, which an approximate trim (`~`) removes whole.

A node takes entries until `stream-node-max-entries` or `stream-node-max-bytes` of listpack are reached; what is deleted
in it still counts. Which entries share a node follows from the entries themselves, so nothing is noted while they are
appended. It is found out from the oldest entry on, and no further than somebody asks; what a deletion would make
unknowable is found out before it, and kept in the topic's record. A node is gone when all of its entries are.

Only the first `MAX_KNOWN` nodes are kept. Behind them a deletion leaves no trace, and an approximate trim that comes
that far later sees the entries as though those deleted had never been.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import PART_MAX, Id

MAX_KNOWN: Final = 128
"""Two pages of them, where somebody deletes far behind the oldest entries. All others know two or three."""
MAX_LISTPACK_BYTES: Final = 1 << 30
_NODE: Final = Struct(">QQQQIII8s")
_EMPTY_LISTPACK_BYTES: Final = 7
_ZERO_BYTES: Final = 2  # of a small integer in a listpack
_INTEGER: Final = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_MAX_INTEGER_DIGITS: Final = 20
_SURE_DIGITS: Final = 18
"""The number of digits that always fit into 64 bits."""
_LARGE_DIGITS: Final = 11
"""The number of digits from which on an integer takes the most bytes."""
_LARGE_BYTES: Final = 10
_ZERO: Final = 0x30
_NINE: Final = 0x39

After: TypeAlias = Callable[[Id], Iterator[tuple[bytes, bytes]]]
"""All entries behind an id: (id packed, entry as it is sent)."""


class NodeLimits(NamedTuple):
    """The size of a node, as configured; 0 is no limit."""

    entries: int
    size_bytes: int
    """Of its listpack."""

    @property
    def most_trimmed(self) -> int:
        """How many entries an approximate trim without LIMIT may remove: those of 100 nodes."""
        entries = (100 * self.entries) & PART_MAX
        if entries == 0 or entries >> 63:
            return 10_000
        return min(entries, 1_000_000)


DEFAULT_LIMITS: Final = NodeLimits(100, 4096)


class StreamNode:
    """One node."""

    __slots__ = ("_digest", "_names", "dead", "first", "last", "live", "size")

    def __init__(
        self,
        first: Id,
        last: Id,
        live: int,
        dead: int,
        size: int,
        digest: bytes | None = None,
        names: list[bytes] | None = None,
    ) -> None:
        self.first = first
        self.last = last  # the last that is known to be in it, though it may be deleted
        self.live = live
        self.dead = dead
        self.size = size  # of its listpack, but for the two counts
        self._digest = digest  # of the names of its first entry's fields, which others need not repeat
        self._names = names

    @property
    def digest(self) -> bytes:
        if self._digest is None:
            assert self._names is not None
            self._digest = _digest(self._names)
        return self._digest

    def has_fields(self, names: list[bytes]) -> bool:
        """Return whether its first entry's fields have these names."""
        if self._names is not None:
            return self._names == names
        if _digest(names) != self._digest:
            return False
        self._names = names
        return True

    def has_room(self, limits: NodeLimits, new_bytes: int) -> bool:
        """Return whether one more entry, of this many bytes, fits into this node."""
        max_entries, max_bytes = limits
        if not 0 < max_bytes <= MAX_LISTPACK_BYTES:
            max_bytes = MAX_LISTPACK_BYTES
        if self.size + integer_bytes(self.live) + integer_bytes(self.dead) + new_bytes >= max_bytes:
            return False
        return not max_entries or self.live + self.dead < max_entries


class Nodes:
    """The first nodes of one topic that are known."""

    __slots__ = ("_after", "_packed", "frontier", "known")

    def __init__(self, after: After, packed: bytes = b"") -> None:
        self._after = after
        self._packed: bytes | None = packed
        self.known = [_unpacked(row) for row in _NODE.iter_unpack(packed[entry_ids.BYTES :])]
        self.frontier = entry_ids.unpack(packed) if packed else entry_ids.MIN  # what is behind it is not known

    def pack(self) -> bytes:
        """As the topic's record keeps them."""
        if self._packed is None:
            rows = [
                _NODE.pack(*node.first, *node.last, node.live, node.dead, node.size, node.digest) for node in self.known
            ]
            self._packed = entry_ids.pack(self.frontier) + b"".join(rows)
        return self._packed

    # -- finding out

    def _learn(self, limits: NodeLimits, is_enough: Callable[[], bool]) -> bool:
        """Go on behind the frontier. False if the entries came to an end first."""
        known = self.known
        self._packed = None
        for packed_id, entry in self._after(self.frontier):
            words = words_of(entry)
            entry_id = self.frontier = entry_ids.unpack(packed_id)
            node = known[-1] if known else None
            if node is None or not node.has_room(limits, _length(words)):
                known.append(_begun(entry_id, words))
            else:
                _add(node, entry_id, words)
            if is_enough():
                return True
        return False

    def first(self, limits: NodeLimits) -> StreamNode | None:
        """Return the first node, with all of its entries; None without any."""
        if len(self.known) < 2:
            self._learn(limits, lambda: len(self.known) > 1)
        return self.known[0] if self.known else None

    def learn_all(self, limits: NodeLimits, at_most: int = MAX_KNOWN) -> None:
        """Find out as much as is kept, or no more than this many nodes: because these limits are about to change,
        say."""
        if len(self.known) < at_most:
            self._learn(limits, lambda: len(self.known) >= at_most)

    def _learn_past(self, limits: NodeLimits, entry_id: Id) -> None:
        """Learn nodes until this entry's is known to its end."""
        known = self.known
        if len(known) < MAX_KNOWN and (not known or known[-1].first <= entry_id):
            self._learn(limits, lambda: known[-1].first > entry_id or len(known) >= MAX_KNOWN)

    # -- removing

    def pop_first(self) -> None:
        """Forget the first node, which has been removed."""
        del self.known[0]
        self._packed = None

    def drop_empty(self, min_id: Id) -> bool:
        """Remove first nodes below an id that have no entries left, as only a trim by id leaves them. Whether there was
        one."""
        found = False
        while self.known and not self.known[0].live and self.known[0].last < min_id:
            self.pop_first()
            found = True
        return found

    def note_trimmed(self, limits: NodeLimits, count: int, min_id: Id | None) -> bool:
        """This many of the oldest entries are about to be removed one by one, because there are too many or because
        they
        are below `min_id`. False if that is too far to follow: all is to be forgotten (`forget`) then."""
        followed = 0
        while count:
            node = self.known[0] if self.known else None
            if node is None or (count >= node.live and len(self.known) < 2):
                node = self.first(limits)
                if node is None:
                    return False
            self._packed = None
            if count < node.live or (min_id is not None and node.last >= min_id):
                gone = min(count, node.live)
                node.live -= gone
                node.dead += gone
                return True
            if followed == MAX_KNOWN:
                return False
            count -= node.live
            followed += 1
            self.pop_first()
        return True

    def note_deleted(self, limits: NodeLimits, ids: Sequence[Id]) -> None:
        """These entries, which exist, in this order, are about to be removed from among the others."""
        self._learn_past(limits, ids[-1])
        known = self.known
        for entry_id in ids:
            if entry_id > self.frontier:
                break
            place = bisect_right(known, entry_id, key=_first_of) - 1
            if place < 0:
                continue
            node = known[place]
            self._packed = None
            if node.live > 1:
                node.live -= 1
                node.dead += 1
            else:
                del known[place]

    def step_back(self, last_id: Id) -> None:
        """There is nothing behind this id, but there may be soon."""
        if self.frontier > last_id:
            self.frontier = last_id
            self._packed = None

    def forget(self, frontier: Id) -> None:
        """Nothing is known, and there is nothing up to `frontier`."""
        self.known.clear()
        self._packed = None
        self.frontier = frontier


def _first_of(node: StreamNode) -> Id:
    return node.first


def _unpacked(row: tuple[int, int, int, int, int, int, int, bytes]) -> StreamNode:
    return StreamNode(row[0:2], row[2:4], *row[4:])


def words_of(entry: bytes) -> list[bytes]:
    """Return the fields and values of an entry, field after value, from the form in which it is sent."""
    parts = entry.split(b"\r\n")
    count = int(parts[3][1:])
    if len(parts) == 2 * count + 5:  # otherwise some of them have newlines in them
        return parts[5::2]
    at = len(parts[0]) + len(parts[1]) + len(parts[2]) + len(parts[3]) + 8
    words = []
    while at < len(entry):
        start = entry.index(b"\r", at) + 2
        at = start + int(entry[at + 1 : start - 2])
        words.append(entry[start:at])
        at += 2
    return words


def _begun(entry_id: Id, words: list[bytes]) -> StreamNode:
    """Return a node that this entry begins: its fields are written as the node's, its values as the entry's."""
    count = len(words) // 2
    size = _EMPTY_LISTPACK_BYTES + integer_bytes(count) + _ZERO_BYTES
    size += 3 * _ZERO_BYTES + integer_bytes(count + 3) + _texts_bytes(words)
    return StreamNode(entry_id, entry_id, 1, 0, size, names=words[::2])


def _add(node: StreamNode, entry_id: Id, words: list[bytes]) -> None:
    """Put an entry into a node that has room."""
    count = len(words) // 2
    size = _ZERO_BYTES + _difference_bytes(entry_id[0], node.first[0]) + _difference_bytes(entry_id[1], node.first[1])
    if node.has_fields(words[::2]):
        size += integer_bytes(count + 3) + _texts_bytes(words[1::2])
    else:
        size += integer_bytes(2 * count + 4) + integer_bytes(count) + _texts_bytes(words)
    node.size += size
    node.live += 1
    node.last = entry_id


def _length(words: list[bytes]) -> int:
    """Return the size of all words; in a compiled package a loop takes less than `sum` and `map`."""
    size = 0
    for word in words:
        size += len(word)
    return size


def _texts_bytes(words: list[bytes]) -> int:
    """Return the size of all words in a listpack."""
    size = 0
    for word in words:
        size += text_bytes(word)
    return size


def _digest(fields: list[bytes]) -> bytes:
    return blake2b(b"%d " % len(fields) + b"".join([b"%d:%b" % (len(field), field) for field in fields]),
                   digest_size=8).digest()  # fmt: skip


def _difference_bytes(one: int, other: int) -> int:
    """Return the size of a difference of 64 bits, taken as a signed one."""
    if 0 <= one - other <= 127:
        return 2
    difference = (one - other) & PART_MAX
    return integer_bytes(difference - (1 << 64) if difference >> 63 else difference)


def integer_bytes(number: int) -> int:
    """Return the size of an integer in a listpack, with the byte that leads back over it."""
    if 0 <= number <= 127:
        return 2
    magnitude = number if number >= 0 else ~number
    if magnitude < 1 << 12:
        return 3
    if magnitude < 1 << 15:
        return 4
    if magnitude < 1 << 23:
        return 5
    return 6 if magnitude < 1 << 31 else _LARGE_BYTES


def text_bytes(text: bytes) -> int:
    """Return the size of a string in a listpack, with the bytes that lead back over it. Integers are packed."""
    length = len(text)
    if 0 < length <= _MAX_INTEGER_DIGITS and text[0] <= _NINE:
        if length <= _SURE_DIGITS and text[0] > _ZERO and text.isdigit():  # as most are
            return _LARGE_BYTES if length >= _LARGE_DIGITS else integer_bytes(int(text))
        if _INTEGER.fullmatch(text) is not None:
            number = int(text)
            if -(1 << 63) <= number < 1 << 63:
                return integer_bytes(number)
    if length < 64:
        return length + 2
    encoded = length + (2 if length < 4096 else 5)
    if encoded <= 127:
        return encoded + 1
    for bytes_back, bound in ((2, 16383), (3, 2097151), (4, 268435455)):
        if encoded < bound:
            return encoded + bytes_back
    return encoded + 5
