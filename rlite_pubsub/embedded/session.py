"""A session whose peer lives in this process: there is no socket, what is sent to it waits here until it is taken.

Law 7: publishers never wait for subscribers. What a slow reader leaves waits in its outbox (pubsub/outbox.py), as for a
connection of a server. All methods are called under the host's lock.

The mailbox of a durable subscriber is its session's backlog: a chunk of it is in the inbox, which is handed out by the
message, for that is how handing.py knows what has arrived.

What was popped for this session is noted until its program has the reply, or the turn in which it was popped was
undone. A session that ends before puts it back.

    popped (this turn)   |   taken: committed, in the inbox   |   handed to redis-py   |   answered, or the next request
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from rlite_pubsub.embedded.errors import CutOff
from rlite_pubsub.embedded.handing import HandedFeed
from rlite_pubsub.engine.refusal import refusal, replace
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.stats.footprint import Footprint
from rlite_pubsub.pubsub.outbox import TakenOutbox

if TYPE_CHECKING:
    from rlite_pubsub.embedded.handing import Handing
    from rlite_pubsub.embedded.waking import Timers
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.engine.waits.giving_back import Taken

MAX_REPLAYED_BYTES = 1 << 20
"""Of topics that it follows: what its reader has not taken is in the topic as well."""
SESSION_BYTES = 2048
"""What an idle session costs; for CLIENT LIST's tot-mem."""


class TurnTaker(Protocol):
    """Takes the turns of this process's sessions, one at a time."""

    waiting: set[EmbeddedSession]
    """Those whose readers wait for input."""
    timers: Timers

    def turn(self, work: Callable[[], None]) -> None:
        """Do some work as a turn."""

    def look(self) -> None:
        """Take in what others have published for us, if the bell was rung."""

    def close_run(self) -> None:
        """Put what was published into the inboxes."""

    def forget(self, session: EmbeddedSession) -> None:
        """Forget a closed session altogether."""


Execute: TypeAlias = Callable[["EmbeddedSession", list[list[bytes]]], None]
"""Executes requests within a turn, until the session is held."""


