"""One open store of this process, without a server: its hub, its doorbell and its sessions.

However often a folder is opened in a process, there is one Host; the last `close` closes it. It is one subscriber of
the store, as a server is: sessions of this process reach each other in memory, whatever thread or loop they belong to.

Laws kept here, a turn being one request, or one pipeline:
 1. publish: what goes to other processes is committed, and they are rung, before the publisher is answered.
 3. read: CLEAR the bell -> take the mailbox until it is empty -> wait, bounded -> again. The waiting thread does it;
    so a process in which nobody reads takes nothing, and its messages stay in its mailbox on disk.
 5. acknowledge after commit: a session's inbox is filled at the turn's end.

All state is guarded by `lock`. A finalizer may run in the middle of a turn, in the very thread that holds the lock:
what it closes is put aside until the turn is over.

After a fork the child has no Host; it makes its own. The parent's is left as it was, closed.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from redis._parsers import BaseParser
from redis.exceptions import ConnectionError

from rlite_pubsub.embedded.errors import StoreUnavailable
from rlite_pubsub.embedded.options import StoreOptions
from rlite_pubsub.embedded.waking import Timers
from rlite_pubsub.engine.delivery import Delivery
from rlite_pubsub.engine.turn import end_turn
from rlite_pubsub.pubsub.publish import publish_at_once, publish_elsewhere
from rlite_pubsub.storage.agenda import ALL
from rlite_pubsub.storage.checkpoints.syncing import Syncing
from rlite_pubsub.storage.commons import replica_stream, shared_settings
from rlite_pubsub.storage.errors import StoreError, StoreRemoved
from rlite_pubsub.storage.store import Store

if TYPE_CHECKING:
    from rlite_pubsub.embedded.service import Service
    from rlite_pubsub.embedded.session import EmbeddedSession
    from rlite_pubsub.pubsub.kinds import Kind
    from rlite_pubsub.storage.environment import Txn

log: Final = logging.getLogger("rlite_pubsub")

CLOSED: Final = "Connection closed by server."
"""In redis-py's words: programs look for them."""
RUN_BYTES: Final = 32 * 1024
"""Published to sessions of this process, none of which waits for it, before it is put into their inboxes."""
MESSAGE_BYTES: Final = 64
"""What a message costs beside its payload, about."""
PLACE_NS: Final = 1_000_000_000
"""How long a removed folder may go unnoticed."""
GIVE_BACK_SECONDS: Final = 10.0
"""How long the end of a host waits for another process that is writing, if something that was popped goes back."""
GIVE_BACK_LOOK_S: Final = 0.002
BOUND_SECONDS: Final = 1.0
"""The longest wait without a look into the mailbox: the doorbell may lie."""

NO_OPTIONS: Final = StoreOptions()
_hosts: Final[dict[Store, Host]] = {}
_opening = threading.RLock()
_closings: Final[deque[Host]] = deque()
"""One user less of each."""


