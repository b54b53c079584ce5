"""One open store of this process, without a server: its hub, its settings and its sessions.

However often a folder is opened in a process, there is one Host; the last `close` closes it. It is one subscriber of
the store, as a server is: sessions of this process reach each other in memory, whatever thread or loop they belong to.

Laws kept here, a turn being one request, or one pipeline:
 1. publish: the turn's end commits and rings, before the publisher is answered.
 3. read: CLEAR the bell -> take the mailbox until it is empty -> wait, bounded -> again. Whoever waits does it; so a
    process in which nobody reads takes nothing, and its messages stay in its mailbox on disk.
 5. acknowledge after commit: a session's inbox is filled at the turn's end.

All state is guarded by `lock`. A finalizer may run in the middle of a turn, in the very thread that holds the lock:
what it closes is put aside until the turn is over.

After a fork the child has no Host; it makes its own. The parent's is left as it was, closed.
"""

from __future__ import annotations

import atexit
import importlib
import logging
import os
import threading
import time
from collections import deque
from pathlib import Path
from time import perf_counter_ns

from redis._parsers import BaseParser
from redis.exceptions import ConnectionError

from rlite_pubsub.commands.dispatch import execute
from rlite_pubsub.commands.instance import Instance
from rlite_pubsub.commands.pressure import Pressure
from rlite_pubsub.commands.pubsub import unwritten
from rlite_pubsub.commands.settings import Settings
from rlite_pubsub.commands.table import TABLE
from rlite_pubsub.delivery.hub import Hub
from rlite_pubsub.delivery.kinds import CHANNELS
from rlite_pubsub.delivery.membership import Membership
from rlite_pubsub.delivery.spiller import Spiller
from rlite_pubsub.embedded.errors import StoreUnavailable
from rlite_pubsub.embedded.session import EmbeddedSession
from rlite_pubsub.embedded.timers import Timers
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.store import Store

log = logging.getLogger("rlite_pubsub")

CLOSED = "Connection closed by server."
"""In redis-py's words: programs look for them."""
CRON_SECONDS = 0.1
RUN_BYTES = 32 * 1024
"""Published to sessions of this process, none of which waits for it, before it is put into their inboxes."""
MESSAGE_BYTES = 64
"""What a message costs beside its payload, about."""
BOUND_SECONDS = 1.0
"""The longest wait without a look into the mailbox: the doorbell may lie."""
_PUBLISH = TABLE.commands[b"publish"]
TABLE.declare_rest = lambda: importlib.import_module("rlite_pubsub.commands.all")

_hosts: dict[Store, Host] = {}
_opening = threading.RLock()


