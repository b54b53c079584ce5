"""One running server: its store, its sessions, its sockets, from start to stop.

Start and stop read from top to bottom. What a turn ends with is engine/turn.py's.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rlite_pubsub import permissions
from rlite_pubsub.engine.access.acl_file import UsersFileError
from rlite_pubsub.engine.delivery import Delivery
from rlite_pubsub.engine.doors import CannotListen, Doors
from rlite_pubsub.engine.engine import Engine, Surroundings
from rlite_pubsub.engine.replicas.replicas import FileWish
from rlite_pubsub.engine.settings.followed import durability
from rlite_pubsub.engine.settings.settings import SettingError, Settings
from rlite_pubsub.engine.settings.tls_directives import TLS_CONTEXT
from rlite_pubsub.engine.table import TABLE
from rlite_pubsub.engine.turn import end_turn
from rlite_pubsub.extras import missing
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.pubsub.membership import Membership
from rlite_pubsub.replication.follower import MasterFollower
from rlite_pubsub.server.addresses import http_urls, redis_urls
from rlite_pubsub.server.companions.cold_store import ColdStore
from rlite_pubsub.server.companions.dumps import Dumps
from rlite_pubsub.server.companions.linking import Linking
from rlite_pubsub.server.companions.registration import Registration
from rlite_pubsub.server.companions.shipping import Shipping
from rlite_pubsub.server.connection import Connection
from rlite_pubsub.server.connections import Connections
from rlite_pubsub.server.fullness import Fullness
from rlite_pubsub.server.leftovers import leftovers
from rlite_pubsub.server.listening import Listener, Listening, StartupError
from rlite_pubsub.server.port_holders import in_use
from rlite_pubsub.server.safekeeping import Safekeeping
from rlite_pubsub.server.turns import Turns
from rlite_pubsub.server.upkeep import Upkeep
from rlite_pubsub.shards.block_files import KeptBlocks
from rlite_pubsub.shards.departures import Departures
from rlite_pubsub.shards.member_talk import MemberTalk, fetch
from rlite_pubsub.shards.needless import NeedlessSegments
from rlite_pubsub.storage.checkpoints.syncing import Syncing
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.log.home import is_there
from rlite_pubsub.storage.names import subscribers
from rlite_pubsub.storage.store import UNLIMITED_QUOTA_BYTES, Store

if TYPE_CHECKING:
    from rlite_pubsub.engine.workers.fellows import Fellows
    from rlite_pubsub.gateway.service import Gateway

log = logging.getLogger("rlite_pubsub")

CRON_SECONDS = 0.1
MALLOC_LESSON_BYTES = 16 << 20
RESERVED_DESCRIPTORS = 32
"""Kept free of clients, for the store, the listeners and the log (as Redis does)."""


class Bell:
    """Law 3: clear the bell, then take the mailbox until it is empty. The turn's end does the rest."""

    def __init__(self, membership: Membership, hub: Hub) -> None:
        """Watches the bell of a process that has joined the store."""
        bell = membership.bell
        assert bell is not None
        self._bell = bell
        self._own = membership.join()
        self._hub = hub

    def fileno(self) -> int:
        """Return the descriptor that the poller watches."""
        return self._bell.fileno()

    def on_ready(self, events: int) -> None:
        """React to a ring."""
        self._bell.clear()
        self.look()

    def look(self) -> None:
        """Take what is there, rung or not: a bell may lie, a mailbox cannot."""
        self._hub.receive(self._own)

    def on_failure(self) -> None:
        """The next ring, or the cron, takes what is left."""


