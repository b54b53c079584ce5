"""The connections of this process, the slowest first, as SUBSCRIBER.CLIENTS shows them.

What is slow to find out (a system call, a look into the store) is asked only for the connections that are shown.
"""

from __future__ import annotations

import heapq
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.mail import mailboxes
from rlite_pubsub.storage.mail.mailboxes import Mailbox, MailboxSize

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.protocol.replies import Reply
    from rlite_pubsub.storage.store import Store

FIELDS = (
    ("id, name, addr, user", "Of the connection, as in CLIENT LIST."),
    ("kind", "tcp, unix, http or embedded."),
    ("lib, cmd, db, age_ms, idle_ms", "Its library, last command, database and age."),
    ("blocked", "1 while it waits for a blocking command."),
    ("channels, patterns, shards, topics", "How many names it is subscribed to."),
    ("channel_names, pattern_names", "The first ten of its channels and of its patterns."),
    ("durable", "The durable subscriber it is attached to."),
    ("buffered_bytes", "How much waits for it in memory."),
    ("disk_bytes", "How much waits for it on disk."),
    ("unsent_bytes", "How much the kernel holds for it, and it has not accepted; 0: nothing, or unknown."),
    ("waiting_ms", "How long the oldest of all that has waited; 0: nothing waits."),
    ("input_bytes, output_bytes", "Since it connected, as the kernel counts them; -1: unknown."),
)
"""(names, meaning)"""


MOST_NAMES = 10
"""Shown of each kind."""
MOST_ASKED = 5000
"""Sessions of which the kernel is asked in one look: a system call each."""


class UnsentBytes(NamedTuple):
    """What the kernel holds for one peer."""

    size: int
    taken: int
    """What the peer had acknowledged of all that was sent."""
    since: float
    """It has acknowledged nothing more since then, as far as anybody has looked."""


class SlowestConnections:
    """Lists the connections of one engine, the slowest first."""

    def __init__(
        self,
        sessions: Mapping[int, Client],
        store: Store | None,
        own: Callable[[], int | None],
        clock: Callable[[], float],
    ) -> None:
        """`own`: this process's id among the subscribers of the store."""
        self._sessions = sessions
        self._store = store
        self._own = own
        self._clock = clock
        self._unsent: dict[int, UnsentBytes] = {}  # by session id

    def __len__(self) -> int:
        return len(self._sessions)

    def slowest(self, count: int) -> list[Reply]:
        """Return at most this many, a map each. Raises StoreError."""
        self._look_at_kernel()
        chosen = heapq.nlargest(count, self._sessions.values(), key=self._rank)
        return [self._view(session) for session in chosen]

    def stuck(self, seconds: float) -> list[tuple[Client, UnsentBytes]]:
        """Return the sessions whose peers have accepted nothing for so long, although the kernel has something for
        them."""
        self._look_at_kernel()
        until = self._clock() - seconds
        return [(self._sessions[id], unsent) for id, unsent in self._unsent.items() if unsent.since <= until]

    def _look_at_kernel(self) -> None:
        """See what the kernel holds for those who are sent what they did not ask for: a slow reader's messages may all
        be there."""
        now, before, found = self._clock(), self._unsent, {}
        held = (session for session in self._sessions.values() if session.holds_names or session.follows)
        for session in islice(held, MOST_ASKED):
            size = session.unsent_bytes()
            if size:
                traffic, known = session.traffic(), before.get(session.id)
                taken = traffic.acknowledged if traffic is not None else 0
                is_still = known is not None and known.taken == taken and (traffic is not None or known.size == size)
                since = known.since if known is not None and is_still else now
                found[session.id] = UnsentBytes(size, taken, since)
        self._unsent = found

    def _rank(self, session: Client) -> tuple[int, int, float]:
        """Rank a session by what waits for it, then by whether it subscribes to anything, then by activity."""
        waiting, unsent = session.outbox.waiting_bytes, self._unsent.get(session.id)
        if unsent is not None:
            waiting += unsent.size
        if session.feed is not None:
            waiting += session.feed.unread_bytes
        return waiting, int(session.holds_names), session.last_active

    def _view(self, session: Client) -> Reply:
        now, names, traffic = self._clock(), session.names, session.traffic()
        on_disk, oldest_ms = self._on_disk(session)
        backlog = session.outbox.backlog
        if oldest_ms is None and backlog is not None:
            oldest_ms = int(backlog.since * 1000)
        unsent = self._unsent.get(session.id)
        if unsent is not None:
            since_ms = int(unsent.since * 1000)
            oldest_ms = since_ms if oldest_ms is None else min(oldest_ms, since_ms)
        library = session.lib_name + (b" " + session.lib_version if session.lib_version else b"")
        return {
            b"id": session.id,
            b"name": session.name,
            b"addr": session.address.encode(errors="surrogateescape"),
            b"user": session.user,
            b"kind": session.transport,
            b"lib": library,
            b"cmd": session.last_command.name if session.last_command is not None else b"",
            b"db": session.db,
            b"age_ms": _ms(now - session.connected_at),
            b"idle_ms": _ms(now - session.last_active),
            b"blocked": int(session.blocked is not None),
            b"channels": len(names[CHANNELS.index]),
            b"patterns": len(names[PATTERNS.index]),
            b"shards": len(names[SHARDS.index]),
            b"topics": len(session.follows or ()),
            b"channel_names": list(islice(names[CHANNELS.index], MOST_NAMES)),
            b"pattern_names": list(islice(names[PATTERNS.index], MOST_NAMES)),
            b"durable": session.feed.durable.name if session.feed is not None else b"",
            b"buffered_bytes": session.outbox.memory_bytes,
            b"disk_bytes": on_disk,
            b"unsent_bytes": unsent.size if unsent is not None else 0,
            b"waiting_ms": _ms(now - oldest_ms / 1000) if oldest_ms is not None else 0,
            b"input_bytes": traffic.received if traffic is not None else -1,
            b"output_bytes": traffic.acknowledged if traffic is not None else -1,
        }

    def _on_disk(self, session: Client) -> tuple[int, int | None]:
        """Return how many bytes wait on disk, and when the oldest of them was published, if that is known."""
        store, own, backlog = self._store, self._own(), session.outbox.backlog
        if store is None:
            return 0, None
        size = MailboxSize(0, 0)
        times: list[int | None] = []
        if session.feed is not None:
            mailbox = Mailbox(session.feed.durable.id)
            size, oldest = store.data.read(
                lambda txn: (mailboxes.backlog(txn, mailbox), mailboxes.oldest_ms(txn, mailbox))
            )
            times.append(oldest)
        spilled = backlog.disk_bytes if backlog is not None else 0
        if spilled and own is not None:
            spill = Mailbox(own, session.id)
            try:
                times.append(store.live.read(lambda txn: mailboxes.oldest_ms(txn, spill)))
            except StoreError:
                times.append(None)  # the number of bytes is known all the same
        known = [time for time in times if time is not None and time != mailboxes.UNKNOWN_MS]
        return size.bytes + spilled, min(known, default=None)


def _ms(seconds: float) -> int:
    return max(0, int(seconds * 1000))
