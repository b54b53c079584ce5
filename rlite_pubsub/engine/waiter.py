"""One blocked session: what it waits for, what serves it, and what it called."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeAlias

from rlite_pubsub.engine.blocked import Blocked
from rlite_pubsub.keyspace.waiting import Key
from rlite_pubsub.protocol.replies import Error, Reply

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.engine.table import Command

UNBLOCKED = Error(b"UNBLOCKED client unblocked via CLIENT UNBLOCK")

Attempt: TypeAlias = Callable[[bytes], Reply]
"""Told which key is ready, it answers what is there for its session, or None: it waits on. It may raise CommandError,
and then that is the answer. It looks the key up anew: the key may be gone, or be of another type."""


class Waiter(Blocked):
    """One blocked session."""

    __slots__ = ("args", "attempt", "command", "duration_us", "is_over", "is_timed", "on_timeout",
                 "places", "session", "shared")  # fmt: skip

    def __init__(self, session: CommandSession, attempt: Attempt, on_timeout: Reply, shared: bool) -> None:
        self.session = session
        self.attempt = attempt
        self.on_timeout = on_timeout
        self.shared = shared
        self.is_over = False
        self.is_timed = False
        self.places: dict[Key, Hashable] = {}  # the queue in which it stands for each key
        self.command: Command | None = None
        self.args: list[bytes] = []
        self.duration_us = 0  # of the call that blocked

    def began(self, command: Command, args: list[bytes], duration_us: int) -> None:
        """What the session called, for the statistics of its end."""
        self.command, self.args, self.duration_us = command, args, duration_us

    def stop(self, session: CommandSession, with_error: bool) -> bool:
        session.engine.waiting.end(self, UNBLOCKED if with_error else self.on_timeout, by_request=True)
        return True

    def time_out(self) -> None:
        """The wait has lasted long enough."""
        self.session.engine.waiting.end(self, self.on_timeout)
