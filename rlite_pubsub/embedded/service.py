"""The command side of a host: settings, statistics and sessions.

It is made when the first session is: a program that only publishes needs none of it, and would wait for its import.
"""

from __future__ import annotations

import importlib
import logging
import time
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

import rlite_pubsub.commands.connection.client
import rlite_pubsub.commands.connection.login  # what every connection says first
import rlite_pubsub.commands.pubsub.pubsub  # noqa: F401
from rlite_pubsub.embedded.giving_back import GivingBack
from rlite_pubsub.embedded.handing import Handing, handed_feed
from rlite_pubsub.embedded.session import EmbeddedSession
from rlite_pubsub.engine.dispatch import execute
from rlite_pubsub.engine.engine import Engine, Surroundings
from rlite_pubsub.engine.refusal import Acknowledged, take_back, unwritten
from rlite_pubsub.engine.settings.followed import durability
from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.engine.table import TABLE
from rlite_pubsub.engine.turn import end_turn
from rlite_pubsub.pubsub.kinds import CHANNELS
from rlite_pubsub.pubsub.publish import send, unsent
from rlite_pubsub.storage.errors import InterruptedTurn, StoreError
from rlite_pubsub.storage.store import UNLIMITED_QUOTA_BYTES, Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.embedded.session import TurnTaker
    from rlite_pubsub.engine.delivery import Delivery
    from rlite_pubsub.engine.waits.giving_back import Taken
    from rlite_pubsub.keyspace.topic.cold_shelf import Shelf
    from rlite_pubsub.pubsub.route import Route
    from rlite_pubsub.storage.checkpoints.syncing import Syncing
    from rlite_pubsub.storage.environment import Txn

log: Final = logging.getLogger("rlite_pubsub")

CRON_SECONDS: Final = 0.1
_PUBLISH: Final = TABLE.commands[b"publish"]
_PUBLISH_WORDS: Final = frozenset((b"PUBLISH", b"publish"))
TABLE.declare_later(lambda: importlib.import_module("rlite_pubsub.commands.all"))


