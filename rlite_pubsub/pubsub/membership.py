"""A process as a subscriber that comes late: it joins when there is something to record, for one that only publishes
has no need of a lock, a doorbell or a mailbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rlite_pubsub.pubsub.neighbours import Neighbours
from rlite_pubsub.pubsub.post import DurableMail, Post
from rlite_pubsub.pubsub.reaping import reap_dead
from rlite_pubsub.storage.agenda import Agenda
from rlite_pubsub.storage.mail import allowances
from rlite_pubsub.storage.store import Store

if TYPE_CHECKING:
    from rlite_pubsub.pubsub.spiller import MailboxSpillStore
    from rlite_pubsub.pubsub.subscriber import Subscriber
    from rlite_pubsub.storage.mail.allowances import Allowance
    from rlite_pubsub.storage.names.subscribers import Kind
    from rlite_pubsub.wakeups.doorbell import Doorbell


class Membership:
    """What a hub needs of the store, and the mailboxes of its spiller; the subscriber may not have joined yet."""

    def __init__(
        self, store: Store, durable: DurableMail, joined: Callable[[], None], kind: Kind = "embedded"
    ) -> None:
        """`joined` is called when it has become one."""
        self._store = store
        self._joined = joined
        self._kind = kind
        self._subscriber: Subscriber | None = None
        self._mailboxes: MailboxSpillStore | None = None
        self._allowance = allowances.DEFAULT
        self.neighbours = Neighbours(store, lambda: self.id, durable.routes)
        self.agenda = Agenda()
        self.post = Post(store, self.neighbours, durable, agenda=self.agenda)

    @property
    def id(self) -> int | None:
        """The id of the mailbox that others put messages into; None before it has joined."""
        return self._subscriber.id if self._subscriber is not None else None

    @property
    def bell(self) -> Doorbell | None:
        """The bell that others ring; None as long as nobody has a reason to."""
        return self._subscriber.bell if self._subscriber is not None else None

    def join(self) -> int:
        """Return its id, after joining if necessary. Raises StoreError."""
        return self._join().id

    def reap(self) -> int:
        """Clean up after the dead; how many. Raises StoreError."""
        return len(reap_dead(self._store))

    def record(self, counts: Mapping[tuple[str, bytes], int]) -> int | None:
        """Subscriber.record, after joining if necessary. Raises StoreError."""
        if self._subscriber is None and not any(counts.values()):
            return None
        return self._join().record(counts)

    def allow(self, allowance: Allowance) -> None:
        """Limits what may wait in its mailbox, whichever process puts it there. Raises StoreError."""
        if allowance != self._allowance:
            if self._subscriber is not None:
                self._subscriber.allow(allowance)
            self._allowance = allowance
            self.post.allow(allowance)

    def push(self, blobs: Sequence[tuple[bytes, int, Sequence[int]]]) -> None:
        """SpillStore.push."""
        self._spilled().push(blobs)

    def take(self, session_id: int, limit_bytes: int) -> list[tuple[bytes, int]]:
        """SpillStore.take."""
        return self._spilled().take(session_id, limit_bytes)

    def drop(self, session_id: int) -> None:
        """SpillStore.drop."""
        self._spilled().drop(session_id)

    def owes(self, session_id: int) -> bool:
        """SpillStore.owes."""
        return self._mailboxes is not None and self._mailboxes.owes(session_id)

    def leave(self) -> None:
        """Remove all of it from the store. Raises StoreError."""
        self.post.close()
        if self._subscriber is not None:
            self._subscriber.leave()

    def _join(self) -> Subscriber:
        if self._subscriber is None:
            from rlite_pubsub.pubsub.subscriber import Subscriber

            self._subscriber = Subscriber.join(self._store, self._kind, self._allowance)
            self._joined()
        return self._subscriber

    def _spilled(self) -> MailboxSpillStore:
        if self._mailboxes is None:
            from rlite_pubsub.pubsub.spiller import MailboxSpillStore

            self._mailboxes = MailboxSpillStore(self._store, self._join().id)
        return self._mailboxes
