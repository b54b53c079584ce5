"""The engine: what all sessions of one server, or of a store open in a program, share."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from rlite_pubsub.durable.attaching import Durables
from rlite_pubsub.durable.feed import Feed
from rlite_pubsub.engine.access.acl_log import AclLog
from rlite_pubsub.engine.access.users import Users
from rlite_pubsub.engine.backups import Backups
from rlite_pubsub.engine.commit import KeyCommit
from rlite_pubsub.engine.counters import Stats
from rlite_pubsub.engine.delivery import Delivery
from rlite_pubsub.engine.eviction.memory_limit import MemoryLimit
from rlite_pubsub.engine.expiry import Expiry
from rlite_pubsub.engine.field_expiry import FieldExpiry
from rlite_pubsub.engine.functions.libraries import Libraries
from rlite_pubsub.engine.housekeeping import Chores, Housekeeping
from rlite_pubsub.engine.links import Links
from rlite_pubsub.engine.refusal import Acknowledged
from rlite_pubsub.engine.replicas.outgoing import Outgoing
from rlite_pubsub.engine.replicas.replicas import Replicas, SyncBeside
from rlite_pubsub.engine.replication import Replication
from rlite_pubsub.engine.scripts.cache import Scripts
from rlite_pubsub.engine.scripts.declared import declared_flags
from rlite_pubsub.engine.settings import followed
from rlite_pubsub.engine.settings.commons import Commons
from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.engine.shards.arrivals import Arrivals
from rlite_pubsub.engine.shards.chains import Chains
from rlite_pubsub.engine.shards.segment_pieces import SegmentPieces
from rlite_pubsub.engine.shards.sharding import Sharding
from rlite_pubsub.engine.shards.slots import slot_of
from rlite_pubsub.engine.stats.channel_rates import ChannelRates
from rlite_pubsub.engine.stats.connections import SlowestConnections
from rlite_pubsub.engine.stats.latency import LatencyMonitor
from rlite_pubsub.engine.stats.reporting import Reporting
from rlite_pubsub.engine.stats.sampler import Sampler
from rlite_pubsub.engine.stats.slowlog import SlowLog
from rlite_pubsub.engine.stats.warnings import Warnings
from rlite_pubsub.engine.table import Command
from rlite_pubsub.engine.topics.keeping import Keeping
from rlite_pubsub.engine.topics.readership import Readership
from rlite_pubsub.engine.tracking.announcing import Announcing
from rlite_pubsub.engine.tracking.hearing import Hearing
from rlite_pubsub.engine.tracking.invalidation import TrackedKeys
from rlite_pubsub.engine.tracking.notifications import Notifications
from rlite_pubsub.engine.tracking.watching import Watching
from rlite_pubsub.engine.turn import end_turn
from rlite_pubsub.engine.waits.alarm import CallLater
from rlite_pubsub.engine.waits.blocking import Waiting
from rlite_pubsub.engine.waits.cold_wait import ColdWaits
from rlite_pubsub.engine.waits.consuming import Consuming
from rlite_pubsub.engine.waits.idle_claims import IdleClaims
from rlite_pubsub.engine.waits.pause import Pause
from rlite_pubsub.engine.waits.replica_wait import ReplicaWaits
from rlite_pubsub.engine.waits.waiter import CallFromThread
from rlite_pubsub.engine.waits.writer_wait import WriterWaits
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic.followers import Followers, Key
from rlite_pubsub.keyspace.topic.rules import Rules
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.pubsub.pressure import Pressure
from rlite_pubsub.pubsub.session import Session
from rlite_pubsub.pubsub.spiller import Spiller
from rlite_pubsub.storage.agenda import OF_KEYS
from rlite_pubsub.storage.checkpoints.syncing import Syncing
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.incidents import Incidents
from rlite_pubsub.storage.names.durables import Durable

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession

log: Final = logging.getLogger("rlite_pubsub")

REDIS_VERSION: Final = "7.0.15"
"""The reference: what this server answers is what that version answers."""


@dataclass(frozen=True)
class Surroundings:
    """What an engine asks of the process around it. By default there is nobody to ask."""

    call_later: CallLater = lambda seconds, callback: None
    """Schedules work for later, in a turn of its own. Without it only `cron` ends what has expired."""
    call_soon: Callable[[], None] = lambda: None
    """Starts another turn."""
    serve_beside: Callable[[object], None] | None = None
    """Serves, in the middle of a turn, all other sessions that have sent something. None: not available."""
    call_from_thread: CallFromThread | None = None
    """Runs something in a turn of the engine's thread, when another thread asks. None: not available."""
    send_file: Callable[[int, bool], None] | None = None
    """Sends an RDB file over a descriptor, and closes it; True: functions only."""
    sync_beside: SyncBeside | None = None
    """Sends a replica the file that it begins with. None: no replicas are possible."""
    shut_down: Callable[[], None] | None = None
    """Ends the process. None: that cannot be asked for."""
    syncing: Syncing | None = None
    """Brings the store to the disk, where the process does so by itself, too."""
    feed: Callable[[Durable, Session], Feed] = Feed
    """Gives a session its durable subscriber's mailbox."""
    config_file: str | None = None
    first_session_id: int = 0
    session_id_step: int = 1
    """Other workers of this server have the ids between."""
    stopwatch: Callable[[], float] = time.monotonic
    """Times waits: by the wall clock, a wait would last longer whenever that is set back."""