class Node:
    """Everything of one server process (or of one `Server` thread)."""

    def __init__(
        self,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        config_file: str | None = None,
        clock: Callable[[], float] = time.time,
        doors: Doors | None = None,
        fellows: Fellows | None = None,
    ) -> None:
        """Nothing listens before `start`; then these doors do, or those in the settings. Raises StartupError."""
        self.settings = settings
        self.loop = loop
        self.clock = clock
        self.stopped = asyncio.Event()
        self.gateway: Gateway | None = None  # HTTP, if it is asked for
        self._cron_timer: asyncio.TimerHandle | None = None
        self._has_ended = False  # what was put off is not done any more
        was_there = is_there(Path(settings["dir"].decode()))
        self.store = _open_store(settings)
        self.delivery = _join(self.store, was_there and (fellows is None or fellows.number == 0))
        self.fullness = Fullness((self.store.data, self.store.live), self.store.incidents)
        self.agenda = self.delivery.agenda
        self.hub = self.delivery.hub
        self.turns = Turns(loop, partial(end_turn, self.agenda))
        self.syncing = Syncing(self.store.data)
        self.safekeeping = Safekeeping(self.syncing, self.hub, self.turns, loop)
        surroundings = Surroundings(
            call_later=self._call_later,
            call_soon=self.turns.soon,
            serve_beside=self._serve_beside,
            call_from_thread=self._call_from_thread,
            send_file=self._send_file,
            sync_beside=self._sync_beside,
            shut_down=self.stop_soon,
            syncing=self.syncing,
            config_file=config_file,
            first_session_id=fellows.number if fellows is not None else 0,
            session_id_step=fellows.count if fellows is not None else 1,
        )
        self.engine = Engine(
            settings, self.hub, self.delivery.rules, self.store.data, self.delivery, surroundings, clock
        )
        self.turns.go_by(self.engine.commons)
        self.store.data.share_commits(self.engine.keyspace.turn, self._call_later, self._call_from_thread)
        self._withhold()
        self.connections = Connections(self.engine, self.turns)
        self.cold_store = ColdStore(self.store, self.engine.keyspace, settings, self.turns)
        self.shipping = Shipping(self.store, settings)
        self.upkeep = Upkeep(self.store, lambda: int(settings["compact-every"]), clock())
        self.dumps = Dumps(self.store.folder, lambda: int(settings["repl-timeout"]))
        self.follower = MasterFollower(self.engine, self.store, self._port_for_masters)
        self.linking = Linking(self.store, self.engine.links, settings)
        self.departures = Departures(self.engine, self.store)
        self.member_talk = MemberTalk(self.engine)
        self.needless = NeedlessSegments(self.engine, self.store, self.member_talk)
        self.engine.chains.pieces.fetch_by(partial(fetch, self.member_talk))
        self.engine.arrivals.keep_blocks_by(KeptBlocks(self.store, lambda: self.cold_store.seals_at))
        self.bell = Bell(self.delivery.membership, self.hub)
        self._doors = doors or Doors()
        self.listening = Listening(self.connections, self._doors, fellows.own if fellows is not None else None)
        self.registration = Registration(settings, self.store, self._addresses)
        self._is_first = fellows is None or fellows.number == 0
        if fellows is not None:
            fellows.answer_together(TABLE)

    # -- start

    def start(self, any_port: bool = False) -> None:
        """Listen. With `any_port` the system chooses a free TCP port. Raises StartupError."""
        self.turns.watch(self.bell.fileno(), self.bell)
        try:
            self._load_users()
            self.listening.start(any_port)
            self._follow_settings()
            self._start_gateway()
            for door in self._doors.left:
                log.warning("Nothing is configured to listen on the %s that was handed over.", door)
            self.cold_store.start(self.loop)
            self.shipping.start()
            self.linking.start()
            if self._is_first:
                self.registration.start(self.engine.started_at)
        except BaseException:
            self.stop()
            raise
        self.store.wait_for_no_writer()  # until now nobody has waited for this thread
        self.store.wait_for_no_disk()
        self._cron()

    @property
    def port(self) -> int:
        """The TCP port, 0 if there is none."""
        return self.listening.port

    def _port_for_masters(self) -> int:
        """Where a master is told that this replica listens."""
        tls_port: int = self.settings["tls-port"]
        return tls_port if self.settings["tls-replication"] and tls_port else self.port

    def _addresses(self) -> tuple[str, ...]:
        return (*redis_urls(self.settings, self.listening), *http_urls(self.settings))

    def _load_users(self) -> None:
        try:
            self.engine.users.load()
        except UsersFileError as failure:
            raise StartupError(f"Aborting startup because of ACL errors: {failure}") from failure
        except StoreError as failure:
            raise StartupError(f"Can't write the users to the store: {failure}") from failure

    def _start_gateway(self) -> None:
        if not self.settings.asks_for_http:
            return
        try:
            from rlite_pubsub.engine.settings.tls import TlsError
            from rlite_pubsub.gateway.service import Gateway
        except ImportError as failure:
            raise StartupError(f"{missing('http-port', 'http')} ({failure})") from failure
        try:
            gateway = Gateway(self.engine, self.engine.keyspace, self.turns.soon)
            gateway.start(self.loop, self._doors)
        except TlsError as failure:
            raise StartupError(f"Failed to configure TLS: {failure}") from failure
        except ValueError as failure:
            raise StartupError(str(failure)) from failure
        except OSError as failure:
            asked = self.settings["http-port"], self.settings["http-tls-port"]
            ports = " or ".join(str(port) for port in asked if port)
            reason = failure.strerror or str(failure)
            if isinstance(failure, CannotListen) and failure.errno == errno.EADDRINUSE:
                ports = str(failure.port)
                directive = "http-port" if failure.port == self.settings["http-port"] else "http-tls-port"
                reason = in_use(failure.port, directive, reason)
            raise StartupError(f"Could not listen for HTTP on port {ports}: {reason}") from failure
        self.gateway = gateway
        self.syncing.time_syncs(gateway.metrics.synced)

    def _follow_settings(self) -> None:
        settings = self.settings
        for name in ("proto-max-bulk-len", "client-query-buffer-limit"):
            settings.on_change(name, self._apply_limits)
        settings.on_change("port", self.listening.follow_port)
        for name in TLS_CONTEXT:
            settings.on_change(name, self.listening.follow_tls)
        settings.on_change("tls-port", self.listening.follow_tls_port)
        settings.on_change("bind", self.listening.follow_bind)
        settings.on_change("maxclients", self._apply_max_clients)
        settings.on_change("appendfsync", lambda _: self._sync_as_said())
        wanted = settings["maxclients"]
        granted = self._raise_descriptor_limit(wanted)
        if granted < wanted + RESERVED_DESCRIPTORS:
            settings.set("maxclients", [b"%d" % max(granted - RESERVED_DESCRIPTORS, 1)])

    def _apply_max_clients(self, wanted: int) -> None:
        if self._raise_descriptor_limit(wanted) < wanted + RESERVED_DESCRIPTORS:
            raise SettingError(
                "The operating system is not able to handle the specified number of clients, try with "
                f"{resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVED_DESCRIPTORS}"
            )

    def _sync_as_said(self) -> None:
        self.store.data.sync_by(durability(self.settings))
        self._withhold()

    def _withhold(self) -> None:
        """Under `always` all replies wait for the disk, and else those that their turn says (`sync-every`)."""
        is_needed = self.store.data.durability == "always"
        withhold = self.safekeeping.withhold
        self.engine.key_commit.withhold_by(withhold if is_needed else None, withhold)

    def _apply_limits(self, _: object) -> None:
        self.connections.obey()
        for session in self.engine.sessions.values():
            if isinstance(session, Connection):
                session.parser.max_bulk_bytes = self.connections.max_bulk_bytes

    def _raise_descriptor_limit(self, clients: int) -> int:
        """Ask the system for as many descriptors as so many clients need; how many there are now."""
        wanted = clients + RESERVED_DESCRIPTORS
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            return wanted
        granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
        if granted < wanted:
            log.warning("Only %d file descriptors are available, fewer than %d clients need.", granted, clients)
        return granted

    # -- the loop

    def _call_later(self, seconds: float, callback: Callable[[], None]) -> object:
        def call() -> None:
            if not self._has_ended:
                callback()
                self.turns.soon()

        return self.loop.call_later(seconds, call)

    def _serve_beside(self, busy: object) -> None:
        """While a script runs: its client's connection is left alone, and so is what only the end of a turn can do."""

        def is_meant(watched: object) -> bool:
            return isinstance(watched, (Connection, Listener)) and watched is not busy

        self.turns.take_beside(is_meant)

    def _call_from_thread(self, callback: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and the one that wanted it with it
            self.loop.call_soon_threadsafe(self._call_later, 0.0, callback)

    def _send_file(self, descriptor: int, only_functions: bool) -> None:
        self.dumps.send(descriptor, only_functions=only_functions)

    def _sync_beside(self, descriptor: int, wish: FileWish, done: Callable[[int | None], None]) -> None:
        self.dumps.send_to_replica(descriptor, wish, done)

    def _cron(self) -> None:
        self._cron_timer = self.loop.call_later(CRON_SECONDS, self._cron)
        now = self.clock()
        do = self.engine.chores.do
        self.engine.cron(now)
        if self.store.is_in_place():
            do("to look into the mailbox", self.bell.look)
            do("to settle names", self.hub.settle)
            do("to look after durable subscribers", self.engine.tend_durables)
            do("to have the store synced", lambda: self.syncing.cron(now))
            do("to look after the store's files", lambda: self.upkeep.cron(now))
            do("to see whether the store is full", lambda: self.fullness.look(now))
        do("to look after the link to the master", self.follower.cron)
        do("to move slots to other members", self.departures.cron)
        do("to remove segments that nobody needs", self.needless.cron)
        self.dumps.cron()
        do("to look after the process that seals", lambda: self.cold_store.cron(now))
        do("to look after the backup", lambda: self.shipping.cron(now))
        do("to look after links", lambda: self.linking.cron(now))
        do("to tell of other addresses", lambda: self.registration.cron(now))
        do("to look after slow readers", self.engine.pressure.check_all)
        do("to look after connections", lambda: self.connections.cron(now))
        do("to end a turn", lambda: end_turn(self.agenda))

    # -- stop

    def stop_soon(self) -> None:
        """Ask for an orderly end."""
        self.stopped.set()

    async def stop_gateway(self) -> None:
        """Let HTTP finish what is under way, which takes turns. Call it before `stop`."""
        if self.gateway is not None:
            await self.gateway.stop()
            self.gateway = None

    def stop(self) -> None:
        """Flush, close every session and socket, leave the store clean."""
        self._has_ended = True
        if self._cron_timer is not None:
            self._cron_timer.cancel()
        self.store.data.stop_sharing(self.engine.keyspace.turn)
        self.registration.stop()
        self.listening.stop()
        self.follower.stop()
        self.linking.stop()
        self.departures.stop()
        self.needless.stop()
        self.member_talk.close()
        self.dumps.stop()
        end_turn(self.agenda)
        self.safekeeping.stop()
        self.cold_store.stop()
        end_turn(self.agenda)
        for session in list(self.engine.sessions.values()):
            session.close_now()
        self.engine.end_durables()
        end_turn(self.agenda)
        self.turns.close()
        try:
            self.delivery.membership.leave()
        except StoreError as failure:
            log.warning("Left to the next process that opens the store: %s", failure)
        self.shipping.stop()
        with contextlib.suppress(StoreError):
            self.store.incidents.write()
        self.store.close()


def settle_memory() -> None:
    """Prepare memory after the start: what is alive then lives as long as the process, so the collector need not look
    at it again. And a large block that is freed once teaches glibc's malloc to keep such blocks, instead of asking the
    kernel for zeroed pages whenever a large chunk is read."""
    bytearray(MALLOC_LESSON_BYTES)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def _open_store(settings: Settings) -> Store:
    folder = Path(settings["dir"].decode())
    found = leftovers(settings)
    try:
        store = Store.open(
            folder,
            quota_bytes=settings["store-quota"] or UNLIMITED_QUOTA_BYTES,
            durability=durability(settings),
            for_group=not settings["umask"] & 0o070,
        )
        store.wait_for_writers(settings["writer-patience"])
        for each in found:
            log.warning("%s", each)
        if permissions.is_open(folder):
            log.warning(
                "Everybody on this machine can list the store %s, and see who uses it, but not what its files hold. "
                "It stays as it was made; to keep others out: chmod 700 %s",
                folder,
                folder,
            )
        return store
    except (StoreError, OSError) as failure:
        raise StartupError(f"Can't open the store {folder}: {failure}") from failure


def _join(store: Store, was_there: bool) -> Delivery:
    """Clean up after the dead, and become one of the living. `was_there`: the store is not a new one."""
    delivery = Delivery(store, "server", lambda: None)
    if was_there:
        store.incidents.note("server_started", f"A server began as process {os.getpid()}")
    try:
        before = store.live.read(subscribers.records)
        reaped = delivery.membership.reap()
        if reaped:
            log.warning("Cleaned up after %d dead subscriber(s) of this store.", reaped)
        left = store.live.read(subscribers.ids) if reaped else before.keys()
        for pid in sorted({record.pid for id, record in before.items() if id not in left and record.kind == "server"}):
            told = f"The server of process {pid} had ended without shutting down: it was killed, or crashed"
            store.incidents.note("server_died", told, (b"%d" % pid,))
        delivery.membership.join()
    except StoreError as failure:
        store.close()
        raise StartupError(f"Can't use the store {store.folder}: {failure}") from failure
    return delivery