class EmbeddedSession(CommandSession):
    """A client of this process. Its password is the folder's mode: a program that can open the store may use it."""

    __slots__ = (
        "_execute",
        "_handing",
        "_held",
        "_popped",
        "_takers",
        "_turns",
        "_wake",
        "ended_by",
        "handed",
        "has_left",
        "is_open",
        "taken",
    )

    outbox: TakenOutbox

    def __init__(
        self,
        engine: Engine,
        turns: TurnTaker,
        handing: Handing,
        execute: Execute,
        takers: list[EmbeddedSession],
    ) -> None:
        """`takers`: for which something is popped in the turn under way."""
        super().__init__(engine, TakenOutbox(engine.pressure))
        self._turns = turns
        self._handing = handing
        self._execute = execute
        self.authenticated = self.logged_in = True
        self.is_open = True
        self.ended_by: Exception | None = None  # if trying again would mend nothing, or hide what was lost
        self._wake: Callable[[], None] | None = None  # set while somebody waits for input; called once
        self._held: list[list[bytes]] | None = None  # requests that wait for `resume`
        self.has_left = False  # its program has closed the connection
        self.gives_back = True
        self._takers = takers
        self._popped: list[tuple[int, Taken]] = []  # and how much was committed before
        self.taken: list[Taken] = []
        self.handed: list[Taken] = []

    # -- in

    @property
    def is_held(self) -> bool:
        """True if its requests must wait."""
        return self._held is not None

    def hold(self, requests: list[list[bytes]]) -> None:
        """Keep requests until the session is resumed."""
        self._held = (self._held or []) + requests

    def resume(self) -> None:
        requests, self._held = self._held, None
        if requests is not None and self.is_open:
            self._execute(self, requests)

    def take_back(self, reply: bytes, failure: Exception) -> None:
        """Law 5: what this reply says could not be committed, so it becomes an error."""
        replace(self.said, [(reply, refusal(failure))])

    def reset(self) -> None:
        super().reset()
        self.authenticated = self.logged_in = True

    # -- out

    def take(self) -> bytes:
        """Return what has come, oldest first, in chunks if it is much; empty if there is nothing."""
        outbox = self.outbox
        if isinstance(self.feed, HandedFeed):
            self._handing.tend(self, self.feed)
        if isinstance(self.feed, HandedFeed):  # no other connection has taken over
            return self._take_one(self.feed)
        if not outbox.inbox:
            self._turns.close_run()
        parts = outbox.take(self)
        if self.taken and not self.is_owed_an_answer:
            self.handed, self.taken = self.taken, []
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _take_one(self, feed: HandedFeed) -> bytes:
        """One message, or one reply."""
        if not self.outbox.inbox:
            return b"".join(self.outbox.take_from_backlog(self))
        part = self.outbox.take_one()
        feed.hand(part)
        if self.taken and not (self.outbox.inbox or self.is_owed_an_answer):
            self.handed, self.taken = self.taken, []
        return part

    @property
    def is_owed_an_answer(self) -> bool:
        """True if a request of it waits, or waits to be executed: its connection is not for use by another."""
        return self.blocked is not None or self._held is not None

    # -- what was popped for it

    def note_taken(self, taken: Taken) -> None:
        if self.replies_off or self.skip_replies & 1:
            return  # its program does not want it
        if not self._popped:
            self._takers.append(self)
        self._popped.append((self.engine.keyspace.turn.commits, taken))

    def settle_taken(self) -> None:
        """The turn has ended: what was popped and committed is taken, and the rest was not popped after all."""
        commits = self.engine.keyspace.turn.commits
        taken = [one for before, one in self._popped if before < commits]
        self.taken, self._popped = self.taken + taken, []  # at once: a signal's handler may raise before, or behind it

    def was_interrupted(self) -> None:
        """What redis-py was handed last did not reach the program."""
        self.taken, self.handed = self.handed + self.taken, []

    def leave(self) -> list[Taken]:
        """Close it, because its program has; return what is to be put back, which can't be read any more."""
        self.close_now()
        taken, self.taken = self.taken, []
        if taken:
            self.outbox.withdraw(set(map(id, self.outbox.inbox)))
        return taken

    def drained(self) -> None:
        if self.follows:
            self.engine.followers.drained(self)
        if self.consumes:
            self.engine.consuming.drained(self)

    @property
    def takes_more(self) -> bool:
        if self.follows and self.outbox.inbox_bytes >= MAX_REPLAYED_BYTES:
            return False
        unread_bytes = self.feed.unread_bytes if self.feed is not None else 0
        return not unread_bytes and self.outbox.backlog is None and not self.closing

    @property
    def was_cut(self) -> bool:
        return not (self.is_open or self.left_in_peace)

    def rouse(self) -> None:
        """Wake the threads that wait for input."""
        wake, self._wake = self._wake, None  # the waiting thread may take it back without the lock
        if wake is not None:
            self._turns.waiting.discard(self)
            wake()

    def await_input(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, once, when there is something to take."""
        self._wake = wake
        self._turns.waiting.add(self)

    def cease_waiting(self) -> None:
        """Note that nobody waits any more."""
        self._wake = None
        self._turns.waiting.discard(self)

    @property
    def is_awaited(self) -> bool:
        """True if somebody waits for input."""
        return self._wake is not None

    # -- end

    def close_after_reply(self) -> None:
        self.closing = self.left_in_peace = True
        self.flush_soon()

    def leave_at_exit(self) -> None:
        """The interpreter ends. It does so in order if the reader has come to its end, and not by an exception."""
        if isinstance(self.feed, HandedFeed):
            has_failed = hasattr(sys, "last_value")
            is_cut = self.feed.reader in _running_beside_main()
            self.left_in_peace = not has_failed and not is_cut

    def cut_off(self) -> None:
        self.end_by(CutOff())
        self.close_now()

    def end_by(self, why: Exception) -> None:
        """Note an end that its program must hear of."""
        self.ended_by = why

    def take_end(self) -> Exception | None:
        """Return what the program must learn about its end. That it was cut off is reported once; then the program may
        go on."""
        why = self.ended_by
        if isinstance(why, CutOff):
            self.ended_by = None
        return why

    def close_now(self) -> None:
        """Leave nothing behind but what is in the inbox: it may still be read."""
        if not self.is_open:
            return
        self.is_open = False
        self.closing = True
        self._held = None
        self.outbox.end()
        self._turns.forget(self)
        self.rouse()

    # -- what CLIENT LIST shows

    @property
    def address(self) -> str:
        return f"embedded:{self.engine.pid}"

    @property
    def transport(self) -> bytes:
        return b"embedded"

    @property
    def local_address(self) -> str:
        folder: bytes = self.engine.settings["dir"]
        return f"{folder.decode()}:0"

    def footprint(self) -> Footprint:
        outbox = self.outbox
        held = sum(len(arg) for request in self._held or () for arg in request)
        return Footprint(
            arguments=held,
            outbox=outbox.memory_bytes,
            outbox_parts=outbox.parts,
            outbox_parts_memory=outbox.waiting_bytes,
            total=SESSION_BYTES + held + outbox.memory_bytes,
        )


def _running_beside_main() -> set[int | None]:
    return {thread.ident for thread in threading.enumerate() if thread is not threading.main_thread()}