class Host:
    """Made by `Host.open`. Each `open` is paired with one `close`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.lock = threading.RLock()
        self.is_open = True
        self.delivery = Delivery(store, "embedded", self._rouse_all)
        self.membership = self.delivery.membership
        self.agenda = self.delivery.agenda
        self.hub = self.delivery.hub
        self.timers = Timers()
        self.syncing = Syncing(store.data)
        self.short_way = True  # for a PUBLISH
        self.waiting: set[EmbeddedSession] = set()  # whose readers wait for input
        self._service: Service | None = None
        self._commons_seen = -1  # the hint, before there is a service
        self.spared_by: Callable[[Host], None] | None = None  # lets one use go that only keeps it open (lingering.py)
        self._users = 1
        self._in_turn = False
        self._interrupted: BaseException | None = None  # in the middle of the last turn, which is not undone yet
        self._leaving: deque[EmbeddedSession] = deque()
        self._published = 0  # the short way, not yet counted
        self._published_ns = 0
        self._place_due_ns = 0
        self._run_bytes = 0  # about, of the run that is open since the last short publish

    @classmethod
    def open(cls, folder: str | os.PathLike[str], options: StoreOptions = NO_OPTIONS) -> Host:
        """Open the store in this folder, or make it. Raises StoreUnavailable, also if it is open with other options."""
        try:
            with _opening:
                store = options.open(folder)
                contradiction = options.contradiction(store)
                if contradiction and _spare(store):
                    store.close()
                    store = options.open(folder)
                    contradiction = options.contradiction(store)
                if contradiction:
                    store.close()
                    raise StoreUnavailable(f"The store {os.fspath(folder)} is open in this process {contradiction}")
                return cls._of(store)
        except (StoreError, OSError) as failure:
            raise StoreUnavailable(f"Can't open the store {os.fspath(folder)}: {failure}") from failure
        finally:
            _close_waiting()

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
            store.wait_for_no_writer()
        except BaseException:
            store.close()
            raise
        _hosts[store] = host
        return host

    def close(self) -> None:
        """One user less. The last one's takes down all that this process has in the store.

        A finalizer, which may run inside anything, must not wait for a lock here: the holder does the closing.
        """
        _closings.append(self)
        _close_waiting()

    def _end(self) -> None:
        """The interpreter ends, even if the host is still in use."""
        for session in self._sessions():
            session.leave_at_exit()
        self._users = 1
        self._let_go()

    def _leave_to_parent(self) -> None:
        """Leave the store to the parent that this process was forked from."""
        self.is_open = False
        self.lock = threading.RLock()  # the holder of the old one is not in this process

    def _let_go(self) -> None:
        if not self.is_open:
            return
        self._users -= 1
        if not self._users:
            del _hosts[self.store]
            self._shut()

    def _shut(self) -> None:
        with self.lock:
            self._leaving.extend(self._sessions())
            self._end_turn()
            self.give_back()
            for session in self._sessions():
                session.close_now()
            self._end_turn()
            if self._service is not None:
                self._service.engine.keyspace.close()
            self.is_open = False
            self.store.wait_for_writers()  # nobody waits for this process any more
            try:
                try:
                    self.syncing.close()
                finally:
                    self.membership.leave()
            except StoreError as failure:
                log.warning("Can't leave the store; the next process that opens it cleans up: %s", failure)
            finally:
                self.store.close()

    @property
    def is_giving_back(self) -> bool:
        """True if what is put back waits for another process that is writing. Somebody must `look` then."""
        return self.is_open and self._service is not None and bool(self._service.giving_back)

    def give_back(self) -> None:
        """Wait until it is put back, as long as any request waits for a writer."""
        until = time.monotonic() + GIVE_BACK_SECONDS
        while self.is_giving_back and time.monotonic() < until:
            time.sleep(GIVE_BACK_LOOK_S)
            self.look()

    # -- sessions

    def begin_session(self) -> EmbeddedSession:
        """Return the session of a new client."""
        with self.lock:
            session = self._commands().begin_session()
            self.short_way = self._commands().allows_short_way
            return session

    def _commands(self) -> Service:
        if self._service is None:
            from rlite_pubsub.embedded.service import Service

            self._service = Service(self.delivery, self, self.syncing)
        return self._service

    def end_session(self, session: EmbeddedSession) -> None:
        """End a session whose client is gone."""
        self._leaving.append(session)
        with self.lock:
            if not self._in_turn and self.is_open:
                self.turn(_nothing)

    def forget(self, session: EmbeddedSession) -> None:
        """Forget a closed session altogether."""
        self.waiting.discard(session)
        if self._service is not None:
            self._service.forget(session)
            self.short_way = self._service.allows_short_way

    def _sessions(self) -> list[EmbeddedSession]:
        return self._service.sessions() if self._service is not None else []

    def _rouse_all(self) -> None:
        """Waiting threads must also wait for the bell, which was not there before."""
        for session in self._sessions():
            session.rouse()

    # -- turns

    def execute(self, session: EmbeddedSession, requests: list[list[bytes]]) -> None:
        """Execute requests in order, as one turn. What they answer is in the session's inbox then."""
        now_ns = perf_counter_ns()
        if now_ns >= self._place_due_ns:
            self._check_place(now_ns)
        if self.store.routes.numbers[2] != self._commons_seen:
            self._look_at_commons()
        with self.lock:
            service = self._commands()
            if self._interrupted is not None:
                self._undo_turn(self._interrupted)
            self._in_turn = True
            try:
                if self._published:
                    service.count_published(self._published, self._published_ns)
                    self._published = self._published_ns = 0
                service.execute_all(session, requests)
                self.short_way = service.allows_short_way
                self._end_turn()
                if service.may_have_written:
                    service.may_have_written = False
                    self.syncing.late()
            except BaseException as interruption:
                self._undo_turn(interruption)
                raise

    def publish(self, channel: bytes, payload: bytes) -> int | None:
        """PUBLISH the short way, while `short_way` allows it: how many receive it; None if nothing was done, because
        the channel is retained, which takes the long way. Raises what redis-py would."""
        start = perf_counter_ns()
        if start >= self._place_due_ns:
            self._check_place(start)
        if self.store.routes.numbers[2] != self._commons_seen:
            self._look_at_commons()
            if not self.short_way:
                return None
        with self.lock:
            if not self.is_open:
                raise ConnectionError(CLOSED)
            self._in_turn = True
            hub = self.hub
            try:
                route = publish_at_once(hub, channel, payload)
                if route is None:
                    return None
                if route.address is not None and route.address.durable:
                    self.syncing.late()
                if hub.open is not None:
                    self._run_bytes += len(payload) + MESSAGE_BYTES
                    if self.waiting or self._run_bytes > RUN_BYTES or route.address is not None:
                        self._close_run()
                elif self.agenda.due:
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

    def publish_runs(
        self,
        session: EmbeddedSession,
        runs: list[tuple[Kind, bytes, list[bytes]]],
        refused: Callable[[Exception], None],
    ) -> int:
        """Publish runs, each tail `<length>\\r\\n<payload>`, to other processes and to durable subscribers, as one
        turn: not to the sessions here. Return how many of them, the first ones: those behind them must be published by
        commands. `refused` is called if what this has published cannot be brought to others. Raises ConnectionError."""
        start = perf_counter_ns()
        if start >= self._place_due_ns:
            self._check_place(start)
        if self.store.routes.numbers[2] != self._commons_seen:
            self._look_at_commons()
        with self.lock:
            if not self.is_open:
                raise ConnectionError(CLOSED)
            if not self.short_way or session.is_held or session.blocked is not None:
                return 0
            self._in_turn = True
            hub, done = self.hub, 0
            try:
                hub.look_around()
                for kind, name, tails in runs:
                    route = hub.route(kind, name)
                    if route.topic is not None:
                        break
                    if route.address is not None and route.address.durable and hub.post is not None:
                        hub.post.check_writer(route.address)
                    publish_elsewhere(hub, route, tails)
                    self._published += len(tails)
                    done += 1
            except StoreError as failure:  # the command meets it again, and answers it
                log.debug("A run is not published the short way: %s", failure)
            if self.owes_processes:
                hub.on_failed_send(session, refused)
            self._published_ns += perf_counter_ns() - start
            self._end_turn()
            return done

    @property
    def owes_processes(self) -> bool:
        """True if something that was published is still to be brought to other processes: one of them is writing."""
        return self.hub.post is not None and self.hub.post.is_due

    def _look_at_commons(self) -> None:
        """Other processes may have changed what all have in common: the users, whose rules hold for publishers too; or
        have replicas, which are told of messages."""
        with self.lock:
            if not self.is_open:
                return  # the next caller gets the error
            self._commons_seen = self.store.routes.numbers[2]
            try:
                if self._service is None and not self.store.data.read(_holds_publishers):
                    return
            except StoreError as failure:
                log.warning("Can't read the users: %s", failure)
                return
            service = self._commands()
            commons = service.engine.commons
            assert commons is not None
            self.turn(commons.look_around)
            self.short_way = service.allows_short_way

    def close_run(self) -> None:
        """Put what was published into the inboxes. Called by a thread that finds nothing in its own."""
        if self.hub.open is not None:
            self._in_turn = True
            self._close_run()
            self._in_turn = False

    def look(self, *, surely: bool = False) -> None:
        """Take in what others have published for us, if the bell was rung; `surely` even if it was not."""
        with self.lock:
            if surely and self.is_open and not self.store.is_in_place():
                self._abandon()
            bell = self.membership.bell
            is_rung = self.is_open and bell is not None and (surely or bell.wait(0))
            if is_rung or (self.is_open and self.timers.are_due):
                self.turn(self._take_in if is_rung else self.timers.run)

    def _take_in(self) -> None:
        self.timers.run()
        bell, subscriber = self.membership.bell, self.membership.id
        assert bell is not None and subscriber is not None
        bell.clear()
        try:
            self.hub.receive(subscriber)
        except StoreError as failure:  # the next ring, or the next bounded wait, takes what is left
            log.warning("Can't take messages of other processes out of the mailbox: %s", failure)

    def turn(self, work: Callable[[], None]) -> None:
        """Do some work as a turn."""
        with self.lock:
            if self._interrupted is not None:
                self._undo_turn(self._interrupted)
            self._in_turn = True
            try:
                work()
                self._end_turn()
            except BaseException as interruption:
                self._undo_turn(interruption)
                raise

    def _undo_turn(self, interruption: BaseException) -> None:
        """Undo what a turn has not committed yet, and end it: an exception came from without in the middle of it (a
        Ctrl-C, a signal handler of the program). If another one comes now, the next turn does the rest."""
        self._interrupted = interruption
        self.agenda.due |= ALL
        if self._service is not None:
            self._service.undo_turn(interruption)
        self._end_turn()
        self._interrupted = None

    def _check_place(self, now_ns: int) -> None:
        """Look now and then whether the folder is in its place, for nobody rings when it is removed. Raises
        ConnectionError: the next command, or the next attempt, opens the store that is at the path then."""
        self._place_due_ns = now_ns + PLACE_NS
        if self.is_open and not self.store.is_in_place():
            self._abandon()
            raise ConnectionError(str(StoreRemoved(self.store.folder)))

    def _abandon(self) -> None:
        """Close every session: the store is no longer at its path. Clients come back to what is there now."""
        with self.lock:
            if _hosts.pop(self.store, None) is not None:
                self._users = 0
                self._shut()

    def patience_s(self) -> float:
        """Return the longest wait without calling `look`."""
        return min(BOUND_SECONDS, self.timers.next_s())

    def _close_run(self) -> None:
        self._run_bytes = 0
        end_turn(self.agenda)

    def _end_turn(self) -> None:
        self._in_turn = True
        self._run_bytes = 0
        service = self._service
        while self._leaving and service is not None:
            service.leave(self._leaving.popleft())
        if service is not None and service.giving_back and self.timers.are_due:
            self.timers.run()  # no reader is there who would
        end_turn(self.agenda)
        if service is not None:
            while service.takers or service.owed:
                service.settle_taken()
                end_turn(self.agenda)
            service.end_turn()
            self.syncing.late()  # its cron writes too, and law 10 holds for that
        self._in_turn = False

    def _refusal(self, failure: StoreError) -> Exception:
        """Return the error that a connection would have read."""
        text = self._commands().refused(failure).decode()
        error: Exception = BaseParser.parse_error(text)  # type: ignore[no-untyped-call]
        return error


def _nothing() -> None:
    """The work of a turn that has only its end."""


def _holds_publishers(txn: Txn) -> bool:
    """Whether there is something that a program which only publishes has to heed, too."""
    return shared_settings.has_users(txn) or replica_stream.is_there(txn)


def _spare(store: Store) -> bool:
    """Let go of what only keeps the store open for a moment. Returns whether something did."""
    host = _hosts.get(store)
    if host is None or host.spared_by is None:
        return False
    host.spared_by(host)
    _close_all_waiting()
    return True


def _close_all_waiting() -> None:
    while _closings:
        _closings.popleft()._let_go()


def _close_waiting() -> None:
    while _closings and _opening.acquire(blocking=False):
        try:
            _close_all_waiting()
        finally:
            _opening.release()


def _close_all() -> None:
    with _opening:
        for host in list(_hosts.values()):
            host._end()


def _forget_in_child() -> None:
    global _opening
    for host in _hosts.values():
        host._leave_to_parent()
    _hosts.clear()
    _closings.clear()
    _opening = threading.RLock()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_in_child)