class Service:
    """What the sessions of one host share. All methods are called under the host's lock."""

    def __init__(self, delivery: Delivery, turns: TurnTaker, syncing: Syncing) -> None:
        store = delivery.store
        settings = Settings()
        settings.set("dir", [str(store.folder).encode()])
        settings.set("port", [b"0"])
        settings.set("appendfsync", [store.data.durability.encode()])
        if store.data.quota_bytes != UNLIMITED_QUOTA_BYTES:
            settings.set("store-quota", [b"%d" % store.data.quota_bytes])
        self.hub = delivery.hub
        self._agenda = delivery.agenda
        self._turns = turns
        self._syncing = syncing
        self._data = store.data
        self.takers: list[EmbeddedSession] = []  # for which something was popped in the turn under way
        self.owed: list[list[Taken]] = []  # to be put back
        self.giving_back: list[GivingBack] = []  # what is put back waits for another process that is writing
        self.may_have_written = False  # to data.mdb
        surroundings = Surroundings(call_later=self._call_later, syncing=syncing, feed=handed_feed)
        self.engine = Engine(settings, delivery.hub, delivery.rules, self._data, delivery, surroundings)
        self.engine.key_commit.withhold_by(self._withhold, self._sync_first)
        keyspace = self.engine.keyspace
        keyspace.cold.read_by(partial(_shelf, store, settings))
        keyspace.cold.keep(settings["cold-grace"] * 1000)
        assert self.engine.durables is not None
        self.handing = Handing(
            self._data, self.engine.durables, turns.timers, turns.look, turns.turn, self.engine.clock
        )
        settings.on_change("appendfsync", lambda _: self._data.sync_by(durability(settings)))
        self._cron_due = 0.0
        self._cron_is_set = False  # the waiting thread does what a turn has left to do, and what is due then

    def _call_later(self, seconds: float, callback: Callable[[], None]) -> None:
        """A waiting thread must not wait for longer than this: it has to make the call."""
        turns = self._turns
        is_first = seconds < turns.timers.next_s()
        turns.timers.add(seconds, callback)
        if is_first:
            for session in list(turns.waiting):
                session.rouse()

    def begin_session(self) -> EmbeddedSession:
        """Return the session of a new client."""
        session = EmbeddedSession(self.engine, self._turns, self.handing, self.execute_all, self.takers)
        self.engine.sessions[session.id] = session
        self.engine.stats.connections_received += 1
        return session

    def forget(self, session: EmbeddedSession) -> None:
        """Forget a closed session altogether."""
        self.engine.forget(session)
        self.hub.forget(session)

    def leave(self, session: EmbeddedSession) -> None:
        """Close a session whose program has closed the connection."""
        session.has_left = True
        taken = session.leave()
        if taken:
            self.owed.append(taken)

    def settle_taken(self) -> None:
        """After the turn's commit, if there are `takers` or something is `owed`: what was popped is on its way to its
        programs, or goes back, in one more turn."""
        takers = self.takers
        while takers:
            takers[-1].settle_taken()
            if takers[-1].has_left:
                self.leave(takers[-1])
            takers.pop()
        while self.owed:
            giving = GivingBack(self.engine, self._turns, self.handing, self.execute_all, self.owed[0], self._given)
            self.engine.sessions[giving.id] = giving
            self.giving_back.append(giving)
            self.may_have_written = True
            self.execute_all(giving, giving.requests())
            self.owed.pop(0)

    def _given(self, giving: GivingBack) -> None:
        self.giving_back.remove(giving)
        giving.close_now()

    def sessions(self) -> list[EmbeddedSession]:
        """Return all sessions."""
        return [session for session in self.engine.sessions.values() if isinstance(session, EmbeddedSession)]

    def execute_all(self, session: EmbeddedSession, requests: list[list[bytes]]) -> None:
        """Execute requests within a turn, until the session is held."""
        if session.is_held:
            session.hold(requests)
            return
        session.last_active = self.engine.clock()
        engine = self.engine
        for number, request in enumerate(requests):
            is_publish = session.plain and engine.quiet and len(request) == 3 and request[0] in _PUBLISH_WORDS
            if is_publish and self._publish(session, request):
                continue
            if session.closing:
                break
            self.may_have_written = True
            if not execute(session, request):
                session.hold(requests[number:])
                break
            if session.blocked is not None:
                session.hold(requests[number + 1 :])
                break

    def undo_turn(self, interruption: BaseException) -> None:
        """Undo what the turn under way has not committed: this exception came in the middle of it."""
        self.engine.undo_turn(InterruptedTurn(interruption))

    def _publish(self, session: EmbeddedSession, request: list[bytes]) -> bool:
        """Answer a PUBLISH that nobody watches; what goes to other processes is sent at the turn's end, all at once.
        False, and nothing was done, if it is not so simple."""
        start = perf_counter_ns()
        hub = self.hub
        _, name, payload = request
        try:
            hub.look_around()
            route = hub.route(CHANNELS, name)
            if route.topic is not None:
                return False
            send(hub, route, [b"%d\r\n%b" % (len(payload), payload)])
        except StoreError:
            return False
        reply = route.reply
        if route.address is not None:
            hub.on_failed_send(session, partial(_take_back_unsent, session, route, reply))
            self.may_have_written = self.may_have_written or bool(route.address.durable)
        hub.published += 1
        session.send(reply)
        session.last_command = _PUBLISH
        self.count_published(1, perf_counter_ns() - start)
        return True

    @property
    def allows_short_way(self) -> bool:
        """True if nobody watches, delays, restricts or measures single commands. Any command may change that."""
        return self.engine.quiet and self.engine.users.limits is None

    def _withhold(self, replies: Acknowledged) -> None:
        """Law 5: under appendfsync always the replies wait for the disk."""
        self._syncing.late()
        if self._data.durability == "always":
            self._sync_first(replies)

    def _sync_first(self, replies: Acknowledged) -> None:
        """The replies wait for the disk."""
        try:
            self._syncing.now()
        except StoreError as failure:
            log.warning("Can't sync: %s", failure)
            take_back(replies, failure)

    def end_turn(self) -> None:
        """Do what is left to do after the hub's turn has ended."""
        now = time.monotonic()
        if now >= self._cron_due:
            self._cron_due = now + CRON_SECONDS
            self.engine.cron(self.engine.clock())
            do = self.engine.chores.do
            do("to look after slow readers", self.engine.pressure.check_all)
            do("to settle names", self.hub.settle)
            do("to look after durable subscribers", self.engine.tend_durables)
            do("to end a turn", lambda: end_turn(self._agenda))
        elif not self._cron_is_set:
            self._cron_is_set = True
            self._turns.timers.add(self._cron_due - now, self._cron_again)

    def _cron_again(self) -> None:
        """The turn that this belongs to sees to it."""
        self._cron_is_set = False

    def count_published(self, count: int, nanoseconds: int) -> None:
        """Count PUBLISHes that went the short way."""
        self.engine.stats.count_calls(_PUBLISH, count, nanoseconds // 1000)

    def refused(self, failure: StoreError) -> bytes:
        """Return the text of a PUBLISH's error, counted as such."""
        text = unwritten(failure)
        self.engine.stats.count_call(_PUBLISH, 0, failed=True)
        self.engine.stats.count_error(text)
        return text


def _take_back_unsent(session: EmbeddedSession, route: Route, reply: bytes, failure: Exception) -> None:
    session.take_back(reply, unsent(route, failure))


def _shelf(store: Store, settings: Settings, txn: Txn) -> Shelf | None:
    """Blocks are read by the thread that asks for what is in them: it waits for its reply in any case."""
    from rlite_pubsub.cold.reader import BlockReader, is_installed
    from rlite_pubsub.keyspace.topic.cold_shelf import Shelf
    from rlite_pubsub.storage.cold import cold_home

    if not is_installed():
        return None
    return Shelf(BlockReader(store.folder, cold_home.get(txn)), None, lambda: int(settings["cold-cache"]))
