"""Requests that wait until another process has finished writing: a line for each of the store's writer locks.

Law 9: nobody waits for the stopped. A request that cannot have the lock (storage/locks/writer_lock.py) is held back
before it has changed anything, with everything its session sends after it. As soon as the lock is free, the line goes
on in the order of arrival; later requests stand behind it. After `writer-patience` they are answered with an error that
names the holder. What a turn's end could not write waits here, too, and as long: subscriptions, and messages to other
processes. Everything else goes on. The same happens while a thread of this process writes beside the loop
(waits/write_beside.py); but that thread is waited for until it has finished, since it does not stop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from rlite_pubsub.engine.waits.waiter import Blocked

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.waits.alarm import CallLater
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.keyspace.news import Key
    from rlite_pubsub.pubsub.hub import Hub
    from rlite_pubsub.storage.environment import Environment
    from rlite_pubsub.storage.errors import StoreHeld
    from rlite_pubsub.storage.locks.writer_lock import Holder, WriterLock

log = logging.getLogger("rlite_pubsub")

DATA = "data.mdb"
HELD_UP: Final = Blocked()
"""What a session in line is blocked by."""
LOOK_S = 0.002
LATE_S = 0.1
"""A look that comes so much too late was ours to take: this process had no processor, or was stopped itself. Then
nobody is refused for so long."""
SAY_AFTER_S = 1.0
"""How long a lock is held before the log mentions it."""


class Holding(NamedTuple):
    """The process that keeps others from writing, for how long, and how many wait for it here."""

    environment: str
    holder: Holder
    seconds: float
    waiting: int


class WriterWaits:
    """The sessions that wait to write."""

    def __init__(
        self,
        environments: Iterable[Environment],
        hub: Hub,
        keyspace: Keyspace,
        call_later: CallLater,
        patience_s: Callable[[], float],
    ) -> None:
        self._hub = hub
        self._keyspace = keyspace
        self._call_later = call_later
        self._patience_s = patience_s
        self._lines = [
            _Line(environment.path.name, environment.writer)
            for environment in environments
            if environment.writer is not None
        ]
        self._served: Client | None = None  # the session just let go, which may have to wait again
        self._behind: _Line | None = None  # in this line
        self._hopeless: Client | None = None  # the session that has waited long enough, and is answered now
        self._keys: dict[Key, None] = {}  # keys with which blocked sessions could have been served
        self._is_looking = False
        self._look_due = 0.0
        self.waited = 0  # how often a session has had to stand in line
        self.refused = 0  # how many requests were answered with an error
        hub.call_when_held(self._note)

    def park(self, session: Client, held: StoreHeld) -> bool:
        """Hold a request, to be handed in again when the session is resumed. Returns False if it has waited long
        enough, and must be answered."""
        if session is self._hopeless:
            self.refused += 1
            return False
        line = self._line_of(held)
        session.wait_for(HELD_UP)
        if session is self._served:
            self._behind = line
        if session is not self._served or session not in line.sessions:
            self.waited += 1
            line.sessions[session] = monotonic() + self._patience_s()
            line.lock.line += 1
        self._look_later()
        return True

    def begin_whole(self) -> None:
        """Begin an atomic part, up to `end_whole`: nothing in it can stand in line. It waits a little longer, unless
        the holder is stopped, before it is refused."""
        for line in self._lines:
            line.lock.begin_whole()

    def end_whole(self) -> None:
        """End the atomic part."""
        for line in self._lines:
            line.lock.end_whole()

    def wait_for(self, key: Key) -> None:
        """Remember that clients blocked on this key could not be served: they look again later."""
        self._keys[key] = None
        self._look_later()

    def forget(self, session: Client) -> None:
        """Forget a closed session."""
        for line in self._lines:
            line.remove(session)

    def cron(self) -> bool:
        """Return whether keys are known to be writable."""
        held = [line for line in self._lines if line.lock.is_held]
        if held:
            self._look_later()
        return not any(line.name == DATA for line in held)

    @property
    def is_held(self) -> bool:
        """True if another process is known to be writing."""
        return any(line.lock.is_held for line in self._lines)

    @property
    def waiting(self) -> int:
        """How many sessions stand in line."""
        return sum(len(line.sessions) for line in self._lines)

    def holdings(self) -> list[Holding]:
        """Return the processes that keep others from writing now."""
        found = []
        for line in self._lines:
            holder = line.lock.holder() if line.lock.is_held else None
            if holder is not None:
                found.append(Holding(line.name, holder, line.lock.held_s(), len(line.sessions)))
        return found

    def _note(self, held: StoreHeld) -> None:
        """Note that the turn's end could not write."""
        line = self._line_of(held)
        line.hold_pending(monotonic() + self._patience_s())
        self._look_later()

    def _line_of(self, held: StoreHeld) -> _Line:
        """Return the line of its environment, whichever of the environment's locks (such as data.safe) was held."""
        return next(line for line in self._lines if line.name.partition(".")[0] == held.path.stem)

    # -- looking

    def _look_later(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            self._look_due = monotonic() + LOOK_S
            self._call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self._is_looking = False
        now = monotonic()
        if now - self._look_due > LATE_S:  # nobody runs out of patience before somebody has looked
            for line in self._lines:
                line.wait_at_least_until(now + LATE_S)
        try:
            for line in self._lines:
                if line.is_idle:
                    continue
                if line.lock.is_free():
                    self._go_on(line)
                self._give_up(line)  # for those who are left: it is held, again or still
                line.tell()
            if self._keys and not any(line.lock.is_held for line in self._lines):
                keys, self._keys = self._keys, {}
                self._keyspace.news.show(keys)
        finally:  # whatever went wrong with one session, those behind it still wait
            if self._keys or not all(line.is_idle for line in self._lines):
                self._look_later()

    def _go_on(self, line: _Line) -> None:
        line.lock.begin_serving()
        try:
            if line.let_pending_go():
                self._hub.write_held()
            for session in list(line.sessions):
                if session not in line.sessions:
                    continue  # it is gone by now
                self._served, self._behind = session, None
                session.go_on()
                if self._behind is line:
                    return  # it is held again, by the next one
                line.remove(session)
        finally:
            self._served = self._behind = None
            line.lock.end_serving()

    def _give_up(self, line: _Line) -> None:
        now = monotonic()
        lock = line.lock
        if lock.is_written_here or now < lock.given_back_at + self._patience_s():
            return  # their patience is for others
        if line.pending_until <= now and line.let_pending_go():
            self._hub.give_up_held(line.lock.held())
        for session, until in list(line.sessions.items()):
            if until > now:
                break
            if session not in line.sessions:
                continue
            line.remove(session)
            self._hopeless = session
            session.go_on()
            self._hopeless = None


class _Line:
    """The line for one lock."""

    def __init__(self, name: str, lock: WriterLock) -> None:
        self.name = name
        self.lock = lock
        self.sessions: dict[Client, float] = {}  # how long each waits, the oldest first
        self.pending_until = 0.0  # how long a turn's unwritten end waits; 0: there is none
        self._told: Holder | None = None
        self._told_at = 0.0

    def hold_pending(self, until: float) -> None:
        """Let a turn's end that could not write wait, as long as the first that could not."""
        self.pending_until = self.pending_until or until

    def wait_at_least_until(self, moment: float) -> None:
        """Extend all waits to this moment."""
        if self.pending_until:
            self.pending_until = max(self.pending_until, moment)
        for session, until in self.sessions.items():
            self.sessions[session] = max(until, moment)

    def let_pending_go(self) -> bool:
        """End the wait of a turn's unwritten end; return whether there was one."""
        was_pending, self.pending_until = bool(self.pending_until), 0.0
        return was_pending

    @property
    def is_idle(self) -> bool:
        return not (self.sessions or self.pending_until or self.lock.is_held or self._told is not None)

    def remove(self, session: Client) -> None:
        if self.sessions.pop(session, None) is not None:
            self.lock.line -= 1

    def tell(self) -> None:
        """Log who holds the lock once that has lasted, and the end of it."""
        lock = self.lock
        if not lock.is_held:
            if self._told is not None:
                log.warning("%s can be written again, after %.1f seconds", self.name, monotonic() - self._told_at)
                self._told = None
        elif self._told is None and lock.held_s() >= SAY_AFTER_S:
            holder = lock.holder()
            if holder is not None and not lock.is_written_here:
                self._told, self._told_at = holder, monotonic() - lock.held_s()
                log.warning(
                    "%s could not be written for %.1f seconds: %s, is writing. New writes "
                    "wait until it goes on or ends.",
                    self.name,
                    lock.held_s(),
                    holder,
                )
