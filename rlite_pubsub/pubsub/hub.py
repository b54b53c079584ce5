"""The live names of one process: who holds them, the routes to them, and the turn's end.

Laws kept here:
 1. publish: route -> append -> COMMIT -> ring. Messages gather in runs during a turn of the loop, and leave at its end.
 2. subscribe: write the records -> COMMIT -> reply. The records of a turn are written in one transaction at its end,
    and no outbox is flushed before it.
 5. acknowledge after commit: where that commit fails, what it would have acknowledged is taken back and answered with
    an error instead.
 6. replay then live without a gap: a durable subscriber's session is sent nothing but its mailbox (attaching.py), after
    the turn's messages are committed to it and before the flush.
 7. publishers never wait for subscribers.

One turn: sessions are read and executed, then what is due is done: close the run, commit, flush every dirty outbox
(engine/turn.py has the order).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.replies import Push
from rlite_pubsub.pubsub.kinds import CHANNELS, KINDS, PATTERNS, SHARDS, Kind
from rlite_pubsub.pubsub.patterns import PatternIndex
from rlite_pubsub.pubsub.route import NOBODY, Address, Audience, Route, RouteCache, build_audiences
from rlite_pubsub.pubsub.session import Session
from rlite_pubsub.storage import agenda as stages
from rlite_pubsub.storage.agenda import Agenda
from rlite_pubsub.storage.errors import StoreError, StoreHeld
from rlite_pubsub.storage.mail import forms

if TYPE_CHECKING:
    from rlite_pubsub.pubsub.full_mailboxes import Arrears
    from rlite_pubsub.pubsub.neighbours import Neighbours
    from rlite_pubsub.pubsub.post import Post
    from rlite_pubsub.storage.mail.letters import MessageRun

log: Final = logging.getLogger("rlite_pubsub")

MOST_TALLIED: Final = 100_000
"""How many channels are told apart where messages are counted."""

Records = Callable[[Mapping[tuple[str, bytes], int]], int | None]
"""Writes the number of sessions that hold (database, name), 0 to remove, in one transaction; the routes version that it
made, if it is known. Raises StoreError."""

Takeback = Callable[[Exception], None]
"""Undoes in memory, and in an outbox, what a failed commit does not cover."""


class Following(Protocol):
    """The sessions that follow topics."""

    def forget(self, session: Session) -> None:
        """The session is gone."""


class ChannelRules(Protocol):
    """The rules that say which channels are retained."""

    @property
    def all(self) -> Sequence[object]:
        """Every rule."""

    def refresh(self) -> bool:
        """See whether they have changed, and go by them. Raises StoreError."""

    def of(self, name: bytes) -> object | None:
        """Return the first rule that matches a name."""


class DurableSessions(Protocol):
    """The sessions that are attached to durable subscribers."""

    due: dict[int, None]
    """Those that may have something to say."""
    call_soon: Callable[[], None]
    """Asks for another turn."""

    def detach(self, session: Session) -> bool:
        """The session is gone, or wants no more. True if it is looked at until its `let_go` is called."""

    def look(self) -> None:
        """The bell was rung, or may have been. Never fails."""

    def pump(self) -> None:
        """Say what has come: at the turn's end, after the commit and before the flush. Never fails."""

    def drained(self, session: Session) -> None:
        """React to a socket that takes again."""


