"""Lists, as a turn works on them: pushed and popped at both ends, read and changed by place.

The elements of a large list have places without a gap, so that the element of an index is one look-up. Inserting or
removing one in the middle moves those between it and the nearer end, some at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, ClassVar, Final

from rlite_pubsub.keyspace.collection import SMALL, Collection, Shelter
from rlite_pubsub.keyspace.packing import LIST_BYTES, LIST_ELEMENTS
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.keys import elements, key_records, words

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.keys.key_records import KeyRecord

_BODY: Final = Struct(">QQQ")
_AT_ONCE: Final = 512
"""How many elements of a large list are held in memory to be moved."""
_ELEMENT_BYTES: Final = 32
"""About how many bytes an element takes beside its own."""
_SAMPLES: Final = 5
_MOST_AHEAD: Final = 32
_MOST_AHEAD_BYTES: Final = 1 << 16
"""How many elements are read at once for a client that pops one after the other, and how many bytes of them, or one
element more."""
_HELD_BYTES: Final = 150
"""About how many bytes of memory an element that was read ahead takes beside its own."""


class List(Collection):
    """A list."""

    __slots__ = ("_ahead", "_bytes", "_elements", "_held", "_start", "_stop")

    type = key_records.LIST
    database_bytes: ClassVar[tuple[bytes, ...]] = (databases.ELEMENTS,)

    def __init__(self, keyspace: Shelter, database: int, name: bytes, place: bytes) -> None:
        super().__init__(keyspace, database, name, place)
        self._elements: list[bytes] = []  # of a small one
        self._bytes = 0  # of these
        self._start = self._stop = 0  # of a large one
        self._held: dict[int, bytes] = {}  # of a large one: elements read ahead
        self._ahead = 1  # this many are read at once

    def __len__(self) -> int:
        return self._stop - self._start if self.number else len(self._elements)

    def loaded(self, stored: KeyRecord) -> None:
        super().loaded(stored)
        if self.number:
            _, start, stop = _BODY.unpack(stored.body)
            self._start, self._stop = start - elements.MIDDLE, stop - elements.MIDDLE
        else:
            self._elements = words.unpack(stored.body, len(SMALL))
            self._bytes = sum(map(len, self._elements))

    def body(self, txn: Txn) -> bytes:
        if self.number:
            return _BODY.pack(self.number, self._start + elements.MIDDLE, self._stop + elements.MIDDLE)
        return SMALL + words.pack(self._elements)

    def copy_from(self, other: Collection) -> None:
        assert isinstance(other, List)
        if other.number:
            self._start, self._stop = other._start, other._stop
            self.copy_content(other)
        else:
            self._elements, self._bytes = list(other._elements), other._bytes
        self._keyspace.changed(self)

    @property
    def weight(self) -> int:
        return 400 + self._bytes * 2 + len(self._elements) * 50

    @property
    def content_bytes(self) -> int:
        count = len(self)
        sample = self.slice(0, min(_SAMPLES, count))
        return sum(_ELEMENT_BYTES + len(element) for element in sample) * count // max(1, len(sample))

    # -- at the ends

    def push(self, added: Iterable[bytes], *, left: bool) -> int:
        """Push elements, one after the other, at an end; return how many there are then."""
        if not self.number:
            all_added = list(added)
            self._bytes += sum(map(len, all_added))
            if left:
                self._elements[:0] = reversed(all_added)
            else:
                self._elements += all_added
            if self._bytes > LIST_BYTES or len(self._elements) > LIST_ELEMENTS:
                self._grow()
        else:
            txn = self._keyspace.writing()
            for element in added:
                if left:
                    self._start -= 1
                    self._rows.put(txn, elements.key(self.number, self._start), element)
                else:
                    self._rows.put(txn, elements.key(self.number, self._stop), element)
                    self._stop += 1
        self._keyspace.appended(self)
        return self._stop - self._start if self.number else len(self._elements)

    def _check_size(self) -> None:
        if self._bytes > LIST_BYTES or len(self._elements) > LIST_ELEMENTS:
            self._grow()

    def _grow(self) -> None:
        """Become large."""
        txn = self._keyspace.writing()
        self.number = key_records.new_topic(txn)
        for element in self._elements:
            self._rows.put(txn, elements.key(self.number, self._stop), element)
            self._stop += 1
        self._elements, self._bytes = [], 0

    def pop(self, count: int, *, left: bool) -> list[bytes]:
        """Pop elements, one after the other, from an end."""
        if not count:
            return []
        if not self.number:
            kept = self._elements
            if count < len(kept):
                found = [kept.pop(0 if left else -1) for _ in range(count)]
            else:
                found, self._elements = kept if left else kept[::-1], []
            self._bytes -= sum(map(len, found))
        else:
            txn = self._keyspace.writing()
            found = []
            for _ in range(min(count, len(self))):
                if not left:
                    self._stop -= 1
                index = self._start if left else self._stop
                found.append(self._taken(txn, index, left=left))
                if left:
                    self._start += 1
        self._keyspace.changed(self)
        return found

    def keep(self, start: int, stop: int) -> None:
        """Remove everything outside these places."""
        if not self.number:
            self._elements = self._elements[start:stop]
            self._bytes = sum(map(len, self._elements))
        else:
            first, last = self._start + start, self._start + stop
            self._free(self._start, first - self._start)
            self._free(last, self._stop - last)
            self._start, self._stop = first, last
        self._keyspace.changed(self)

    # -- by place

    def at(self, place: int) -> bytes:
        """Return the element at a place within the list."""
        if not self.number:
            return self._elements[place]
        return self._get(self._keyspace.reading(), self._start + place)

    def set(self, place: int, element: bytes) -> None:
        """Replace the element at a place within the list."""
        if not self.number:
            self._bytes += len(element) - len(self._elements[place])
            self._elements[place] = element
            self._check_size()
        else:
            self._put(self._start + place, element)
        self._keyspace.changed(self)

    def slice(self, start: int, stop: int) -> list[bytes]:
        """Return the elements from one place up to another, both within the list."""
        if not self.number:
            return self._elements[start:stop]
        txn = self._content()
        return list(elements.between(txn, self.number, self._start + start, self._start + stop))

    def walk(self, *, backwards: bool = False) -> Iterator[bytes]:
        """Yield every element, in order. Change nothing meanwhile."""
        if not self.number:
            return iter(self._elements[::-1] if backwards else self._elements)
        read = elements.backwards if backwards else elements.between
        return read(self._content(), self.number, self._start, self._stop)

    def find(self, element: bytes) -> int | None:
        """Return the first place of an equal element."""
        return next((place for place, one in enumerate(self.walk()) if one == element), None)

    def insert(self, place: int, element: bytes) -> None:
        """Insert an element before the one at this place, or (at the length) after the last one."""
        if not self.number:
            self._elements.insert(place, element)
            self._bytes += len(element)
            self._check_size()
        elif place < len(self) - place:
            self._move(self._start, self._start + place, -1)
            self._start -= 1
            self._put(self._start + place, element)
        else:
            self._move(self._start + place, self._stop, 1)
            self._stop += 1
            self._put(self._start + place, element)
        self._keyspace.appended(self)

    def _move(self, start: int, stop: int, by: int) -> None:
        """Move the elements between these indexes: their targets have been moved, or are free."""
        self._keyspace.writing()
        txn = self._content()
        self.let_go()
        count = stop - start
        for done in range(0, count, _AT_ONCE):
            size = min(_AT_ONCE, count - done)
            first = start + done if by < 0 else stop - done - size
            for index, element in enumerate(list(elements.between(txn, self.number, first, first + size)), first + by):
                txn.put(elements.key(self.number, index), element)

    def remove(self, element: bytes, count: int) -> int:
        """Remove this many equal elements, from the beginning, or (if negative) from the end; 0: all. Returns how
        many."""
        places = []
        length = len(self)
        for place, one in enumerate(self.walk(backwards=count < 0)):
            if one == element:
                places.append(length - 1 - place if count < 0 else place)
                if len(places) == abs(count):
                    break
        if places:
            self._close(sorted(places))
            self._keyspace.changed(self)
        return len(places)

    def _close(self, gone: list[int]) -> None:
        """Remove the elements at these places, in order."""
        if not self.number:
            for place in reversed(gone):
                self._bytes -= len(self._elements.pop(place))
            return
        length = len(self)
        if gone[-1] < length - gone[0]:  # fewer are before the last one than after the first
            for by, (below, place) in enumerate(zip([*gone[-2::-1], -1], reversed(gone), strict=True), 1):
                self._move(self._start + below + 1, self._start + place, by)
            self._free(self._start, len(gone))
            self._start += len(gone)
        else:
            for by, (place, above) in enumerate(zip(gone, [*gone[1:], length], strict=True), 1):
                self._move(self._start + place + 1, self._start + above, -by)
            self._stop -= len(gone)
            self._free(self._stop, len(gone))

    def _free(self, start: int, count: int) -> None:
        txn = self._keyspace.writing()
        self.let_go()
        for index in range(start, start + count):
            self._rows.delete(txn, elements.key(self.number, index))

    # -- the content of a large one

    def _put(self, index: int, element: bytes) -> None:
        held = self._held.pop(index, None)
        if held is not None:
            self._rows.held_bytes -= _HELD_BYTES + len(held)
        self._rows.put(self._keyspace.writing(), elements.key(self.number, index), element)

    def _get(self, txn: Txn, index: int) -> bytes:
        element = self._held.get(index)
        if element is None:
            element = self._rows.get(txn, elements.key(self.number, index))
            assert element is not None
        return element

    def _taken(self, txn: Txn, index: int, *, left: bool) -> bytes:
        """Remove the element at an end; its neighbours are read with it, if some were popped before."""
        held = self._held.pop(index, None)
        key = elements.key(self.number, index)
        if held is not None:
            self._rows.held_bytes -= _HELD_BYTES + len(held)
        else:
            self._mind_memory()
            held = self._rows.get(txn, key)
            assert held is not None
            if self._ahead > 1 and self._stop - self._start > self._ahead:
                self._read_ahead(txn, index, left=left)
            self._ahead = min(2 * self._ahead, _MOST_AHEAD)
        self._rows.delete(txn, key)
        return held

    def _read_ahead(self, txn: Txn, index: int, *, left: bool) -> None:
        """Read ahead from beside the popped element, towards the other end."""
        rows, count = self._rows, self._ahead if left else -self._ahead
        for at, key, element in elements.next_to(txn, self.number, index, count, _MOST_AHEAD_BYTES):
            if not rows.changes(key):
                self._held[at] = element
                rows.held_bytes += _HELD_BYTES + len(element)

    def let_go(self) -> None:
        super().let_go()
        self._held = {}
