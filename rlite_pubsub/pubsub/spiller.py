"""Moves the tails of slow sessions to their mailboxes on disk, and back.

When one tail has grown past the threshold, all tails are moved, in one transaction: sessions that are slow on the same
channels then stay in step, have the same tail, and share one record in `messages`, however many they are.
Laws kept here: 7 (publishers never wait for subscribers) and 8 (what is lost is said: a tail that cannot be written is
reported to the caller, who applies the policy).

The mailboxes are in live.mdb and hold parts of outboxes, in wire format. The note of each letter is the number of its
bytes that are not payload of messages (u64, big-endian). Its time is that of the spilling, of which there is one for
many messages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from rlite_pubsub.pubsub.backlog import Backlog
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import StoreHeld
from rlite_pubsub.storage.mail import mailboxes
from rlite_pubsub.storage.mail.mailboxes import Letter, Mailbox
from rlite_pubsub.storage.store import Store

REFILL_BYTES = 256 * 1024
"""How much comes back from disk at a time."""
DROPPED_AT_ONCE = 1000
FORGET_PAGES_BYTES = 8 << 20
"""What is read through LMDB's map stays in this process's memory; after this many bytes it is let go."""


class SpillStore(Protocol):
    """Mailboxes of sessions on disk. Every method is one transaction, and raises StoreError."""

    def push(self, blobs: Sequence[tuple[bytes, int, Sequence[int]]]) -> None:
        """Append each (blob, framing bytes, session ids) to those sessions' mailboxes, storing it once."""

    def take(self, session_id: int, limit_bytes: int) -> list[tuple[bytes, int]]:
        """Remove and return the oldest (blob, framing bytes), at least one unless the mailbox is empty."""

    def drop(self, session_id: int) -> None:
        """Remove a mailbox with all that is in it."""

    def owes(self, session_id: int) -> bool:
        """Return whether something was taken that must still be removed."""


class Spiller:
    """All backlogs of one process."""

    def __init__(self, store: SpillStore) -> None:
        self.store = store
        self.threshold_bytes = 256 * 1024
        self.backlogs: dict[int, Backlog] = {}  # by session id
        self.due = False  # a tail has passed the threshold
        self._owed: list[int] = []  # sessions that are gone, and their mailboxes are not

    def spill_beyond(self, threshold_bytes: int) -> None:
        """Set how much of a backlog may be in memory."""
        self.threshold_bytes = threshold_bytes

    @property
    def disk_bytes(self) -> int:
        """All that waits on disk."""
        return sum(backlog.disk_bytes for backlog in self.backlogs.values())

    def begin(self, session_id: int, now: float) -> Backlog:
        """A session has stalled."""
        backlog = self.backlogs[session_id] = Backlog(session_id, now)
        return backlog

    def append(self, backlog: Backlog, part: bytes | memoryview, framing_bytes: int) -> None:
        """Put a part behind the backlog; `spill()` is due once that made its tail too long."""
        backlog.append(part, self.threshold_bytes, framing_bytes)
        if backlog.tail_bytes > self.threshold_bytes:
            self.due = True

    def spill(self) -> None:
        """Move every tail to disk. Raises StoreError, and then nothing has moved."""
        self.due = False
        groups: dict[tuple[int, ...], list[Backlog]] = {}
        for backlog in self.backlogs.values():
            if backlog.tail:
                groups.setdefault(tuple(map(id, backlog.tail)), []).append(backlog)
        self.store.push(
            [
                (b"".join(group[0].tail), group[0].tail_framing_bytes, [backlog.session_id for backlog in group])
                for group in groups.values()
            ]
        )
        for group in groups.values():
            for backlog in group:
                backlog.move_tail()

    def refill(self, backlog: Backlog) -> None:
        """The head is written: bring the next of the backlog into memory."""
        blobs = self.store.take(backlog.session_id, REFILL_BYTES) if backlog.disk_bytes else []
        backlog.refill(blobs)

    def end(self, backlog: Backlog) -> None:
        """The session is live again, or gone: forget its backlog, on disk too. If StoreError, `settle` does it."""
        del self.backlogs[backlog.session_id]
        if backlog.disk_bytes or self.store.owes(backlog.session_id):
            self._owed.append(backlog.session_id)
            self.settle()

    def settle(self) -> None:
        """Remove the mailboxes of those that are gone. Raises StoreError; to be called again then."""
        while self._owed:
            self.store.drop(self._owed[-1])
            self._owed.pop()


class MailboxSpillStore:
    """SpillStore for the sessions of one subscriber. Every method raises StoreError."""

    def __init__(self, store: Store, subscriber_id: int, clock: Callable[[], float] = time.time) -> None:
        self._live = store.live
        self._clock = clock
        self._subscriber_id = subscriber_id
        self._taken_bytes = 0  # since the pages were let go
        self._taken: dict[int, int] = {}  # by session id: up to this sequence it was taken, and could not be removed

    def push(self, blobs: Sequence[tuple[bytes, int, Sequence[int]]]) -> None:
        """Append each (blob, framing bytes, session ids) to those sessions' mailboxes, storing it once."""

        at_ms = int(self._clock() * 1000)

        def work(txn: Txn) -> None:
            for blob, framing, session_ids in blobs:
                note = framing.to_bytes(8, "big")
                mailboxes.deliver(txn, blob, [(self._mailbox(session_id), note) for session_id in session_ids], at_ms)

        self._live.write(work)

    def take(self, session_id: int, limit_bytes: int) -> list[tuple[bytes, int]]:
        """Remove and return the oldest (blob, framing bytes), at least one unless the mailbox is empty."""
        mailbox = self._mailbox(session_id)
        before = self._taken.get(session_id, 0)

        def work(txn: Txn) -> list[Letter]:
            letters = mailboxes.take(txn, mailbox, limit_bytes, before)
            if letters or before:
                mailboxes.remove(txn, mailbox, letters[-1].sequence if letters else before)
            return letters

        if self._taken_bytes >= FORGET_PAGES_BYTES:
            self._taken_bytes = 0
            self._live.forget_pages()
        try:
            letters = self._live.write(work, freeing=True)
            self._taken.pop(session_id, None)
        except StoreHeld:  # the reader need not wait for that
            letters = self._live.read(lambda txn: mailboxes.take(txn, mailbox, limit_bytes, before))
            if letters:
                self._taken[session_id] = letters[-1].sequence
        blobs = [(letter.message, int.from_bytes(letter.note, "big")) for letter in letters]
        self._taken_bytes += sum(len(blob) for blob, _ in blobs)
        return blobs

    def drop(self, session_id: int) -> None:
        """Remove a mailbox with all that is in it, a slice in each transaction."""
        mailbox = self._mailbox(session_id)
        while self._live.write(lambda txn: mailboxes.drop(txn, mailbox, DROPPED_AT_ONCE), freeing=True):
            pass
        self._taken.pop(session_id, None)

    def owes(self, session_id: int) -> bool:
        """Return whether something was taken that must still be removed."""
        return session_id in self._taken

    def _mailbox(self, session_id: int) -> Mailbox:
        return Mailbox(self._subscriber_id, session_id)