ALONE: Final = Surroundings()


class Engine:
    """Settings, counters, logs, keys and sessions, without a socket. All parts of an engine are put together here."""

    def __init__(
        self,
        settings: Settings,
        hub: Hub,
        rules: Rules,
        data: Environment,
        delivery: Delivery | None = None,
        surroundings: Surroundings = ALONE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`data` has the keys, and `rules` say how they are kept. Without `delivery` there is no store beside them.
        Raises StoreError."""
        call_later = surroundings.call_later
        self.settings = settings
        self.hub = hub
        self.clock = clock
        self.stopwatch = stopwatch = surroundings.stopwatch
        self.call_later = call_later
        self.call_from_thread = surroundings.call_from_thread
        self.shutdown = surroundings.shut_down
        self.send_file = surroundings.send_file
        self.serve_beside = surroundings.serve_beside
        self.config_file = surroundings.config_file
        self.payload_sums_count = True  # DEBUG SET-SKIP-CHECKSUM-VALIDATION
        self.store = delivery.store if delivery is not None else None
        self.syncing = surroundings.syncing or Syncing(data)
        self.backups = Backups(self.store, settings, clock, call_later)
        self.links = Links(self.store, hub, clock)
        self.started_at = clock()
        self.redis_version = REDIS_VERSION
        self.run_id = secrets.token_hex(20)
        self.pid = os.getpid()
        self._last_session_id = surroundings.first_session_id
        self._session_id_step = surroundings.session_id_step
        self.plain = self.quiet = False  # see `look_out`
        self.scripts = Scripts()
        # who is there, and what is counted of them
        self.sessions: dict[int, CommandSession] = {}  # by id, oldest first
        self.master_session: CommandSession | None = None
        """Who says what the master says, while the link to it stands; rules for clients do not concern it."""
        self.monitors: dict[CommandSession, None] = {}
        self.users = Users(settings, self.sessions)
        self.acl_log = AclLog(settings, clock)
        self.stats = Stats(settings["latency-tracking"])
        settings.on_change("latency-tracking", self.stats.track)
        self.sampler = Sampler(self.stats)
        self.slowlog = SlowLog(settings, clock)
        self.latency = LatencyMonitor(settings, clock)
        # messages
        self.notifications = Notifications(settings, hub)
        self.durables: Durables | None = None
        membership = delivery.membership if delivery is not None else None
        spiller = Spiller(membership or _Nowhere())
        limits = followed.outbox_limits(settings)
        self.pressure = Pressure(limits, self.stats.outboxes, hub, spiller, clock)  # of slow readers
        followed.limit_outboxes(settings, self.pressure, membership)
        if self.store is not None:
            self.pressure.note_by(self.store.incidents.note)
        if delivery is not None:
            self.durables = _durables(delivery, surroundings, clock)
            followed.keep_durables(settings, self.durables.lifetimes)
            hub.attach_by(self.durables)
        # keys: who waits for them and follows them, who hears of changes, what becomes of them with time
        self._frozen_ms = 0  # while a script or an EXEC runs
        self._freezes = 0  # one in another
        self.keyspace = keyspace = Keyspace(data, self._now_ms, hub.agenda, rules)
        settings.follow(followed.OF_NODES, self._limit_nodes)
        followed.pack_collections(settings, keyspace)
        self.unacknowledged: Acknowledged = []  # replies of this turn that wait for its commit
        environments = [data] if delivery is None else [delivery.store.data, delivery.store.live]
        self.outgoing = Outgoing(keyspace, self.look_out, hub.keep_letters)
        self.libraries = Libraries(data, self.outgoing.write_beside)
        self.writer_waits = WriterWaits(
            environments, hub, keyspace, call_later, lambda: float(settings["writer-patience"])
        )
        self.waiting = Waiting(
            keyspace,
            hub,
            self.stats,
            self.slowlog,
            self.unacknowledged,
            self.writer_waits,
            self.outgoing,
            self.notifications,
            stopwatch,
            call_later,
        )
        declared = partial(declared_flags, self.scripts, self.libraries)
        self.pause = Pause(keyspace, self.monitors, stopwatch, call_later, self.look_out, declared)
        self.cold_waits = ColdWaits(call_later)
        self.idle_claims = IdleClaims(keyspace, stopwatch, call_later)
        self.followers = Followers(self.waiting.follow, self.waiting.unfollow, self._wake_soon, hub.agenda)
        self.waiting.tell_followed(self.followers.note)
        hub.follow_by(self.followers)
        if self.store is not None:
            keyspace.news.call_at_dead_letters(partial(_note_dead_letters, self.store.incidents))
            self.followers.tell_losses(partial(_note_lost_entries, self.store.incidents))
        self.consuming = Consuming(
            keyspace, self.waiting, hub.agenda, lambda: self.key_commit.failure is not None, self._wake_soon, stopwatch
        )
        self.watching = Watching()
        self.announcing: Announcing | None = None
        if delivery is not None and hub.neighbours is not None:
            self.announcing = Announcing(hub.neighbours, delivery.post, self.look_out)
        self.tracked = TrackedKeys(
            settings, keyspace, self.sessions, self.notifications, hub.agenda, self.announcing
        )
        self.waiting.tell_trackers(self.tracked)
        self.hearing: Hearing | None = None
        if delivery is not None and hub.neighbours is not None:
            self.hearing = Hearing(delivery.store, keyspace, hub, hub.neighbours, self.tracked)
        self.readership = Readership(keyspace, self.notifications, self.sampler, self.waiting.is_watched)
        self.field_expiry = FieldExpiry(keyspace, self.notifications, self.stats)
        self.expiry = Expiry(keyspace, self.field_expiry)
        self.replication = Replication(settings, keyspace, self.waiting, self.look_out)
        self.sharding = Sharding(data, self.look_out)
        self.arrivals = Arrivals(keyspace, self.sharding)
        keyspace.stored.go_by(lambda name: self.sharding.has(slot_of(name)))
        self.chains = Chains(keyspace, self.sharding, SegmentPieces(call_later, self.call_from_thread))
        self.memory_limit = MemoryLimit(
            settings, keyspace, self.stats, self.notifications, self.expiry, clock, self.look_out
        )
        self.chores = Chores(self._undo)
        self.housekeeping = Housekeeping(
            keyspace,
            self.stats,
            self.sampler,
            self.notifications,
            self.watching,
            self.tracked,
            self.expiry,
            self.memory_limit,
            self.commit,
            self.chores,
            self.latency,
            stopwatch,
            call_later,
            self.announcing,
            _mail_dropper(delivery, self._now_ms),
            self.sharding,
        )
        self.key_commit = KeyCommit(
            hub.agenda,
            keyspace,
            self.waiting,
            self.tracked,
            self.followers,
            self.unacknowledged,
            self.outgoing,
            self.announcing,
        )
        self.replicas = Replicas(
            settings,
            data,
            delivery.store.live if delivery is not None else None,
            self.outgoing,
            hub.agenda,
            self.stats,
            delivery.membership.join if delivery is not None else _nobody,
            delivery.post.ring if delivery is not None else _rings_nobody,
            delivery.store.routes.nudge if delivery is not None else _nothing,
            surroundings.sync_beside,
            self._now_ms,
            stopwatch,
            call_later,
        )
        self.key_commit.tell_replicas_by(self.replicas.tell)
        settings.on_change("min-replicas-to-write", lambda _: self.look_out())
        hub.call_on_bell(self.replicas.look)
        self.replica_waits = ReplicaWaits(self.replicas, stopwatch, call_later)
        self.commons: Commons | None = None
        if delivery is not None:
            self.commons = Commons(
                settings,
                self.users,
                self.libraries,
                delivery.store,
                delivery.post,
                self._look_at_others,
            )
        self.reporting: Reporting | None = None
        self.warnings: Warnings | None = None
        if delivery is not None and hub.neighbours is not None:
            neighbours = hub.neighbours
            connections = SlowestConnections(self.sessions, delivery.store, lambda: neighbours.own, clock)
            self.reporting = Reporting(
                delivery.store, neighbours, delivery.post, connections, self.sessions, self._now_ms
            )
            self.warnings = Warnings(
                settings,
                delivery.store,
                keyspace,
                self.writer_waits,
                self.sessions,
                lambda: self.key_commit.failure,
                self._now_ms,
                connections.stuck,
                stopwatch,
            )
        self.channel_rates = ChannelRates(hub, stopwatch, call_later)
        self.keeping = Keeping(settings, keyspace, rules, hub, self.notifications, stopwatch, call_later)
        data.room.call_when_full(self.look_out)
        self.look_out()

    def look_out(self) -> None:
        """Decide whether commands may go the plain way: nobody watches, delays or measures single commands (it is
        `quiet`), no keyspace events are wanted, there is room, and no `maxmemory`. Call it when any of that may have
        changed."""
        is_full = self.keyspace.environment.room.full is not None
        self.quiet = not self.monitors and self.pause.scope is None and self.slowlog.coarse
        if self.scripts.refusal is not None:
            self.quiet = False  # all but a few commands are refused
        is_sharded = self.sharding.directory is not None
        self.settings.adopt("cluster-enabled", is_sharded)
        if is_sharded:
            self.quiet = False  # whose keys belong to others
        if self.outgoing.is_on:
            self.quiet = False  # each command is shown to them
        self.plain = (
            self.quiet
            and not is_full
            and self.replication.master is None
            and not self.settings["min-replicas-to-write"]
            and not self.memory_limit.is_watching
            and self.tracked.is_empty
            and not self.tracked.pending
            and not self.notifications.classes
        )
        is_elsewhere = self.announcing is not None and bool(self.announcing.trackers)
        self.keyspace.news.heed(
            is_elsewhere
            or bool(self.watching.watchers)
            or not self.tracked.is_empty
            or bool(self.sharding.moving)
        )

    def _look_at_others(self) -> None:
        """Take in what other processes may have changed in the commons, and whether they have begun to track keys."""
        if self.announcing is not None:
            self.announcing.refresh(in_turn=self.keyspace.turn.writes)
        self.replication.look()
        self.outgoing.look_around()
        self.sharding.look()
        self.look_out()

    def _wake_soon(self) -> None:
        self.call_later(0.0, _nothing)

    @property
    def clients(self) -> list[CommandSession]:
        """All sessions, the oldest first, and `master_session` with them."""
        sessions = list(self.sessions.values())
        if self.master_session is not None:
            sessions.append(self.master_session)
            sessions.sort(key=lambda session: session.id)
        return sessions

    def forget(self, session: CommandSession) -> None:
        """Forget a closed session: nothing of it may stay."""
        self.sessions.pop(session.id, None)
        self.monitors.pop(session, None)
        self.replication.askers.discard(session.id)
        self.replicas.forget(session)
        self.replica_waits.forget(session)
        self.outgoing.forget(session.id)
        self.pause.forget(session)
        if session.consumes:
            self.consuming.forget(session)
        self.waiting.forget(session)
        self.cold_waits.forget(session)
        self.chains.pieces.forget(session)
        self.writer_waits.forget(session)
        self.readership.forget(session)
        self.watching.unwatch(session)
        self.tracked.forget(session)
        self.look_out()

    def cron(self, now: float) -> None:
        """Do what must happen ten times a second."""
        self.chores.do("to end a pause", lambda: self.pause.expire(self.stopwatch()))
        self.chores.do("to end waits", lambda: self.waiting.cron(self.stopwatch()))
        self.chores.do("to look after replicas", self.replicas.cron)
        self.sampler.sample(now)
        self.look_out()
        if self.store is not None and self.store.is_lost:
            return  # that has been said, and there is nothing to keep
        if self.store is not None:
            with contextlib.suppress(StoreError):  # it stays noted here
                self.store.incidents.cron()
        if self.commons is not None:
            self.commons.cron()
        if self.hearing is not None:
            self.hearing.cron()
        if self.reporting is not None:
            self.chores.do("to report clients", self.reporting.cron)
        with contextlib.suppress(StoreError):  # the next publisher meets it again
            self.hub.look_around()
        do = self.chores.do
        if self.writer_waits.cron():
            do("to look after keys", lambda: self.housekeeping.step(now))
            do("to look after retention", self.keeping.cron)
            do("to look after readers", lambda: self.readership.cron(now))
            if self.consuming.is_aside:
                do("to look after consumers", self.consuming.cron)
        if self.keyspace.cold.shelf is not None:
            do("to look after the cold store", self.keyspace.cold.shelf.cron)
            do("to look after followers", self.followers.cron)

    def _undo(self, failure: Exception) -> None:
        """Undo the work of a chore that failed halfway."""
        if self.keyspace.turn.txn is not None or isinstance(failure, StoreError):
            self.keyspace.fail(failure)
            self.commit()

    def tend_durables(self) -> None:
        """Do what durable subscribers need some times a second, while the store is in its place."""
        if self.durables is not None and not self.writer_waits.is_held:
            self.durables.cron()

    def end_durables(self) -> None:
        """Stop waiting to learn how closed connections of durable subscribers have ended."""
        if self.durables is not None:
            self.durables.close()

    def commit(self) -> None:
        """Serve the clients that wait for keys changed in this turn, and commit everything."""
        end_turn(self.hub.agenda, OF_KEYS)

    def undo_turn(self, failure: Exception) -> None:
        """Undo what a turn that cannot go on has not committed yet. Its end says so to those who were answered."""
        self.notifications.drop()
        self._freezes = self._frozen_ms = 0  # an EXEC or a script may have been interrupted at its end
        self.keyspace.interrupt(failure)

    def _limit_nodes(self) -> None:
        self.node_limits = followed.node_limits(self.settings)  # how much a node would take in Redis

    def _now_ms(self) -> int:
        return self._frozen_ms or int(self.clock() * 1000)

    def freeze_time(self) -> None:
        """Stop the clock of keys: none expires until time goes on, after as many calls of `unfreeze_time`."""
        if not self._freezes:
            self._frozen_ms = int(self.clock() * 1000)
        self._freezes += 1

    def unfreeze_time(self) -> None:
        """Let time go on."""
        self._freezes -= 1
        if not self._freezes:
            self._frozen_ms = 0

    def next_session_id(self) -> int:
        """Return a session id that was never used, not even by another worker."""
        self._last_session_id += self._session_id_step
        return self._last_session_id

    def check_protected(self, session: CommandSession, command: Command) -> None:
        """Check that DEBUG or MODULE is allowed: by setting yes, no, or for local connections. Raises CommandError."""
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


class _Nowhere:
    """Refuses what slow readers are sent, as a full store would: without a store there is nowhere to spill."""

    def push(self, blobs: Sequence[tuple[bytes, int, Sequence[int]]]) -> None:
        raise StoreError("there is no store")

    def take(self, session_id: int, limit_bytes: int) -> list[tuple[bytes, int]]:
        return []

    def drop(self, session_id: int) -> None:
        """Do nothing: nothing was spilled."""

    def owes(self, session_id: int) -> bool:
        return False


def _nobody() -> int:
    """Return 0: without a store there are no other subscribers."""
    return 0


def _rings_nobody(subscriber: int) -> None:
    """Do nothing: there is nobody else."""


def _note_dead_letters(incidents: Incidents, topic: bytes, group: bytes, entries: int) -> None:
    incidents.note("dead_letters", "Entries were delivered as often as the group allows", (topic, group), entries)


def _note_lost_entries(incidents: Incidents, key: Key, lost: int) -> None:
    told = "A reader was too slow: retention had removed entries before it read them, and it was told so"
    incidents.note("entries_lost", told, (key[1],), lost)


def _nothing() -> None:
    """Do nothing: the caller only wants a turn."""


def _mail_dropper(delivery: Delivery | None, now_ms: Callable[[], int]) -> Callable[[], bool]:
    """Return a function that makes the largest durable mailbox drop some of its oldest messages; it returns False if
    none is large."""
    if delivery is None:
        return lambda: False
    mail = delivery.mail
    return lambda: mail.make_room(now_ms())


def _durables(delivery: Delivery, surroundings: Surroundings, clock: Callable[[], float]) -> Durables:
    return Durables(
        delivery.store,
        delivery.post,
        delivery.mail,
        delivery.membership.join,
        clock,
        surroundings.feed,
        surroundings.call_soon,
    )
