"""A topic's entries in chunks (storage/topics/chunks.py): what a turn appends and trims is gathered here, and done in
the store at its end, or when somebody reads the topic before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.storage.topics import chunks, entry_ids
from rlite_pubsub.storage.topics.chunks import Chunk
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Txn


class Gone(NamedTuple):
    """The entries that were trimmed."""

    entries: int
    size_bytes: int
    last: Id
    """The last of them."""


class HotLog:
    """The entries of one topic that are not in blocks. Its topic puts what is new into `ids` and `entries`."""

    __slots__ = ("_is_tail_large", "_tail", "entries", "ids", "to_trim")

    def __init__(self) -> None:
        self.ids: list[bytes] = []  # appended in this turn, not yet in chunks
        self.entries: list[bytes] = []
        self.to_trim = 0  # this many of the oldest entries are still to be removed from the store
        self._tail: Chunk | None = None  # the last chunk, if it is known and no larger than a page
        self._is_tail_large = False  # it is larger, and so nothing can be put into it

    def write(self, txn: Txn, topic: int, length: int) -> Gone | None:
        """Bring into the store what was appended and trimmed. `length`: of the log, with all of that."""
        count, self.to_trim = self.to_trim, 0
        ids, entries = self.ids, self.entries
        self.ids, self.entries = [], []
        gone: Gone | None = None
        if count:
            there = length + count - len(ids)  # in the store
            _, size_bytes, last = chunks.trim(txn, topic, min(count, there))
            if count >= there:
                self.forget_tail()
                skipped = count - there
                if skipped:
                    last = ids[skipped - 1]
                    size_bytes += sum(map(len, entries[:skipped]))
                    ids, entries = ids[skipped:], entries[skipped:]
            elif self._tail is not None and self._tail.first <= last:
                self._tail = None
            gone = Gone(count, size_bytes, entry_ids.unpack(last))
        if ids:
            tail = self._tail
            if tail is None and not self._is_tail_large and length > len(ids):
                tail = chunks.last(txn, topic)
            tail = chunks.append(txn, topic, tail, ids, entries)
            self._is_tail_large = len(tail.value) > chunks.CAPACITY
            self._tail = None if self._is_tail_large else tail
        return gone

    def drop(self) -> None:
        """Forget what is to be written, since the topic is removed."""
        self.ids, self.entries, self.to_trim = [], [], 0

    def forget_tail(self) -> None:
        """The last chunk is another one now, or none."""
        self._tail, self._is_tail_large = None, False

    def remove(self, txn: Txn, found: Iterable[tuple[Chunk, list[int]]]) -> int:
        """Remove what stands in these places of chunks (chunks.find); its bytes. Of the turn's own nothing is left to
        write."""
        size_bytes = 0
        for chunk, places in found:
            left = chunks.remove(txn, chunk, places)
            size_bytes += len(chunk.blob) - (0 if left is None else len(left.blob))
            self._is_tail_large = False
            if self._tail is not None and self._tail.key == chunk.key:
                self._tail = left
        return size_bytes

    def after(self, txn: Txn, topic: int, entry_id: Id) -> Iterator[tuple[bytes, bytes]]:
        """(packed id, entry) of what is behind an id, written or not."""
        packed, ids = entry_ids.pack(entry_id), self.ids
        start = entry_ids.after(entry_id)
        if start is not None and (not ids or packed < ids[0]):
            for part in chunks.between(txn, topic, start, entry_ids.MAX):
                chunk = part.chunk
                yield from zip(map(chunk.id, range(part.start, part.stop)), chunk.entries(part.start), strict=True)
        place = bisect_right(ids, packed)
        yield from zip(ids[place:], self.entries[place:], strict=True)
