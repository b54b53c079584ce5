"""Waits: why a session's next requests must wait, what ends that, and when it times out.

A session waits for the end of a `Blocked` (`Client.wait_for`); the code that ends it lets the session go on. A pause is
one, too, but only CLIENT UNPAUSE and time can end it.

A client that is served soon leaves an end behind in the heap each time. These are removed once they are most of the
heap, so that it does not grow with waits that are over.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from mypy_extensions import mypyc_attr

from rlite_pubsub.engine.waits.alarm import Alarm, CallLater
from rlite_pubsub.keyspace.news import Key
from rlite_pubsub.protocol.replies import Error, Reply

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.table import Command


CallFromThread: TypeAlias = Callable[[Callable[[], None]], None]
"""Schedules a call soon, in a turn of its own. Any thread may use it."""
_FEW: Final = 64


class Timed(Protocol):
    """Something that may time out."""

    is_over: bool

    def time_out(self) -> None:
        """Act on the timeout."""


class WaitEnds:
    """The timeouts of waits: a heap, and an alarm for the first of them."""

    def __init__(self, stopwatch: Callable[[], float], call_later: CallLater) -> None:
        self._stopwatch = stopwatch
        self._heap: list[tuple[float, int, Timed]] = []
        self._serials = itertools.count()
        self._counting = 0  # those in the heap that still last
        self._alarm = Alarm(stopwatch, call_later, self._ring)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, time: float, timed: Timed) -> None:
        """Add a timeout at this time, by our stopwatch. Call `drop` if the wait ends before."""
        heap = self._heap
        if len(heap) > _FEW + 2 * self._counting:
            heap[:] = [end for end in heap if not end[2].is_over]
            heapq.heapify(heap)
        self._counting += 1
        heapq.heappush(heap, (time, next(self._serials), timed))
        alarm = self._alarm
        if alarm.at is None or time < alarm.at:
            alarm.set(time)

    def drop(self) -> None:
        """Note that one of those added is over."""
        self._counting -= 1

    def expire(self, now: float) -> None:
        """End the waits that have timed out. Call it from the loop, never from within a command."""
        heap = self._heap
        while heap and (heap[0][2].is_over or heap[0][0] <= now):
            timed = heapq.heappop(heap)[2]
            if not timed.is_over:
                timed.time_out()

    def _ring(self) -> None:
        self.expire(self._stopwatch())
        if self._heap:  # later ones, or the loop's clock is ahead of it
            self._alarm.set(self._heap[0][0])


@mypyc_attr(allow_interpreted_subclasses=True)
class Blocked:
    """A wait that nobody may cut short."""

    __slots__ = ()

    def began(self, command: Command, args: list[bytes], duration_us: int) -> None:
        """Note the command that blocked, for the statistics at its end."""

    def stop(self, with_error: bool) -> bool:
        """End the wait as its timeout would or, `with_error`, with an UNBLOCKED error. Returns False if that is not
        possible."""
        return False


UNBLOCKED: Final = Error(b"UNBLOCKED client unblocked via CLIENT UNBLOCK")

Attempt: TypeAlias = Callable[[bytes], Reply]
"""Told which key is ready, it answers what is there for its session, or None: it waits on. It may raise CommandError,
and then that is the answer. It looks the key up again: the key may be gone, or have another type."""


class WaitingLine(Protocol):
    """The line in which a waiter stands."""

    def end(self, waiter: Waiter, reply: Reply, *, by_request: bool = False) -> None:
        """Release a session that has not been served."""


class Waiter(Blocked):
    """One blocked session."""

    __slots__ = ("args", "attempt", "command", "duration_us", "is_over", "is_timed", "line",
                 "on_timeout", "places", "session", "shared")  # fmt: skip

    def __init__(
        self,
        line: WaitingLine,
        session: Client,
        attempt: Attempt,
        on_timeout: Reply,
        shared: bool,
        is_timed: bool,
    ) -> None:
        self.line = line
        self.session = session
        self.attempt = attempt
        self.on_timeout = on_timeout
        self.shared = shared
        self.is_over = False
        self.is_timed = is_timed
        self.places: dict[Key, Hashable] = {}  # the queue in which it stands for each key
        self.command: Command | None = None
        self.args: list[bytes] = []
        self.duration_us = 0  # of the call that blocked

    def began(self, command: Command, args: list[bytes], duration_us: int) -> None:
        """Note the command that blocked, for the statistics at its end."""
        self.command, self.args, self.duration_us = command, args, duration_us

    def stop(self, with_error: bool) -> bool:
        self.line.end(self, UNBLOCKED if with_error else self.on_timeout, by_request=True)
        return True

    def time_out(self) -> None:
        """End the wait: it has timed out."""
        self.line.end(self, self.on_timeout)
