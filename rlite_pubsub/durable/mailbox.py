"""Messages to durable subscribers: into their mailboxes in data.mdb, and out again where a limit forces them away.

Law 1. A turn's messages are one transaction; subscribers in other processes are notified after it (by post.py).
Law 8. What a limit forces away is counted by channel, and told when the subscriber reads next.

The limits of one that is away are kept by its publishers; of one that is attached, by the process to which it is
attached, which knows what is on its way already. Where that process does nothing any more (it is stopped, or hangs),
publishers keep them as well, a little later; what it had said of that it knows when it goes on (feed.py). Where the
store is at its quota, or the disk is full, the mailbox that holds the most loses its oldest, and publishers go on; at
the quota keys may have that room, too, where the mailbox is what fills the store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from rlite_pubsub.durable.routes import Addressee, DurableRoutes
from rlite_pubsub.pubsub.full_mailboxes import LARGE_SHARE
from rlite_pubsub.pubsub.route import Route
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import NO_ROOM, DiskFull
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.mail import forms, letters, losses, mailboxes, overflows
from rlite_pubsub.storage.mail.mailboxes import Mailbox
from rlite_pubsub.storage.names import attachments, durables
from rlite_pubsub.storage.names.durables import Durable
from rlite_pubsub.storage.names.version import routes_version
from rlite_pubsub.storage.store import Store

log = logging.getLogger("rlite_pubsub")

T = TypeVar("T")

LETTER_BYTES = 64 * 1024
"""The longest letter, unless one message is longer: what is sent again after a cut, and dropped at a time."""
SMALL_LETTER_BYTES = 1500
"""It has its place within a page."""
FORGET_PAGES_COMMITS = 1000
FORGET_PAGES_BYTES = 3 << 20
"""Each commit goes through some pages, mostly other ones than the last: what was read through LMDB's map stays in this
process's memory until it is let go."""
_LETTERS_A_LIMIT = 64
ON_ITS_WAY_BYTES = 8 << 20
"""So much at most has been said to a session and waits in kernels' buffers, and is in the mailbox yet."""
HUNG_MS = 5000
"""A process that lives removes what has arrived within about a second: it hangs if the oldest is so old and there is
more than can be on its way."""
ROOM_STEPS = 200
MOST_DROPPED = 1000
"""Letters, in one transaction: publishers do not wait for the removal of a million."""


class Dropped(NamedTuple):
    """What a limit has dropped in one transaction."""

    durable: Durable
    messages: int
    is_first: bool
    """Nothing else was waiting to be told."""