class Hub:
    """Routes messages between the sessions of one process and to other processes, and keeps the store's records."""

    def __init__(
        self,
        records: Records,
        neighbours: Neighbours | None = None,
        post: Post | None = None,
        agenda: Agenda | None = None,
        rules: ChannelRules | None = None,
    ) -> None:
        """Without neighbours and post there is no other process, without rules of retention nothing is retained."""
        self.agenda = agenda = agenda or Agenda()
        agenda.at(stages.RUN, self.close_run)
        agenda.at(stages.NAMES, self._commit)
        agenda.at(stages.LETTERS, self._send)
        agenda.at(stages.FEEDS, self._pump)
        agenda.at(stages.CUT_OFF, self._end_cut_off)
        agenda.at(stages.OUTBOXES, self._flush)
        self.neighbours = neighbours
        self.post = post
        self.rules = rules
        self.retaining: ChannelRules | None = None  # the same, if there is any rule
        self.durables: DurableSessions | None = None  # see `attach_by`
        self._followers: Following | None = None
        self._rules_seen: Callable[[], None] = _nothing_else
        self._on_bell: list[Callable[[], None]] = []
        self.holders: tuple[dict[bytes, dict[Session, None]], ...] = ({}, {}, {})  # by Kind.index
        self.patterns = PatternIndex()
        self.open: Route | None = None  # the route whose run is under way
        self.dirty: list[Session] = []  # sessions with something to flush
        self.withheld: dict[Session, int] = {}  # whose outboxes wait, for the disk or a writer; see `withhold`
        self.published = 0  # messages accepted, whether anybody receives them or not
        self.delivered = 0  # copies handed to outboxes
        self.framing: dict[int, int] | None = None  # bytes of this turn's parts beside payload; while someone is slow
        self.tally: dict[bytes, int] | None = None  # messages by channel, while somebody wants to know; see `count_by`
        self._routes = (RouteCache(), RouteCache(), RouteCache())  # by Kind.index
        self.channel_routes = self._routes[CHANNELS.index].young  # most of them; what is not in it `route` finds
        self.retain: Callable[[bytes, list[bytes]], None] = _nobody_retains  # see `retain_by`
        self._runs_taken: Callable[[MessageRun], None] | None = None  # see `hand_runs_to`
        self._cut_off: list[Session] = []  # who held names when our mailbox was cut off
        self._records = records
        self._changed: dict[tuple[Kind, bytes], None] = {}  # names whose record must be written
        self._owed: dict[tuple[Kind, bytes], None] = {}  # those for which that has failed
        self._takebacks: dict[Takeback, Session] = {}  # of subscriptions
        self._unsent: dict[Takeback, Session] = {}  # of publishes to other processes
        self.postponed: list[Route] = []  # what the request under way publishes at the turn's end; see `take_postponed`
        self._held: set[Takeback] = set()  # of these, those whose sessions are withheld
        self._on_held: Callable[[StoreHeld], None] = _nobody_waits
        self._behind: StoreHeld | None = None  # why messages to other processes are kept; see `keep_letters`
        self._is_impatient = False

    # -- who takes part

    def attach_by(self, durables: DurableSessions) -> None:
        """Sessions can be attached to durable subscribers."""
        self.durables = durables

    def follow_by(self, followers: Following) -> None:
        """Sessions can follow topics."""
        self._followers = followers

    def retain_by(self, retain: Callable[[bytes, list[bytes]], None], rules_seen: Callable[[], None]) -> None:
        """`retain` makes entries of messages to a retained channel. It raises StoreError, lmdb's own errors, and
        CommandError: then there is none of them. `rules_seen` is called when the rules may have changed."""
        self.retain = retain
        self._rules_seen = rules_seen

    def call_on_bell(self, heard: Callable[[], None]) -> None:
        """The bell means something beside messages."""
        self._on_bell.append(heard)

    def hand_runs_to(self, take: Callable[[MessageRun], None] | None) -> None:
        """What other processes publish is handed to this, and to no session of this one, as it comes; None: to the
        sessions again."""
        self._runs_taken = take

    # -- subscribing

    def subscribe(self, session: Session, kind: Kind, name: bytes) -> bool:
        """Let `session` hold `name`; False if it did already."""
        return bool(self.subscribe_all(session, kind, [name])[0])

    def subscribe_all(self, session: Session, kind: Kind, names: list[bytes]) -> tuple[list[bytes], list[int]]:
        """Let `session` hold these names. Returns those that it did not hold, and how many (`Session.count_of`) it held
        once it held each of them. Raises StoreError: then it holds nothing more."""
        held, holders, changed = session.names[kind.index], self.holders[kind.index], self._changed
        count = session.count_of(kind)
        taken: list[bytes] = []
        counts: list[int] = []
        for name in names:
            if name not in held:
                if not taken:
                    self.look_around()  # so that the version which our own records make is known to be the next one
                    self._take_in()
                    self.close_run()
                    if not held:
                        held = session.names[kind.index] = {}
                taken.append(name)
                count += 1
                changed[kind, name] = None
                held[name] = None
                holding = holders.get(name)
                if holding is None:
                    holders[name] = {session: None}
                    if kind is PATTERNS:
                        self.patterns.add(name)
                else:
                    holding[session] = None
            counts.append(count)
        self._changed_names(kind, taken)
        return taken, counts

    def unsubscribe(self, session: Session, kind: Kind, name: bytes) -> bool:
        """Let go of `name`; False if `session` did not hold it."""
        before = len(session.names[kind.index])
        self.unsubscribe_all(session, kind, [name])
        return len(session.names[kind.index]) < before

    def unsubscribe_all(self, session: Session, kind: Kind, names: list[bytes]) -> list[int]:
        """Let go of these names, as far as `session` holds them. Returns how many (`Session.count_of`) it held once it
        had let go of each of them. Raises StoreError: then it holds what it held."""
        held = session.names[kind.index]
        for name in names:
            if name in held:
                self._take_in()
                break
        return self._release(session, kind, names)

    def _release(self, session: Session, kind: Kind, names: list[bytes]) -> list[int]:
        held, holders, changed = session.names[kind.index], self.holders[kind.index], self._changed
        count = session.count_of(kind)
        gone: list[bytes] = []
        counts: list[int] = []
        for name in names:
            if name in held:
                if not gone:
                    self.close_run()
                gone.append(name)
                count -= 1
                changed[kind, name] = None
                del held[name]
                holding = holders[name]
                del holding[session]
                if not holding:
                    del holders[name]
                    if kind is PATTERNS:
                        self.patterns.remove(name)
            counts.append(count)
        self._changed_names(kind, gone)
        return counts

    def forget(self, session: Session) -> bool:
        """Let go of all that a session holds, because it is gone. What a durable subscriber holds stays its own. True
        if the session is looked at until its `let_go` is called."""
        if session.follows and self._followers is not None:
            self._followers.forget(session)
        if session.feed is not None and self.durables is not None:
            return self.durables.detach(session)
        for kind in KINDS:
            names = list(session.names[kind.index])
            if names:
                self._release(session, kind, names)
        return False

    def protocol_changed(self, session: Session) -> None:
        """The session reads another version from now on: its routes are of no use any more."""
        self.close_run()
        if session.names[PATTERNS.index]:
            self._drop_routes()
        for kind in (CHANNELS, SHARDS):
            for name in session.names[kind.index]:
                self._routes[kind.index].drop(name)

    def _take_in(self) -> None:
        """Take in what others published before a change, for the sessions that held the names until then. Raises
        StoreError."""
        own = self.neighbours.own if self.neighbours is not None else None
        if own is not None and self.post is not None and self.post.may_have_come:
            while self._take_slice(self.post, own):
                pass

    def _changed_names(self, kind: Kind, names: list[bytes]) -> None:
        """These have other receivers now, of which others are to know."""
        if not names:
            return
        self.agenda.due |= stages.NAMES
        if kind is PATTERNS:
            self._drop_routes()
        else:
            routes = self._routes[kind.index]
            if routes.holds_any:
                for name in names:
                    routes.drop(name)

    def _drop_routes(self) -> None:
        for routes in self._routes:
            routes.drop_all()

    # -- publishing

    def look_around(self) -> None:
        """Notice what other processes have subscribed to. Asked before each publish. Raises StoreError."""
        neighbours = self.neighbours
        if neighbours is not None and neighbours.hint[0] != neighbours.seen:
            neighbours.refresh()
            self.look_at_rules()

    def look_at_rules(self) -> None:
        """Go by the rules of retention as they are now, in all routes. Raises StoreError."""
        if self.rules is not None:
            self.rules.refresh()
            self.retaining = self.rules if self.rules.all else None
            self._rules_seen()
        self._drop_routes()

    @property
    def hears_channels(self) -> bool:
        """True if anybody receives messages to any channel, or something is retained."""
        holders, neighbours = self.holders, self.neighbours
        return (
            bool(holders[CHANNELS.index])
            or bool(holders[PATTERNS.index])
            or self.retaining is not None
            or (neighbours is not None and neighbours.any)
        )

    def route(self, kind: Kind, name: bytes) -> Route:
        """Return the receivers of a message to `name` (CHANNELS or SHARDS). Raises StoreError."""
        holders, neighbours = self.holders, self.neighbours
        if (
            name not in holders[kind.index]
            and (kind is SHARDS or not holders[PATTERNS.index])
            and (neighbours is None or not neighbours.any)
            and self.retaining is None
        ):
            return NOBODY
        routes = self._routes[kind.index]
        route = routes.get(name)
        if route is None:
            route = self._build(kind, name)
            routes.put(name, route)
        return route

    def join_run(self, route: Route, tails: list[bytes]) -> None:
        """Deliver these, each `<length>\\r\\n<payload>`, to the local sessions, in order with the rest."""
        if self.open is not route:
            if self.open is not None:
                self.close_run()
            self.open = route
            self.agenda.due |= stages.RUN
        route.tails += tails

    def receive(self, own: int) -> None:
        """Hand on what other processes have put into our mailbox. The bell must have been cleared before.

        Much of it is handed on in as many turns as it takes, for which our own bell is rung.
        """
        if self.post is None:
            return
        for heard in self._on_bell:
            heard()
        if self.durables is not None:
            self.durables.look()
        if self._take_slice(self.post, own):
            self.post.ring(own)

    def _take_slice(self, post: Post, own: int) -> bool:
        """Take some of the mailbox; return whether there is more."""
        try:
            runs, has_more = post.receive(own)
        except StoreError as failure:
            log.warning("Can't take other processes' messages out of the mailbox: %s", failure)
            return False
        arrears = post.arrears
        if arrears.lost or arrears.is_cut:
            self._tell_losses(arrears)
        for run in runs:
            self._hand_on(run)
        return has_more

    def _tell_losses(self, arrears: Arrears) -> None:
        """Law 8. Our mailbox was at its limit: announce it to the local sessions, in place of what was lost."""
        lost, is_cut = arrears.take()
        if is_cut:
            self._cut_off = [session for session in self._holding() if session.feed is None]
            self.agenda.due |= stages.CUT_OFF
        for one in lost:
            kind = KINDS[one.kind]
            for audience in self._audiences_here(kind, one.name):
                gap = Push([b"gap", one.name, one.messages * len(audience.form), one.since_ms])
                for session in audience.sessions:
                    session.send(encode(gap, session.protocol))
                    arrears.gaps += 1

    def _holding(self) -> dict[Session, None]:
        """Return all who hold any name."""
        every = [holders for kind in KINDS for holders in self.holders[kind.index].values()]
        return {session: None for holders in every for session in holders}

    def _end_cut_off(self) -> None:
        """Law 8: nobody knows what they have missed, so their connections end."""
        cut_off, self._cut_off = self._cut_off, []
        for session in cut_off:
            session.cut_off()

    def _hand_on(self, run: MessageRun) -> None:
        if self._runs_taken is not None:
            self._runs_taken(run)
            return
        kind = KINDS[run.kind]
        try:
            route = self.route(kind, run.name)
        except StoreError:  # only local sessions matter now, and what was taken must not be lost
            route = Route(self._audiences_here(kind, run.name), name=run.name)
        if route.audiences:
            from rlite_pubsub.pubsub.post import tails_of  # there, if anything has come through it

            tails = tails_of(run)
            self.delivered += len(tails) * route.receivers_here
            self.join_run(route, tails)

    def count_by(self, tally: dict[bytes, int] | None) -> None:
        """Count the messages that are received here in this, by the name of their channel, from now on; None: count
        them no more."""
        self.tally = tally

    def weigh_parts(self, is_anybody_slow: bool) -> None:
        """Note what of a part is not payload while somebody is slow."""
        self.framing = (self.framing or {}) if is_anybody_slow else None

    def close_run(self) -> None:
        """Put what was published so far into the outboxes. Needed before anything else is sent to a receiver."""
        route = self.open
        if route is None:
            return
        self.open = None
        tails, route.tails = route.tails, []
        dirty, framing = self.dirty, self.framing
        tally = self.tally
        if tally is not None and (route.name in tally or len(tally) < MOST_TALLIED):
            tally[route.name] = tally.get(route.name, 0) + len(tails)
        for audience in route.audiences:
            data = audience.encode(tails)
            if framing is not None:
                framing[id(data)] = audience.framing_bytes(tails, data)
            for session in audience.sessions:
                session.said.append(data)
                if not session.dirty:
                    session.dirty = True
                    dirty.append(session)
        self.agenda.due |= stages.OUTBOXES if framing is None else stages.OUTBOXES | stages.SPILL

    def _audiences_here(self, kind: Kind, name: bytes) -> list[Audience]:
        """Return the sessions of this process that receive a message to `name`."""
        holders = self.holders[kind.index].get(name)
        matches: list[tuple[bytes, Iterable[Session]]] = []
        if kind is CHANNELS and len(self.patterns):
            of_patterns = self.holders[PATTERNS.index]
            matches = [(pattern, of_patterns[pattern]) for pattern in self.patterns.matching(name)]
        return build_audiences(name, kind, holders or (), matches)

    def _build(self, kind: Kind, name: bytes) -> Route:
        audiences = self._audiences_here(kind, name)
        is_retained = kind is CHANNELS and self.retaining is not None and self.retaining.of(name) is not None
        topic = name if is_retained else None
        neighbours = self.neighbours
        if neighbours is not None and neighbours.any:
            elsewhere = neighbours.receivers(kind, name)
            durable = neighbours.durable.receivers(kind, name)
            if elsewhere or durable:
                count = sum(elsewhere.values()) + sum([forms.count(packed) for _, packed in durable])
                return Route(audiences, Address(kind, name, tuple(elsewhere), durable), count, topic, name)
        return Route(audiences, None, 0, topic, name) if audiences or is_retained else NOBODY

    # -- the turn's end

    def on_failed_commit(self, session: Session, takeback: Takeback) -> None:
        """Have `takeback` called if this session's records of this turn cannot be committed; dropped once they are."""
        self._takebacks[takeback] = session

    def _send(self) -> None:
        try:
            self._send_all()
        except StoreHeld as held:
            self._hold(self._unsent, held)
        except StoreError as failure:
            self._say_unsent(failure)

    def _pump(self) -> None:
        durables = self.durables
        if durables is not None:
            durables.pump()
            if durables.due:
                self.agenda.later |= stages.FEEDS
                durables.call_soon()

    def _flush(self) -> None:
        dirty, self.dirty = self.dirty, []
        if self.withheld:
            dirty = [session for session in dirty if session not in self.withheld]
        for session in dirty:
            session.dirty = False
            try:
                if session.outbox.flush(session) and session.closing:
                    session.close_now()
            except Exception:  # our own fault: the others have something to be told, too
                log.exception("Unexpected failure while writing to %s", session.address)
                session.abort()

    def withhold(self, session: Session) -> None:
        """Let nothing out to it until `let_go` has been called as often."""
        self.withheld[session] = self.withheld.get(session, 0) + 1

    def let_go(self, session: Session) -> None:
        """Let out what was withheld, unless something else keeps it."""
        left = self.withheld[session] - 1
        if left:
            self.withheld[session] = left
            return
        del self.withheld[session]
        if session.dirty:
            self.dirty.append(session)
            self.agenda.due |= stages.OUTBOXES

    def on_failed_send(self, session: Session, takeback: Takeback) -> None:
        """Have `takeback` called if what this session has published in this turn cannot be put into other processes'
        mailboxes."""
        self._unsent[takeback] = session

    def take_postponed(self) -> list[Route]:
        """The routes of what a request has published, once it is answered: its reply rests on what becomes of that."""
        routes, self.postponed = self.postponed, []
        return routes

    def send_due(self) -> None:
        """Send what was published so far to other processes now, and not at the turn's end. Raises StoreHeld: then it
        waits, and so must everything after it."""
        try:
            self._send_all()
        except StoreHeld:
            raise
        except StoreError as failure:
            self._say_unsent(failure)

    def _send_all(self) -> None:
        if self.post is not None and self.post.is_due:
            if self._behind is not None:
                raise self._behind.with_traceback(None)
            self.post.send()
        self._acknowledge(self._unsent)

    def _say_unsent(self, failure: StoreError) -> None:
        log.warning("Can't publish to other processes: %s", failure)
        self._take_back_sent(failure)

    def _take_back_sent(self, failure: StoreError) -> None:
        if self.post is not None:
            self.post.drop()
        takebacks = list(self._unsent)
        self._acknowledge(self._unsent)
        for takeback in takebacks:
            takeback(failure)

    def _commit(self) -> None:
        try:
            self._write(self._owed | self._changed if self._owed else self._changed)
        except StoreHeld as held:
            self._hold(self._takebacks, held)
            return
        except StoreError as failure:
            log.warning("Can't write subscriptions to the store: %s", failure)
            self._take_back_names(failure)
        self._acknowledge(self._takebacks)
        self._changed = {}

    def _take_back_names(self, failure: StoreError) -> None:
        takebacks = list(reversed(self._takebacks))
        self._acknowledge(self._takebacks)
        for takeback in takebacks:
            takeback(failure)
        self._owed |= self._changed
        self._changed = {}

    # -- while another process is in the middle of writing

    def call_when_held(self, held: Callable[[StoreHeld], None]) -> None:
        """Call `held` when a turn's end can't write. It has `write_held` called when that can be, or `give_up_held`."""
        self._on_held = held

    def _hold(self, takebacks: Mapping[Takeback, Session], held: StoreHeld) -> None:
        """Law 5: sessions that wait for this commit get no reply until it is done, or has failed."""
        for takeback, session in takebacks.items():
            if takeback not in self._held:
                self._held.add(takeback)
                self.withhold(session)
        self._on_held(held)

    def _acknowledge(self, takebacks: dict[Takeback, Session]) -> None:
        """Let go of those who waited: it is done, or has failed."""
        for takeback, session in takebacks.items():
            if takeback in self._held:
                self._held.discard(takeback)
                self.let_go(session)
        takebacks.clear()

    def write_held(self) -> None:
        """Write what a turn's end could not."""
        if self._changed:
            self._commit()
        if self.post is not None and self.post.is_due:
            if self._behind is None:
                self._send()
            else:  # at the turn's end, behind what they wait for
                self.agenda.due |= stages.LETTERS

    def give_up_held(self, held: StoreHeld) -> None:
        """Give up waiting, because it takes too long: the sessions that wait get an error. Subscriptions that have
        ended are written when possible; messages that nobody else has received are dropped."""
        if self._changed:
            self._take_back_names(held)
        if self.post is not None and self.post.is_due:
            if self._behind is None:
                self._say_unsent(held)
            else:
                self._behind, self._is_impatient = None, True
                self._send()

    def keep_letters(self, held: StoreHeld | None) -> None:
        """Keep messages to other processes until something else is written that comes before them; None: it is. Who
        has waited for that for too long waits no more: they go without it."""
        if held is None:
            self._behind, self._is_impatient = None, False
        elif not self._is_impatient:
            self._behind = held.with_traceback(None)

    def check_writer(self) -> None:
        """Check that the records of names can be written now. Raises StoreHeld."""
        if self.neighbours is not None:
            self.neighbours.live.check_writer()

    def settle(self) -> None:
        """Try again to write what could not be written: called by the cron, for the store may have room again."""
        if self._owed:
            try:
                self._write(self._owed)
            except StoreError as failure:
                log.debug("Can't write subscriptions to the store yet: %s", failure)

    def _write(self, changed: Iterable[tuple[Kind, bytes]]) -> None:
        counts: dict[tuple[str, bytes], int] = {}
        for kind, name in changed:
            holding = self.holders[kind.index].get(name)
            counts[kind.database, name] = 0 if holding is None else len(holding)
        self.record(counts)
        self._owed = {}

    def record(self, counts: Mapping[tuple[str, bytes], int]) -> None:
        """Have others know how much of (database, name) is held here. Raises StoreError."""
        version = self._records(counts)
        if self.neighbours is not None and version is not None:
            self.neighbours.saw_own(version)

    # -- counting

    def session_count(self, kind: Kind, name: bytes) -> int:
        """Return how many sessions of this process hold `name`."""
        return len(self.holders[kind.index].get(name, ()))

    def session_count_everywhere(self, kind: Kind, name: bytes) -> int:
        """Return how many sessions of all processes hold `name`. Raises StoreError."""
        self.look_around()
        here = self.session_count(kind, name)
        if self.neighbours is None or not self.neighbours.any:
            return here
        return here + self.neighbours.session_count(kind, name)

    def held_everywhere(self, kind: Kind) -> Iterable[bytes]:
        """Return all names of a kind that some session of any process holds. Raises StoreError."""
        self.look_around()
        here = self.holders[kind.index]
        if self.neighbours is None or not self.neighbours.any:
            return here
        return dict.fromkeys([*here, *self.neighbours.held(kind)])


def _nobody_waits(held: StoreHeld) -> None:
    """Do nothing: without an engine the next turn tries again."""


def _nobody_retains(name: bytes, tails: list[bytes]) -> None:
    """Retain nothing: without keys no channel is retained."""


def _nothing_else() -> None:
    """A bell that only messages ring."""
