"""A topic, that of events above all, read a page at a time by readers that have nothing but a place in it.

Laws kept here:
 6. replay then live without a gap or a duplicate: a reader has the last id that it was given, and is given what comes
    after it. Being live is being at the end.
 8. what is lost is said: a page says that what follows the reader's place was trimmed meanwhile, and how much it was.

A page is read from a snapshot of what is committed, so nobody sees what might be taken back. Readers at the same place
who want the same types are given the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.events.matcher import Matcher
from rlite_pubsub.gateway.http import sse
from rlite_pubsub.gateway.streams.cold_reads import fetched
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic.cold_shelf import ColdMiss
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.topics import entry_ids, trim_marks, type_index, uuid6
from rlite_pubsub.storage.topics.entry_ids import Id

T = TypeVar("T")

PAGE_BYTES = 64 * 1024
"""What a reader who is slow holds in memory is about twice this."""
PAGE_CHUNKS, PAGE_ENTRIES = 64, 4096
"""Looked through for the sake of one page: others live in this loop."""
PAGE_IDS = 512
"""Taken from the index for one page."""
FOUND_AT_ONCE = 32
"""Of these, where they are small; the first alone, for they may be large."""
MAX_TYPES = 1000
"""More types than these are not merged: then the topic is looked through."""
RARE = 4
"""The index is used where it spares reading at least three entries of this many."""
_PAGES_KEPT = 64
_KEPT_BYTES = 64 * PAGE_BYTES
"""Of them; the newest is kept whatever its size."""


class LostPlace(NamedTuple):
    """Why a reader's place is not one to go on from."""

    reason: str
    """`unknown` or `expired`."""
    after: Id | None
    first: Id
    """What there is first; MIN where there is nothing."""
    at_most: int | None
    """How many events were trimmed since; None where nobody knows."""


class LogPage(NamedTuple):
    """The events after a reader's place."""

    data: bytes
    after: Id
    """The reader's new place."""
    is_end: bool
    """There is no more now."""
    lost: LostPlace | None = None


class Form(NamedTuple):
    """A topic, and how its entries are told."""

    topic: bytes
    decode: Callable[[bytes], tuple[bytes, bytes]]
    """Type and body of an entry."""
    name: Callable[[Id], bytes]
    """What an id is called."""


EVENTS = Form(event.TOPIC, event.decode, uuid6.text)


