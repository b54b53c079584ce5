"""The clients of every process of the store: each process reports its own to the others, while somebody asks.

Laws kept here:
 9. nobody waits for the stopped: a caller gets what has been reported so far, and when. A process that does not answer
    is shown as such.
11. a turn asks nobody: while nobody asks, this costs no more than the cron's look at a number in shared memory.

    asking:    write until when -> COMMIT -> move the number -> ring
    telling:   the number has moved, or it is time -> write the report, at most one a second
    closing:   write whom -> COMMIT -> move the number -> ring; its process closes it and removes the record
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.protocol import frames
from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.storage.errors import StoreError, StoreHeld
from rlite_pubsub.storage.names import client_reports, subscribers
from rlite_pubsub.storage.names.client_reports import Asked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.stats.connections import SlowestConnections
    from rlite_pubsub.protocol.replies import Reply
    from rlite_pubsub.pubsub.neighbours import Neighbours
    from rlite_pubsub.pubsub.post import Post
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.names.subscribers import SubscriberRecord
    from rlite_pubsub.storage.store import Store

log = logging.getLogger("rlite_pubsub")

ASKED_MS = 10_000
"""How long a request for reports holds. Observers repeat it."""
REPORT_MS = 1_000
MOST_CLIENTS = 1_000
"""How many clients each process reports, the slowest first."""


class ProcessClients(NamedTuple):
    """The known connections of one process."""

    id: int
    record: SubscriberRecord
    at_ms: int
    """When it reported; 0: it has not answered."""
    total: int
    clients: list[Reply]


class Reporting:
    """Reports this process's clients to the others, and asks them for theirs."""

    def __init__(
        self,
        store: Store,
        neighbours: Neighbours,
        post: Post,
        connections: SlowestConnections,
        sessions: Mapping[int, Client],
        now_ms: Callable[[], int],
    ) -> None:
        self._store = store
        self._neighbours = neighbours
        self._post = post
        self._connections = connections
        self._sessions = sessions
        self._now_ms = now_ms
        self._numbers = store.routes.numbers
        self._seen = self._numbers[3]
        self._asked = Asked()
        self._reported_ms = 0
        self._is_reported = False

    # -- reporting

    def cron(self) -> None:
        """Report if asked to, and close connections if asked to. Raises StoreError."""
        if self._numbers[3] != self._seen:
            self._look()
        if not self._is_reported and not self._asked.until_ms:
            return
        now = self._now_ms()
        if now >= self._asked.until_ms:
            self._cease()
        elif not self._reported_ms <= now < self._reported_ms + REPORT_MS:
            self._report(now)

    def _look(self) -> None:
        seen, own = self._numbers[3], self._neighbours.own
        if own is not None:
            self._asked, kills = self._store.live.read(
                lambda txn: (client_reports.asked(txn), client_reports.to_close(txn, own))
            )
            self._reported_ms = 0
            for session in kills:
                victim = self._sessions.get(session)
                if victim is not None:
                    victim.close_now()
            if kills:
                self._write(lambda txn: client_reports.closed(txn, own, kills))
        self._seen = seen

    def _report(self, now_ms: int) -> None:
        own = self._neighbours.own
        if own is None:
            return
        clients = self._connections.slowest(MOST_CLIENTS) if now_ms < self._asked.details_until_ms else []
        told: Reply = [now_ms, len(self._connections), clients]
        report = encode(told, 3)
        self._write(lambda txn: client_reports.put(txn, own, report))
        self._reported_ms, self._is_reported = now_ms, True

    def _cease(self) -> None:
        self._asked = Asked()
        own = self._neighbours.own
        if self._is_reported and own is not None:
            self._write(lambda txn: client_reports.drop(txn, own), freeing=True)
        self._is_reported = False

    def _write(self, work: Callable[[Txn], object], *, freeing: bool = False) -> None:
        self._store.live.write(work, freeing=freeing)

    # -- asking

    def everybody(self, count: int, *, asks: bool = True) -> list[ProcessClients]:
        """Return each process's report, this one's first; with a count of 0, only how many clients it has. A report
        without the clients that are asked for counts as none: its process has not answered yet. Without `asks`, return
        the latest reports that others have asked for. Raises StoreError if the store cannot be read."""
        own, now = self._neighbours.own, self._now_ms()
        records, reports, asked = self._store.live.read(
            lambda txn: (subscribers.records(txn), client_reports.every(txn), client_reports.asked(txn))
        )
        others = sorted(records.keys() - {own})
        if asks and others and (asked.details_until_ms if count else asked.until_ms) < now + ASKED_MS // 2:
            until_ms = now + ASKED_MS
            self._ask(others, Asked(until_ms, until_ms if count else asked.details_until_ms))
        found = []
        if own in records:
            assert own is not None
            found.append(
                ProcessClients(own, records[own], now, len(self._connections), self._connections.slowest(count))
            )
        return found + [_told(id, records[id], reports.get(id), count) for id in others]

    def _ask(self, others: list[int], asked: Asked) -> None:
        try:
            self._write(lambda txn: client_reports.ask(txn, asked))
        except StoreHeld:
            return  # somebody is writing: the next look asks
        except StoreError as failure:
            log.warning("Can't ask other processes for their clients: %s", failure)
            return
        self._store.routes.announce_question()
        for other in others:
            self._post.ring(other)

    def close(self, process: int, session: int) -> bool:
        """Ask another process to close one of its connections. Returns False if there is no such process. Raises
        StoreError."""

        def work(txn: Txn) -> bool:
            if subscribers.get(txn, process) is None:
                return False
            client_reports.ask_to_close(txn, process, session)
            return True

        if not self._store.live.write(work):
            return False
        self._store.routes.announce_question()
        self._post.ring(process)
        return True

    @property
    def own(self) -> int | None:
        """This process's subscriber id."""
        return self._neighbours.own


def _told(id: int, record: SubscriberRecord, report: bytes | None, count: int) -> ProcessClients:
    if report:
        at_ms, total, clients = frames.value(report)
        if clients or not total or not count:
            return ProcessClients(id, record, at_ms, total, clients)
        # It was asked for their number alone, and has yet to say who they are.
    return ProcessClients(id, record, 0, 0, [])
