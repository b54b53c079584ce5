"""All connections of one server: what they share, and what is counted of them all together."""

from __future__ import annotations

import logging
from time import perf_counter_ns
from typing import Final

import rlite_pubsub.commands.all  # noqa: F401  fills the command table
from rlite_pubsub.engine.engine import Engine
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import TABLE
from rlite_pubsub.protocol.batch import BatchReader
from rlite_pubsub.server.turns import Turns
from rlite_pubsub.storage.agenda import COUNT

log: Final = logging.getLogger("rlite_pubsub")

PUBLISH: Final = TABLE.commands[b"publish"]
XADD: Final = TABLE.commands[b"xadd"]


class Connections:
    """What a connection asks of its server."""

    def __init__(self, engine: Engine, turns: Turns) -> None:
        self.engine = engine
        self.hub = engine.hub
        self.stats = engine.stats
        self.pressure = engine.pressure
        self.turns = turns
        self.batch = BatchReader()
        self.now = engine.clock()  # as of the last cron
        self.obey()
        self.publishes = 0  # of this turn: what went the short way
        self.appends = 0
        self.short_began_ns = 0  # when the first of them began
        self.dispatched_us = 0  # what single commands had taken by then
        engine.hub.agenda.at(COUNT, self._count_short_calls)

    def obey(self) -> None:
        """The limits of a request are as the settings say."""
        self.max_bulk_bytes: int = self.engine.settings["proto-max-bulk-len"]
        self.max_query_bytes: int = self.engine.settings["client-query-buffer-limit"]

    def forget(self, connection: CommandSession) -> None:
        """Forget a closed connection altogether."""
        self.engine.forget(connection)
        self.hub.forget(connection)
        self.turns.soon()

    def drop_for_query_buffer(self, connection: CommandSession) -> None:
        """Drop a client whose input grows without making a request."""
        log.warning("Closing client that reached max query buffer length: %s", connection.address)
        connection.close_now()

    def cron(self, now: float) -> None:
        """Close the connections that have been idle for too long."""
        self.now = now
        timeout = self.engine.settings["timeout"]
        if not timeout:
            return
        for session in list(self.engine.sessions.values()):
            if (
                now - session.last_active > timeout
                and not session.holds_names
                and not session.consumes
                and session.blocked is None
                and session not in self.engine.monitors
                and not session.is_replica
            ):
                log.debug("Closing idle client %s", session.address)
                session.close_now()

    def _count_short_calls(self) -> None:
        """A turn's short calls are timed together: the turn's time, less what its other commands took."""
        publishes, appends = self.publishes, self.appends
        self.publishes = self.appends = 0
        turn_us = (perf_counter_ns() - self.short_began_ns) // 1000
        others_us = self.stats.microseconds - self.dispatched_us
        each_us = max(0, turn_us - others_us) / (publishes + appends)
        if publishes:
            self.hub.published += publishes
            self.stats.count_calls(PUBLISH, publishes, int(each_us * publishes))
        if appends:
            self.stats.count_calls(XADD, appends, int(each_us * appends))
