"""Slow readers: what piles up for them, the limits on it, and what happens at a limit.

Law 7: publishers never wait for subscribers. Law 8: what is lost is said.
At a limit a subscriber is disconnected (Redis's rule) or, with `slow-subscriber-policy drop-oldest`, loses its oldest
messages and is told so by a `gap` message for each channel. Other sessions are always disconnected.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from rlite_pubsub.commands.settings import Settings
from rlite_pubsub.commands.stats import Stats
from rlite_pubsub.delivery.backlog import Backlog
from rlite_pubsub.delivery.hub import Hub
from rlite_pubsub.delivery.spiller import Spiller
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.server.connection import Connection

log = logging.getLogger("rlite_pubsub")

MAX_DROPPED_BYTES = 1024 * 1024
"""Dropped at a time: each message is looked at, and the other sessions wait meanwhile."""
WARNING_SECONDS = 1.0
"""A store that stays full is mentioned so often, not once a turn."""


class Pressure:
    """All slow readers of one process."""

    def __init__(
        self, settings: Settings, stats: Stats, hub: Hub, spiller: Spiller, clock: Callable[[], float]
    ) -> None:
        self._settings = settings
        self._stats = stats
        self._hub = hub
        self._spiller = spiller
        self._clock = clock
        self._slow: dict[int, Connection] = {}  # by session id
        self._warned_at = 0.0  # of a full store
        settings.on_change("spill-threshold", self._apply_threshold)
        self._apply_threshold(settings["spill-threshold"])

    def begin(self, connection: Connection) -> Backlog:
        """The socket of `connection` did not take all."""
        self._slow[connection.id] = connection
        self._hub.framing = self._hub.framing or {}
        return self._spiller.begin(connection.id, self._clock())

    def end(self, backlog: Backlog) -> None:
        """Its peer has taken all, or is gone."""
        del self._slow[backlog.session_id]
        if not self._slow:
            self._hub.framing = None
        try:
            self._spiller.end(backlog)
        except StoreError as failure:
            log.warning("Can't remove the mailbox of session %d: %s", backlog.session_id, failure)

    def pile_up(self, connection: Connection, backlog: Backlog, parts: list[bytes]) -> None:
        """Put parts behind the backlog."""
        framing = self._hub.framing or {}
        for part in parts:
            self._spiller.append(backlog, part, framing.get(id(part), 0))
        self._check(connection, backlog)

    def pile_up_rest(self, connection: Connection, backlog: Backlog, rest: memoryview) -> None:
        """Put the rest of a part that the socket has begun to take at the front of a new backlog."""
        self._spiller.append(backlog, rest, 0)
        self._check(connection, backlog)

    def refill(self, connection: Connection, backlog: Backlog) -> bool:
        """The head is written: bring what comes next into it. False if the session had to be closed as that failed."""
        if backlog.loss is not None:
            self._tell_loss(connection, backlog)
            return True
        try:
            self._spiller.refill(backlog)
        except StoreError as failure:
            log.warning("Client %s closed: its spilled messages can't be read: %s", connection.address, failure)
            connection.close_now()
            return False
        return True

    def end_turn(self) -> None:
        """Move tails that have grown too long to disk."""
        if not self._slow:
            return
        if self._hub.framing:
            self._hub.framing.clear()
        if self._spiller.due:
            try:
                self._spiller.spill()
            except StoreError as failure:
                self._warn_of_full_store(failure)
                self._relieve()

    def check_all(self) -> None:
        """Soft limits are a matter of time: called by the cron."""
        for connection in list(self._slow.values()):
            if connection.backlog is not None:
                self._check(connection, connection.backlog)

    @property
    def spilled_bytes(self) -> int:
        """All that waits on disk."""
        return self._spiller.disk_bytes

    @property
    def spilled_sessions(self) -> int:
        """How many sessions have something on disk."""
        return sum(1 for backlog in self._spiller.backlogs.values() if backlog.disk_bytes)

    def _apply_threshold(self, threshold_bytes: int) -> None:
        self._spiller.threshold_bytes = threshold_bytes

    def _check(self, connection: Connection, backlog: Backlog) -> None:
        limits = self._settings["client-output-buffer-limit"]
        limit = limits.pubsub if connection.holds_names else limits.normal
        weight = backlog.weight_bytes
        over_hard = limit.hard_bytes and weight >= limit.hard_bytes
        over_soft = limit.soft_bytes and weight >= limit.soft_bytes
        now = self._clock()
        if not over_soft:
            backlog.soft_limit_since = None
        elif backlog.soft_limit_since is None:
            backlog.soft_limit_since = now
            over_soft = False
        elif now - backlog.soft_limit_since <= limit.soft_seconds:
            over_soft = False
        if over_hard or over_soft:
            self._apply_policy(connection, backlog, limit.hard_bytes if over_hard else limit.soft_bytes)

    def _apply_policy(self, connection: Connection, backlog: Backlog, limit_bytes: int) -> None:
        if connection.holds_names and self._settings["slow-subscriber-policy"] == b"drop-oldest":
            self._drop_oldest(connection, backlog, limit_bytes)
            return
        self._disconnect(connection, backlog)

    def _disconnect(self, connection: Connection, backlog: Backlog) -> None:
        self._stats.outbox_limit_disconnections += 1
        log.warning(
            "Client id=%d addr=%s closed for overcoming of output buffer limits: %d bytes wait for it.",
            connection.id,
            connection.address,
            backlog.total_bytes,
        )
        connection.close_now()

    def _drop_oldest(self, connection: Connection, backlog: Backlog, limit_bytes: int) -> None:
        """Drop more than what is beyond the limit, so that not every message has to drop one."""
        if backlog.loss is None:
            log.warning(
                "Client id=%d addr=%s loses its oldest messages: slow-subscriber-policy is drop-oldest.",
                connection.id,
                connection.address,
            )
        target = limit_bytes - min(limit_bytes // 4, MAX_DROPPED_BYTES)
        while backlog.weight_bytes > target and (backlog.disk_bytes or backlog.tail):
            told = backlog.loss.messages if backlog.loss is not None else 0
            if backlog.disk_bytes:
                try:
                    backlog.lose_disk(self._spiller.store.take(backlog.session_id, 1), connection.protocol)
                except StoreError as failure:
                    log.warning("Client %s closed: its spilled messages can't be read: %s", connection.address, failure)
                    connection.close_now()
                    return
            else:
                backlog.lose_tail(connection.protocol)
            if backlog.loss is not None:
                self._stats.dropped_messages += backlog.loss.messages - told
        if backlog.loss is not None and backlog.loss.size_bytes >= max(limit_bytes, self._spiller.threshold_bytes):
            self._disconnect(connection, backlog)

    def _tell_loss(self, connection: Connection, backlog: Backlog) -> None:
        loss = backlog.tell_loss(connection.protocol)
        self._stats.gaps += loss.gaps
        log.warning(
            "Client id=%d addr=%s lost its %d oldest messages, and is told so.",
            connection.id,
            connection.address,
            loss.messages,
        )

    def _relieve(self) -> None:
        """The store takes no more: those whose tails are too long fall under the policy at once."""
        threshold = self._spiller.threshold_bytes
        for connection in list(self._slow.values()):
            backlog = connection.backlog
            if backlog is not None and backlog.tail_bytes > threshold:
                self._apply_policy(connection, backlog, max(backlog.weight_bytes - backlog.tail_bytes, 0))

    def _warn_of_full_store(self, failure: StoreError) -> None:
        now = self._clock()
        if now - self._warned_at >= WARNING_SECONDS:
            self._warned_at = now
            log.warning("Can't spill to the store: %s", failure)