class Host:
    """Made by `Host.open`. Each `open` is paired with one `close`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.lock = threading.RLock()
        self.is_open = True
        self.membership = Membership(store, self._rouse_all)
        settings = Settings()
        settings.set("dir", [str(store.folder).encode()])
        settings.set("port", [b"0"])
        self.hub = Hub(self.membership.record, self.membership.neighbours, self.membership.post)
        self.instance = Instance(settings, self.hub)
        self.instance.store = store
        self.timers = Timers()
        self.instance.call_later = self.timers.add
        self.spiller = Spiller(self.membership)
        self.pressure = Pressure(settings, self.instance.stats, self.hub, self.spiller, self.instance.clock)
        self.instance.pressure = self.pressure
        self.short_way = True  # for a PUBLISH
        self.waiting: set[EmbeddedSession] = set()  # whose readers wait for input
        self._users = 1
        self._in_turn = False
        self._leaving: deque[EmbeddedSession] = deque()
        self._published = 0  # the short way, not yet counted
        self._published_ns = 0
        self._run_bytes = 0  # about, of the run that is open since the last short publish
        self._cron_due = 0.0
        self.look_out()

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Host:
        """Open the store in this folder, or make it. Raises StoreUnavailable."""
        with _opening:
            try:
                return cls._of(Store.open(folder))
            except (StoreError, OSError) as failure:
                raise StoreUnavailable(f"Can't open the store {os.fspath(folder)}: {failure}") from failure

    @classmethod
    def _of(cls, store: Store) -> Host:
        host = _hosts.get(store)
        if host is not None:
            store.close()
            host._users += 1
            return host
        try:
            host = cls(store)
            host.membership.reap()
        except BaseException:
            store.close()
            raise
        _hosts[store] = host
        return host

    def close(self) -> None:
        """One user less. The last one's takes down all that this process has in the store."""
        with _opening:
            if not self.is_open:
                return
            self._users -= 1
            if self._users:
                return
            del _hosts[self.store]
            self._shut()

    def _shut(self) -> None:
        with self.lock:
            for session in list(self.instance.sessions.values()):
                session.close_now()
            self._end_turn()
            self.is_open = False
            try:
                self.membership.leave()
            finally:
                self.store.close()

    @property
    def folder(self) -> Path:
        return self.store.folder

    # -- sessions

    def begin_session(self) -> EmbeddedSession:
        """A new client."""
        with self.lock:
            session = EmbeddedSession(self)
            self.instance.sessions[session.id] = session
            self.instance.stats.connections_received += 1
            return session

    def end_session(self, session: EmbeddedSession) -> None:
        """The client goes."""
        self._leaving.append(session)
        with self.lock:
            if not self._in_turn and self.is_open:
                self._end_turn()

    def forget(self, session: EmbeddedSession) -> None:
        """A session is closed: nothing of it may stay."""
        instance = self.instance
        instance.sessions.pop(session.id, None)
        self.waiting.discard(session)
        instance.monitors.pop(session, None)
        instance.pause.forget(session)
        self.hub.forget(session)
        self.look_out()

    def _rouse_all(self) -> None:
        """Whoever waits must also wait for the bell, which was not there before."""
        for session in self.instance.sessions.values():
            if isinstance(session, EmbeddedSession):
                session.rouse()

    # -- turns

    def execute(self, session: EmbeddedSession, requests: list[list[bytes]]) -> None:
        """Execute requests in order, as one turn. What they answer is in the session's inbox then."""
        with self.lock:
            self._in_turn = True
            self._count_published()
            if session.is_held:
                session.hold(requests)
            else:
                self.execute_all(session, requests)
            self._end_turn()

    def execute_all(self, session: EmbeddedSession, requests: list[list[bytes]]) -> None:
        """Execute requests within a turn, as far as the session is not held."""
        session.last_active = self.instance.clock()
        for number, request in enumerate(requests):
            if session.closing:
                break
            if not execute(session, request):
                session.hold(requests[number:])
                break
        self.look_out()

    def publish(self, channel: bytes, payload: bytes) -> int:
        """PUBLISH the short way, while `short_way` allows it: how many receive it. Raises what redis-py would."""
        start = perf_counter_ns()
        with self.lock:
            if not self.is_open:
                raise ConnectionError(CLOSED)
            self._in_turn = True
            hub = self.hub
            try:
                hub.look_around()
                route = hub.channel_routes.get(channel) or hub.route(CHANNELS, channel)
                if route.receivers:
                    hub.publish(route, [b"%d\r\n%b" % (len(payload), payload)])
                    self._run_bytes += len(payload) + MESSAGE_BYTES
                    if route.address is not None:
                        hub.send_now()
                        self._close_run()
                    elif self.waiting or self._run_bytes > RUN_BYTES:
                        self._close_run()
            except StoreError as failure:
                raise self._refusal(failure) from failure
            finally:
                self._in_turn = False
            hub.published += 1
            self._published += 1
            if self._leaving:
                self._end_turn()
            self._published_ns += perf_counter_ns() - start
            return route.receivers

    def close_run(self) -> None:
        """Put what was published into the inboxes. Called by who finds nothing in its own."""
        if self.hub.open is not None:
            self._in_turn = True
            self._close_run()
            self._in_turn = False

    def _close_run(self) -> None:
        self._run_bytes = 0
        self.hub.end_turn()
        if self.spiller.backlogs:
            self.pressure.end_turn()

    def _refusal(self, failure: StoreError) -> Exception:
        """The error that a connection would have read, counted as such."""
        text = unwritten(failure)
        stats = self.instance.stats
        stats.count_call(_PUBLISH, 0, failed=True)
        stats.count_error(text)
        error: Exception = BaseParser.parse_error(text.decode())  # type: ignore[no-untyped-call]
        return error

    def look(self, *, surely: bool = False) -> None:
        """Take in what others have published for us, if the bell was rung; `surely` even if it was not."""
        membership = self.membership
        with self.lock:
            bell = membership.bell
            is_rung = self.is_open and bell is not None and (surely or bell.wait(0))
            if not is_rung and not (self.is_open and self.timers.are_due):
                return
            self._in_turn = True
            self.timers.run()
            if is_rung:
                assert bell is not None and membership.id is not None
                bell.clear()
                try:
                    self.hub.receive(membership.id)
                except StoreError as failure:  # the next ring, or the next bounded wait, takes what is left
                    log.warning("Can't take messages of other processes out of the mailbox: %s", failure)
            self._end_turn()

    def patience_s(self) -> float:
        """How long one may wait without calling `look`."""
        return min(BOUND_SECONDS, self.timers.next_s())

    def _end_turn(self) -> None:
        self._in_turn = True
        self._run_bytes = 0
        while self._leaving:
            self._leaving.popleft().close_now()
        self.hub.end_turn()
        self.pressure.end_turn()
        now = time.monotonic()
        if now >= self._cron_due:
            self._cron_due = now + CRON_SECONDS
            self._count_published()
            self.instance.cron(self.instance.clock())
            self.pressure.check_all()
            self.hub.settle()
            self.hub.end_turn()
        self._in_turn = False

    def look_out(self) -> None:
        """See whether somebody watches, holds or measures single commands. Any command may have changed that."""
        instance = self.instance
        self.short_way = not instance.monitors and instance.pause.scope is None and instance.slowlog.coarse

    def _count_published(self) -> None:
        if self._published:
            self.instance.stats.count_calls(_PUBLISH, self._published, self._published_ns // 1000)
            self._published = self._published_ns = 0


def _close_all() -> None:
    with _opening:
        for host in list(_hosts.values()):
            host._users = 1
            host.close()


def _forget_in_child() -> None:
    global _opening
    for host in _hosts.values():
        host.is_open = False
        host.lock = threading.RLock()  # whoever held the old one is not in this process
    _hosts.clear()
    _opening = threading.RLock()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_in_child)