class DurablePost:
    """The messages that this process sends to durable subscribers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.routes = DurableRoutes(store)
        self.sent = 0  # messages put into their mailboxes
        self.dropped = 0  # messages that limits have forced away, here
        self._commits = self._written_bytes = 0  # since pages were forgotten

    def deliver(self, outgoing: list[tuple[Route, list[bytes]]], at_ms: int) -> set[int]:
        """Commit all that is for durable subscribers; to whom. Raises StoreError, and then nothing of it is there."""
        away = self._limited_and_away(outgoing)

        def work(txn: Txn) -> tuple[set[int], list[Dropped]]:
            heavy: set[int] = set()
            to = self._deliver(txn, outgoing, at_ms, heavy)
            dropped = [enforce(txn, away[id], 0, away[id].seen_ms) for id in to & away.keys()]
            for id in heavy - away.keys():
                limited = self.routes.limited.get(id)
                if limited is not None:
                    dropped.append(enforce_for_hung(txn, limited, at_ms))
            return to, [one for one in dropped if one.messages]

        adding_bytes = sum([len(tail) for _, tails in outgoing for tail in tails])
        to, dropped = self._written(work, at_ms, adding_bytes)
        failpoint("durable-committed")
        self._commits += 1
        self._written_bytes += adding_bytes
        if self._commits >= FORGET_PAGES_COMMITS or self._written_bytes >= FORGET_PAGES_BYTES:
            self._commits = self._written_bytes = 0
            self._store.data.forget_pages()
        self.sent += sum(len(tails) for _, tails in outgoing)
        self.note_dropped(dropped)
        return to

    def check_room(self, at_ms: int) -> None:
        """Make room on a full disk before anybody is sent anything. Raises StoreError; StoreHeld if others hold the
        room that was made."""
        data = self._store.data
        lack = data.lack()
        if isinstance(lack, DiskFull):
            data.make_room(lack, partial(self._drop_some, at_ms))

    def _written(self, work: Callable[[Txn], T], at_ms: int, adding_bytes: int) -> T:
        """Write like `write`. If there is no room, the largest mailbox loses its oldest. Raises StoreError."""
        data = self._store.data
        for _ in range(ROOM_STEPS):
            try:
                return data.write(work, adding_bytes=adding_bytes)
            except NO_ROOM as lack:
                if not data.make_room(lack, partial(self._drop_some, at_ms), adding_bytes):
                    raise
        return data.write(work, adding_bytes=adding_bytes)

    def make_room(self, at_ms: int) -> bool:
        """The store is at its quota: the largest mailbox loses some of its oldest. False where mailboxes are not what
        fills it. Raises StoreError."""
        data = self._store.data
        return self._drop_some(at_ms, min(data.quota_bytes, data.used_bytes()) // LARGE_SHARE)

    def _drop_some(self, at_ms: int, least_bytes: int = 1) -> bool:
        data = self._store.data
        dropped = data.write(lambda txn: make_room(txn, least_bytes, at_ms), freeing=True)
        if dropped is None:
            return False
        self.note_dropped([dropped])
        return True

    def note_dropped(self, dropped: Iterable[Dropped]) -> None:
        """Count it, and say it in the log once for each gap."""
        for one in dropped:
            self.dropped += one.messages
            if one.messages:
                told = "More waited for it than it may keep, so that the oldest messages were removed unread"
                self._store.incidents.note("messages_dropped", told, (one.durable.name,), one.messages)
            if one.is_first:
                log.warning(
                    "Durable subscriber %s loses its oldest messages: more wait for it than it may keep.",
                    one.durable.name.decode("utf-8", "backslashreplace"),
                )

    def note_lost(self, messages: int) -> None:
        """Count what has gone with a subscriber that was away for too long."""
        self.dropped += messages

    def _limited_and_away(self, outgoing: list[tuple[Route, list[bytes]]]) -> dict[int, Durable]:
        """Return those of the receivers whose limits are ours to keep."""
        limited = self.routes.limited
        if not limited:
            return {}
        to = {id for route, _ in outgoing if route.address is not None for id, _ in route.address.durable}
        found = [limited[id] for id in to if id in limited]
        return self._store.live.read(lambda txn: {one.id: one for one in found if attachments.get(txn, one.id) is None})

    def _deliver(
        self, txn: Txn, outgoing: list[tuple[Route, list[bytes]]], at_ms: int, heavy: set[int]
    ) -> set[int]:
        stale = routes_version(txn) != self.routes.version
        befores: dict[int, int] = {}
        for route, tails in outgoing:
            address = route.address
            assert address is not None
            to = address.durable
            if stale:
                to = self.routes.receivers_in(txn, address.kind, address.name)
            if to:
                counts = [forms.count(packed) for _, packed in to]
                for piece in _pieces(tails, self._letter_size(to)):
                    message = letters.pack(address.kind.index, address.name, piece)
                    notes = []
                    for (durable, packed), count in zip(to, counts, strict=True):
                        if durable not in befores:
                            befores[durable] = forms.next_before(txn, Mailbox(durable))
                        messages = len(piece) * count
                        notes.append((Mailbox(durable), forms.pack(befores[durable], messages, packed)))
                        befores[durable] += messages
                    mailboxes.deliver(
                        txn, message, notes, at_ms, len(piece), heavy_from_bytes=ON_ITS_WAY_BYTES, heavy=heavy
                    )
        return set(befores)

    def _letter_size(self, to: Iterable[Addressee]) -> int:
        """Small where somebody's limit is: whole letters are dropped. And where the disk is full: few pages that are
        free are side by side."""
        size_bytes = SMALL_LETTER_BYTES if self._store.data.room.is_short else LETTER_BYTES
        for durable, _ in to:
            limited = self.routes.limited.get(durable)
            if limited is not None:
                if limited.max_messages:
                    return 0
                size_bytes = min(size_bytes, limited.max_bytes // _LETTERS_A_LIMIT)
        return size_bytes


def enforce(txn: Txn, durable: Durable, after_sequence: int, since_ms: int) -> Dropped:
    """Drop the oldest behind this sequence until the limits are kept, or many are dropped: the next call goes on."""
    mailbox = Mailbox(durable.id)
    dropped, is_first = 0, False
    for _ in range(MOST_DROPPED):
        if not is_over(txn, durable, after_sequence):
            break
        is_first = is_first or not losses.of(txn, durable.id, 1)
        dropped += lose_oldest(txn, mailbox, after_sequence, since_ms)
    _count(txn, durable, dropped)
    return Dropped(durable, dropped, is_first)


def enforce_for_hung(txn: Txn, durable: Durable, at_ms: int) -> Dropped:
    """Like `enforce`, for an attached one whose process hangs."""
    mailbox = Mailbox(durable.id)
    over_bytes = mailboxes.backlog(txn, mailbox).bytes - durable.max_bytes - ON_ITS_WAY_BYTES
    oldest_ms = mailboxes.oldest_ms(txn, mailbox) or at_ms
    if over_bytes <= 0 or not is_over(txn, durable, 0):
        return Dropped(durable, 0, False)
    if at_ms - oldest_ms < HUNG_MS and not overflows.dropped_to(txn, durable.id):  # which it would have seen by now
        return Dropped(durable, 0, False)
    return _lose_unseen(txn, durable, over_bytes, oldest_ms)


def make_room(txn: Txn, least_bytes: int, at_ms: int) -> Dropped | None:
    """The store is full: drop the oldest of the largest mailbox; None if it holds less than this."""
    id, size_bytes = overflows.largest(txn)
    durable = next((one for one in durables.every(txn) if one.id == id), None)
    if durable is None or size_bytes < least_bytes:
        return None
    return _lose_unseen(txn, durable, size_bytes // 4, mailboxes.oldest_ms(txn, Mailbox(id)) or at_ms)


def _lose_unseen(txn: Txn, durable: Durable, excess_bytes: int, since_ms: int) -> Dropped:
    """Drop the oldest. A session may have been said some of it, which only its process knows."""
    mailbox = Mailbox(durable.id)
    oldest = mailboxes.take(txn, mailbox, excess_bytes, 0, MOST_DROPPED)
    is_first = not losses.of(txn, durable.id, 1)
    dropped = sum([lose_oldest(txn, mailbox, 0, since_ms) for _ in oldest])
    if oldest:
        overflows.note_dropped_to(txn, durable.id, oldest[-1].sequence)
    _count(txn, durable, dropped)
    return Dropped(durable, dropped, is_first)


def _count(txn: Txn, durable: Durable, dropped: int) -> None:
    recorded = durables.get(txn, durable.name) if dropped else None
    if recorded is not None:
        durables.put(txn, replace(recorded, dropped=recorded.dropped + dropped))


def lose_oldest(txn: Txn, mailbox: Mailbox, after_sequence: int, since_ms: int) -> int:
    """Drop the oldest letter behind this sequence; how many messages that were, 0 if there was none."""
    found = mailboxes.take(txn, mailbox, 0, after_sequence)
    if not found:
        return 0
    letter = found[0]
    messages = forms.unpack(letter.note).messages
    losses.add(txn, mailbox.subscriber, letters.unpack(letter.message).name, messages, since_ms)
    mailboxes.remove_one(txn, mailbox, letter.sequence)
    return messages


def is_over(txn: Txn, durable: Durable, after_sequence: int) -> bool:
    """Return whether more waits after this sequence than the subscriber's limits allow."""
    mailbox = Mailbox(durable.id)
    if durable.max_messages and forms.waiting_messages(txn, mailbox, after_sequence) > durable.max_messages:
        return True
    return bool(durable.max_bytes) and mailboxes.backlog(txn, mailbox, after_sequence).bytes > durable.max_bytes


def _pieces(tails: list[bytes], size_bytes: int) -> Iterator[list[bytes]]:
    """Yield the messages, in their order, in letters of about this size."""
    piece: list[bytes] = []
    piece_bytes = 0
    for tail in tails:
        if piece and piece_bytes + len(tail) > size_bytes:
            yield piece
            piece, piece_bytes = [], 0
        piece.append(tail)
        piece_bytes += len(tail)
    if piece:
        yield piece
