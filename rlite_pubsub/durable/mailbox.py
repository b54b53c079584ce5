"""Messages to durable subscribers: into their mailboxes in data.mdb, and out again where a limit forces them away.

Law 1. A turn's messages are one transaction; whoever must be told is rung after it (by post.py).
Law 8. What a limit forces away is counted by channel, and told when the subscriber reads next.

The limits of one that is away are kept by its publishers; of one that is attached, by the process to which it is
attached, which knows what is on its way already.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from rlite_pubsub.durable.routes import Addressee, DurableRoutes
from rlite_pubsub.pubsub.route import Route
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.mail import forms, letters, losses, mailboxes
from rlite_pubsub.storage.mail.mailboxes import Mailbox
from rlite_pubsub.storage.names import attachments, durables
from rlite_pubsub.storage.names.durables import Durable
from rlite_pubsub.storage.names.version import routes_version
from rlite_pubsub.storage.store import Store

log = logging.getLogger("rlite_pubsub")

LETTER_BYTES = 64 * 1024
"""The longest letter, unless one message is longer: what is sent again after a cut, and dropped at a time."""
FORGET_PAGES_COMMITS = 1000
"""Each commit goes through some pages, mostly other ones than the last: what was read through LMDB's map stays in this
process's memory until it is let go."""
_LETTERS_A_LIMIT = 64


class Dropped(NamedTuple):
    """What a limit has forced away in one transaction."""

    durable: Durable
    messages: int
    is_first: bool
    """Nothing else was waiting to be told."""


class DurablePost:
    """What this process sends to durable subscribers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.routes = DurableRoutes(store)
        self.sent = 0  # messages put into their mailboxes
        self.dropped = 0  # messages that limits have forced away, here
        self._commits = 0

    def deliver(self, outgoing: list[tuple[Route, list[bytes]]], at_ms: int) -> set[int]:
        """Commit all that is for durable subscribers; to whom. Raises StoreError, and then nothing of it is there."""
        away = self._limited_and_away()

        def work(txn: Txn) -> tuple[set[int], list[Dropped]]:
            to = self._deliver(txn, outgoing, at_ms)
            dropped = [enforce(txn, away[id], 0, away[id].seen_ms) for id in to & away.keys()]
            return to, [one for one in dropped if one.messages]

        to, dropped = self._store.data.write(work)
        failpoint("durable-committed")
        self._commits += 1
        if self._commits % FORGET_PAGES_COMMITS == 0:
            self._store.data.forget_pages()
        self.sent += sum(len(tails) for _, tails in outgoing)
        self.note_dropped(dropped)
        return to

    def note_dropped(self, dropped: Iterable[Dropped]) -> None:
        """Count it, and say it in the log once for each gap."""
        for one in dropped:
            self.dropped += one.messages
            if one.is_first:
                log.warning(
                    "Durable subscriber %s loses its oldest messages: more wait for it than it may keep.",
                    one.durable.name.decode("utf-8", "backslashreplace"),
                )

    def note_lost(self, messages: int) -> None:
        """Count what has gone with a subscriber that was away for too long."""
        self.dropped += messages

    def _limited_and_away(self) -> dict[int, Durable]:
        limited = self.routes.limited
        if not limited:
            return {}
        attached = self._store.live.read(attachments.every)
        return {id: durable for id, durable in limited.items() if id not in attached}

    def _deliver(self, txn: Txn, outgoing: list[tuple[Route, list[bytes]]], at_ms: int) -> set[int]:
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
                    mailboxes.deliver(txn, message, notes, at_ms, len(piece))
        return set(befores)

    def _letter_size(self, to: Iterable[Addressee]) -> int:
        """Small where somebody's limit is: whole letters are dropped."""
        size_bytes = LETTER_BYTES
        for durable, _ in to:
            limited = self.routes.limited.get(durable)
            if limited is not None:
                if limited.max_messages:
                    return 0
                size_bytes = min(size_bytes, limited.max_bytes // _LETTERS_A_LIMIT)
        return size_bytes


def enforce(txn: Txn, durable: Durable, after_sequence: int, since_ms: int) -> Dropped:
    """Drop the oldest behind this sequence until the limits are kept."""
    mailbox = Mailbox(durable.id)
    dropped, is_first = 0, False
    while is_over(txn, durable, after_sequence):
        is_first = is_first or not losses.of(txn, durable.id, 1)
        dropped += lose_oldest(txn, mailbox, after_sequence, since_ms)
    if dropped:
        recorded = durables.get(txn, durable.name)
        if recorded is not None:
            durables.put(txn, replace(recorded, dropped=recorded.dropped + dropped))
    return Dropped(durable, dropped, is_first)


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
    """Whether more waits behind this sequence than its limits allow."""
    mailbox = Mailbox(durable.id)
    if durable.max_messages and forms.waiting_messages(txn, mailbox, after_sequence) > durable.max_messages:
        return True
    return bool(durable.max_bytes) and mailboxes.backlog(txn, mailbox, after_sequence).bytes > durable.max_bytes


def _pieces(tails: list[bytes], size_bytes: int) -> Iterator[list[bytes]]:
    """The messages, in their order, in letters of about this size."""
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
