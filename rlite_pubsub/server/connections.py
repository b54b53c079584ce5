"""All connections of one server: what they share, and what is counted of them all together."""

from __future__ import annotations

import logging
from time import perf_counter_ns

import rlite_pubsub.commands.all  # noqa: F401  fills the command table
from rlite_pubsub.engine.engine import Engine
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import TABLE, Command
from rlite_pubsub.protocol.batch import BatchReader
from rlite_pubsub.server.turns import Turns
from rlite_pubsub.storage.agenda import COUNT

log = logging.getLogger("rlite_pubsub")

PUBLISH = TABLE.commands[b"publish"]


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
        self.max_bulk_bytes: int = engine.settings["proto-max-bulk-len"]
        self.max_query_bytes: int = engine.settings["client-query-buffer-limit"]
        self.short_calls: dict[Command, int] = {}  # of this turn: what went the short way
        self.short_began = (0, 0)  # when the first of them began (ns), and what single commands had taken by then (us)
        engine.hub.agenda.at(COUNT, self._count_short_calls)

    def forget(self, connection: CommandSession) -> None:
        """A connection is closed: nothing of it may stay."""
        self.engine.forget(connection)
        self.hub.forget(connection)
        self.turns.soon()

    def drop_for_query_buffer(self, connection: CommandSession) -> None:
        """What a client sends makes no request, and grows."""
        log.warning("Closing client that reached max query buffer length: %s", connection.address)
        connection.close_now()

    def cron(self, now: float) -> None:
        """Close who has said nothing for long."""
        self.now = now
        timeout = self.engine.settings["timeout"]
        if not timeout:
            return
        for session in list(self.engine.sessions.values()):
            if (
                now - session.last_active > timeout
                and not session.holds_names
                and session.blocked is None
                and session not in self.engine.monitors
            ):
                log.debug("Closing idle client %s", session.address)
                session.close_now()

    def _count_short_calls(self) -> None:
        """A turn's short calls are timed together: the turn's time, less what its other commands took."""
        began_ns, dispatched_us = self.short_began
        turn_us = (perf_counter_ns() - began_ns) // 1000
        others_us = self.stats.microseconds - dispatched_us
        each_us = max(0, turn_us - others_us) / sum(self.short_calls.values())
        for command, calls in self.short_calls.items():
            if command is PUBLISH:
                self.hub.published += calls
            self.stats.count_calls(command, calls, int(each_us * calls))
        self.short_calls.clear()
