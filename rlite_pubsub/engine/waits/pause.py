"""CLIENT PAUSE: commands are held back until it ends, and then executed as if they had only just come.

Promises:
 - Under ALL every command that passed its checks is held, CLIENT UNPAUSE included; under WRITE those that write or may
   replicate (PUBLISH does), their queueing in a transaction, and an EXEC that would execute one. A script or a function
   that says of itself that it writes nothing is not held.
 - Of overlapping pauses the stricter scope and the later end hold.
 - Held sessions go on in the order in which they were held, never inside the command that released them: its own reply
   comes first.
 - A session that watches with MONITOR is never held.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.client import Client
from rlite_pubsub.engine.scripts.cache import NO_WRITES, Flags
from rlite_pubsub.engine.table import Command
from rlite_pubsub.engine.waits.alarm import Alarm, CallLater
from rlite_pubsub.engine.waits.waiter import Blocked

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.keyspace import Keyspace

PAUSED: Final = Blocked()
"""What a held session is blocked by. CLIENT UNBLOCK leaves it alone, as later versions of Redis do: 7.0.15 crashes."""

_MAY_WRITE: Final = frozenset(("write", "may_replicate"))
_SCRIPTING: Final = "scripting"

Declared = Callable[[Command, list[bytes]], Flags | None]


class Scope(IntEnum):
    """What is held; the greater is the stricter."""

    WRITE = 1
    ALL = 2


class Pause:
    """The held sessions, and how long they are held."""

    def __init__(
        self,
        keyspace: Keyspace,
        monitors: Container[Client],
        stopwatch: Callable[[], float],
        call_later: CallLater,
        look_out: Callable[[], None],
        declared: Declared,
    ) -> None:
        """`monitors` are never held. `look_out` is called when a pause begins or ends. `declared`: what the script that
        a request calls says of itself."""
        self._keyspace = keyspace
        self._monitors = monitors
        self._stopwatch = stopwatch
        self._call_later = call_later
        self._look_out = look_out
        self._declared = declared
        self.scope: Scope | None = None
        self.deadline = 0.0  # by the stopwatch
        self._held: dict[Client, None] = {}  # oldest first
        self._released: dict[Client, None] = {}  # to be resumed at the next opportunity
        self._alarm = Alarm(stopwatch, call_later, self._ring)

    def begin(self, deadline: float, scope: Scope) -> None:
        """Pause, or extend a pause. A deadline in the past neither begins nor ends anything."""
        now = self._stopwatch()
        if self.scope is None:
            if deadline <= now:
                return
            self.scope, self.deadline = scope, deadline
            self._look_out()
            self._keyspace.times.hold("paused")
        else:
            self.scope, self.deadline = max(self.scope, scope), max(self.deadline, deadline)
        self._alarm.set(self.deadline)

    def end(self) -> None:
        """Release every held session."""
        if self.scope is None:
            return
        self.scope = None
        self.deadline = 0.0
        self._look_out()
        self._keyspace.times.go_on("paused")
        held, self._held = self._held, {}
        self._released.update(held)
        if held:
            self._call_later(0.0, self._resume)

    def expire(self, now: float) -> None:
        """End the pause if its time is up. Call it from the loop, never from within a command."""
        if self.scope is not None and self.deadline <= now:
            self.end()
        self._resume()

    def holds(self, session: Client, command: Command, args: list[bytes]) -> bool:
        """Return whether this command must wait. If so, its session is blocked, and resumed when the pause ends."""
        if self.scope is None or session in self._monitors:
            return False
        if self.scope is Scope.WRITE and not self._may_write_all(session, command, args):
            return False
        session.wait_for(PAUSED)
        self._held[session] = None
        return True

    def forget(self, session: Client) -> None:
        """Forget a closed session: it must not be resumed."""
        self._held.pop(session, None)
        self._released.pop(session, None)

    def _ring(self) -> None:
        self.expire(self._stopwatch())
        if self.scope is not None:  # the end was put off, or the two clocks differ
            self._alarm.set(self.deadline)

    def _resume(self) -> None:
        while self._released:
            session = next(iter(self._released))
            del self._released[session]
            session.go_on()

    def _may_write_all(self, session: Client, command: Command, args: list[bytes]) -> bool:
        """It, or what is queued where it is EXEC."""
        if command.name == b"exec" and session.transaction is not None:
            return any([self._may_write(queued, queued_args) for queued, queued_args in session.transaction.queue])
        return self._may_write(command, args)

    def _may_write(self, command: Command, args: list[bytes]) -> bool:
        declared = self._declared(command, args) if command.group == _SCRIPTING else None
        return bool(command.flags & _MAY_WRITE) if declared is None else NO_WRITES not in declared