class EventLog:
    """All reading of one topic in one process, in one form."""

    def __init__(self, keyspace: Keyspace, form: Form = EVENTS) -> None:
        self.form = form
        self._keyspace = keyspace
        self._pages: dict[tuple[Id, tuple[str, ...] | None], LogPage] = {}
        self._kept_bytes = 0

    def changed(self) -> None:
        """The topic has been changed: what was read may be old."""
        self._pages.clear()
        self._kept_bytes = 0

    def end(self) -> Id:
        """Return the last id there ever was. Raises StoreError."""
        return self._read(lambda _, topic: entry_ids.MIN if topic is None else topic.last_id)

    def loss(self, after: Id) -> LostPlace | None:
        """Return the place from which a reader must go on, if it has lost something; None if not. Raises StoreError."""
        return self._read(lambda txn, topic: self._lost(txn, topic, after))

    def earliest(self) -> Id:
        """Return the first id there is; MIN without any. Raises StoreError."""
        return self._read(_first)

    async def next_page(self, after: Id, matcher: Matcher | None) -> LogPage:
        """Return the next page, once what it needs of the cold store is here. Raises StoreError and ColdUnreadable."""
        return await fetched(self._keyspace, lambda: self.page(after, matcher))

    def page(self, after: Id, matcher: Matcher | None) -> LogPage:
        """Return the next page. Raises StoreError."""
        place = after, None if matcher is None else matcher.patterns
        page = self._pages.get(place)
        if page is None:
            page = self._read(lambda txn, topic: self._page(txn, topic, after, matcher))
            self._kept_bytes += len(page.data)
            if len(self._pages) >= _PAGES_KEPT or self._kept_bytes > _KEPT_BYTES:
                self.changed()
                self._kept_bytes = len(page.data)
            self._pages[place] = page
        return page

    def _read(self, read: Callable[[Txn, Topic | None], T]) -> T:
        return self._keyspace.read_topic(event.DATABASE, self.form.topic, read)

    def _lost(self, txn: Txn, topic: Topic | None, after: Id) -> LostPlace | None:
        if after == entry_ids.MIN:
            return None
        if topic is None or after > topic.last_id:
            return LostPlace("unknown", after, _first(txn, topic), None)
        if after < topic.trimmed_id:
            at_most = topic.trimmed - trim_marks.count_up_to(txn, topic.number, after)
            return LostPlace("expired", after, _first(txn, topic), at_most)
        return None

    def _page(self, txn: Txn, topic: Topic | None, after: Id, matcher: Matcher | None) -> LogPage:
        if topic is None:
            return LogPage(b"", after, True)
        lost = self._lost(txn, topic, after)
        if lost is not None:
            return LogPage(b"", topic.trimmed_id if lost.reason == "expired" else entry_ids.MIN, False, lost)
        if after >= topic.last_id:
            return LogPage(b"", after, True)
        if matcher is None:
            return self._looked_through(txn, topic, after, None)
        matcher.rest()
        indexed = type_index.indexed(txn, topic.number)
        if after < indexed:
            digests = self._rare(txn, topic, matcher)
            if digests is not None:
                return self._by_index(txn, topic, after, indexed, digests)
        return self._looked_through(txn, topic, after, matcher)

    def _rare(self, txn: Txn, topic: Topic, matcher: Matcher) -> list[bytes] | None:
        """Return the digests of the types that match, if the index is the shorter way."""
        digests = []
        left = topic.length // RARE
        for number, each in enumerate(type_index.types(txn, topic.number)):
            if number >= MAX_TYPES or matcher.is_tired:
                return None
            if matcher.matches(each.name):
                left -= each.entries
                if left < 0:
                    return None
                digests.append(each.digest)
        return digests

    def _looked_through(self, txn: Txn, topic: Topic, after: Id, matcher: Matcher | None) -> LogPage:
        """Return the next page of all entries, or of those whose type matches."""
        start = entry_ids.after(after)
        matches = None if matcher is None else matcher.matches
        decode, name = self.form.decode, self.form.name
        frames: list[bytes] = []
        size = 0
        looked_at = 0
        parts = iter(()) if start is None else topic.read(txn, start)
        try:
            for number, part in enumerate(parts):
                ids = entry_ids.unpack_all(part.ids)
                for entry_id, entry in zip(ids, part.chunk.entries(part.start, part.stop), strict=True):
                    type, body = decode(entry)
                    if matches is None or matches(type):
                        frame = sse.event(type, name(entry_id), body)
                        frames.append(frame)
                        size += len(frame)
                    if matcher is not None and matcher.is_tired:
                        return LogPage(b"".join(frames), entry_id, entry_id >= topic.last_id)
                after = ids[-1]
                looked_at += part.count
                if size >= PAGE_BYTES or number >= PAGE_CHUNKS or looked_at >= PAGE_ENTRIES:
                    return LogPage(b"".join(frames), after, after >= topic.last_id)
        except ColdMiss:
            if not frames:
                raise
            return LogPage(b"".join(frames), after, False)  # these first
        return LogPage(b"".join(frames), topic.last_id, True)

    def _by_index(self, txn: Txn, topic: Topic, after: Id, indexed: Id, digests: Iterable[bytes]) -> LogPage:
        """Return the next page of these types, up to where the index ends."""
        ids: list[bytes] = []
        end = entry_ids.pack(indexed)  # all types are known up to here
        for digest in digests:
            found = type_index.after(txn, topic.number, digest, after, PAGE_IDS)
            if len(found) >= PAGE_IDS:
                end = min(end, found[-1])
            ids += found
        wanted = sorted(each for each in ids if each <= end)
        if len(wanted) > PAGE_IDS:
            wanted = wanted[:PAGE_IDS]
            end = wanted[-1]
        decode, name = self.form.decode, self.form.name
        frames: list[bytes] = []
        size = 0
        at, step = 0, 1
        while at < len(wanted):
            some = wanted[at : at + step]
            at += len(some)
            for packed, entry in zip(some, topic.read_all(txn, some), strict=True):
                if entry is not None:
                    type, body = decode(entry)
                    frame = sse.event(type, name(entry_ids.unpack(packed)), body)
                    frames.append(frame)
                    size += len(frame)
            if size >= PAGE_BYTES and at < len(wanted):
                end = some[-1]
                break
            step = min(2 * step, FOUND_AT_ONCE, max(1, PAGE_BYTES * at // max(1, size) - at))
        reached = entry_ids.unpack(end)
        return LogPage(b"".join(frames), reached, reached >= topic.last_id)


def _first(txn: Txn, topic: Topic | None) -> Id:
    if topic is None:
        return entry_ids.MIN
    part = next(topic.read(txn, limit=1), None)
    return entry_ids.MIN if part is None else entry_ids.unpack(part.ids)
