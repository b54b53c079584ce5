"""The mailboxes of sessions in live.mdb: they hold parts of outboxes, in wire format.

The note of each letter is the number of its bytes that are not payload of messages (u64, big-endian). Its time is that
of the spilling, of which there is one for many messages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.mail import mailboxes
from rlite_pubsub.storage.mail.mailboxes import Mailbox
from rlite_pubsub.storage.store import Store

DROPPED_AT_ONCE = 1000
FORGET_PAGES_BYTES = 8 << 20
"""What is read through LMDB's map stays in this process's memory; after so many bytes it is let go."""


class MailboxSpillStore:
    """SpillStore for the sessions of one subscriber. Every method raises StoreError."""

    def __init__(self, store: Store, subscriber_id: int, clock: Callable[[], float] = time.time) -> None:
        self._live = store.live
        self._clock = clock
        self._subscriber_id = subscriber_id
        self._taken_bytes = 0  # since the pages were let go

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

        def work(txn: Txn) -> list[tuple[bytes, int]]:
            letters = mailboxes.take(txn, mailbox, limit_bytes)
            if letters:
                mailboxes.remove(txn, mailbox, letters[-1].sequence)
            return [(letter.message, int.from_bytes(letter.note, "big")) for letter in letters]

        if self._taken_bytes >= FORGET_PAGES_BYTES:
            self._taken_bytes = 0
            self._live.forget_pages()
        blobs = self._live.write(work, freeing=True)
        self._taken_bytes += sum(len(blob) for blob, _ in blobs)
        return blobs

    def drop(self, session_id: int) -> None:
        """Remove a mailbox with all that is in it, a slice in each transaction."""
        mailbox = self._mailbox(session_id)
        while self._live.write(lambda txn: mailboxes.drop(txn, mailbox, DROPPED_AT_ONCE), freeing=True):
            pass

    def _mailbox(self, session_id: int) -> Mailbox:
        return Mailbox(self._subscriber_id, session_id)
