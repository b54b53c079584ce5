"""What all sessions of one server (or of one embedded store) share."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable
from typing import Any

from rlite_pubsub.engine.access.acl_log import AclLog
from rlite_pubsub.engine.access.users import Users
from rlite_pubsub.engine.blocking import Waiting
from rlite_pubsub.engine.cold_wait import ColdWaits
from rlite_pubsub.engine.housekeeping import Housekeeping
from rlite_pubsub.engine.keeping import Keeping
from rlite_pubsub.engine.pause import Pause
from rlite_pubsub.engine.readership import Readership
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.engine.stats.latency import LatencyMonitor
from rlite_pubsub.engine.stats.monitor import feed
from rlite_pubsub.engine.stats.sampler import Sampler
from rlite_pubsub.engine.stats.slowlog import SlowLog
from rlite_pubsub.engine.stats.stats import Stats
from rlite_pubsub.engine.table import Command
from rlite_pubsub.engine.tracking.invalidation import TrackedKeys
from rlite_pubsub.engine.tracking.notifications import Notifications
from rlite_pubsub.engine.tracking.watching import Watching
from rlite_pubsub.engine.turn import TurnEnd
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic.followers import Followers
from rlite_pubsub.keyspace.topic.nodes import DEFAULT_LIMITS, NodeLimits
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.storage.agenda import OF_KEYS
from rlite_pubsub.storage.store import Store

log = logging.getLogger("rlite_pubsub")

REDIS_VERSION = "7.0.15"
"""The reference: what this server answers is what that version answers."""


class Engine:
    """Settings, counters, logs and sessions, with no socket in sight."""

    def __init__(self, settings: Settings, hub: Hub, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self.hub = hub
        self.clock = clock
        self.started_at = clock()
        self.run_id = secrets.token_hex(20)
        self.pid = os.getpid()
        self.sessions: dict[int, CommandSession] = {}  # by id, oldest first
        self.monitors: dict[CommandSession, None] = {}
        self.stats = Stats()
        self.stats.track_latency = settings["latency-tracking"]
        settings.on_change("latency-tracking", self._track_latency)
        self.sampler = Sampler(self.stats)
        self.slowlog = SlowLog(settings, clock)
        self.latency = LatencyMonitor(settings, clock)
        self.acl_log = AclLog(settings, clock)
        self.users = Users(settings, self.sessions)
        self.notifications = Notifications(settings, hub)
        self.node_limits = _node_limits(settings)  # how much a node of Redis's would take
        for name in ("stream-node-max-entries", "stream-node-max-bytes"):
            settings.on_change(name, self._limit_nodes)
        self.watching = Watching()
        self.tracked = TrackedKeys(self)
        self.housekeeping = Housekeeping(self)
        self.executing: CommandSession | None = None  # whose command is under way
        self.pause = Pause(self)
        self.waiting = Waiting(self)
        self.cold_waits = ColdWaits(self)
        self.followers = Followers(self.waiting.follow, self.waiting.unfollow, self._wake_soon, hub.agenda)
        hub.followers = self.followers
        self.readership = Readership(self)
        self.shutdown: Callable[[], None] | None = None  # set by whoever can stop the process
        self.call_later: Callable[[float, Callable[[], None]], object] = _no_timer  # set by whoever has an event loop
        self.config_file: str | None = None
        self.pressure: Any = None  # the server's slow readers, for INFO
        self.store: Store | None = None
        self.keyspace: Keyspace | None = None  # see `hold`
        self.keeping: Keeping | None = None  # likewise
        self.turn = TurnEnd(hub.agenda, self.waiting, self.tracked, self.followers)
        self.unacknowledged = self.turn.unacknowledged  # replies of this turn that wait for its commit
        self.plain = self.quiet = False  # see `look_out`
        self._last_session_id = 0

    def hold(self, keyspace: Keyspace) -> None:
        """These are the keys that commands work on. Called once, by whoever has the store."""
        self.keyspace = keyspace
        keyspace.awaited = self.waiting.keys
        self.turn.begin_with(keyspace)
        self.housekeeping.tend(keyspace)
        self.keeping = Keeping(self, keyspace)
        self.hub.retain = self.keeping.retain
        self.look_out()

    def look_out(self) -> None:
        """See whether commands may go the plain way: nobody watches, holds back or measures single commands (it is
        `quiet`), and nobody is told of keys. To be called when any of that may have changed."""
        self.quiet = not self.monitors and self.pause.scope is None and self.slowlog.coarse
        self.plain = (
            self.quiet
            and self.keyspace is not None
            and self.tracked.is_empty
            and not self.tracked.pending
            and not self.notifications.classes
        )
        if self.keyspace is not None:
            self.keyspace.is_heard = bool(self.watching.watchers) or not self.tracked.is_empty

    def _wake_soon(self) -> None:
        self.call_later(0.0, _nothing)

    def forget(self, session: CommandSession) -> None:
        """The session is closed: nothing of it may stay."""
        self.sessions.pop(session.id, None)
        self.monitors.pop(session, None)
        self.pause.forget(session)
        self.waiting.forget(session)
        self.cold_waits.forget(session)
        self.readership.forget(session)
        self.watching.unwatch(session)
        self.tracked.forget(session)
        self.look_out()

    def cron(self, now: float) -> None:
        """What must happen ten times a second."""
        self.pause.expire(now)
        self.waiting.cron(now)
        self.sampler.sample(now)
        self.look_out()
        if self.store is not None and self.store.is_lost:
            return  # that has been said, and there is nothing to keep
        self.housekeeping.step(now)
        if self.keeping is not None:
            self.keeping.cron()
        self.readership.cron(now)
        if self.keyspace is not None and self.keyspace.cold is not None:
            self.keyspace.cold.cron()
            self.followers.cron()

    def commit(self) -> None:
        """Serve whoever waits for what this turn did to keys, and commit all of it."""
        self.hub.agenda.end(OF_KEYS)

    def _limit_nodes(self, _: object) -> None:
        self.node_limits = _node_limits(self.settings)

    def _track_latency(self, wanted: bool) -> None:
        self.stats.track_latency = wanted

    def next_session_id(self) -> int:
        """Ids are never used twice."""
        self._last_session_id += 1
        return self._last_session_id

    def feed_monitors(self, session: CommandSession, args: list[bytes]) -> None:
        """Show a request to every MONITOR."""
        if self.monitors:
            feed(self.monitors, session, args, self.clock())

    def check_protected(self, session: CommandSession, command: Command) -> None:
        """DEBUG and MODULE are allowed as their setting says: yes, no, or to local connections."""
        word = command.name.partition(b"|")[0].decode()
        option = f"enable-{word}-command"
        allowed = self.settings[option]
        if allowed == b"yes" or (allowed == b"local" and session.is_local):
            return
        raise CommandError(
            f"ERR {word.upper()} command not allowed. If the {option} option is set to \"local\", you can run it from "
            "a local connection, otherwise you need to set this option in the configuration file, and then restart the "
            "server.".encode()
        )


def _nothing() -> None:
    """Only the turn that follows is wanted."""


def _no_timer(seconds: float, callback: Callable[[], None]) -> object:
    """Without an event loop only `cron` ends what is over."""
    return None


def _node_limits(settings: Settings) -> NodeLimits:
    """How much a node of Redis's would take."""
    entries, size_bytes = settings["stream-node-max-entries"], settings["stream-node-max-bytes"]
    if entries == DEFAULT_LIMITS[0] and size_bytes == DEFAULT_LIMITS[1]:
        return DEFAULT_LIMITS
    return NodeLimits((entries, size_bytes))
