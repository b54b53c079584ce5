"""Finding the member of a sharded store that has a topic, by the servers' redirects; without I/O, for programs with an
event loop and without one.

A store that is not sharded redirects nobody, so nothing of this is asked there.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from redis.exceptions import AskError, ClusterDownError, MovedError, ResponseError, TryAgainError

from rlite_pubsub.topics.entry import text

PATIENCE_S = 30.0
"""A topic that is being moved answers long before."""
LEAST_PATIENCE_S = 1.0
"""So long whoever does not want to wait still waits for a topic that is being moved, or a member that is away."""
_PAUSE_S = 0.02
_AT_ONCE = 3
"""Redirects in a row that are followed without a pause."""
_KEPT = ("username", "password", "encoding", "encoding_errors", "decode_responses", "protocol", "socket_timeout")


class RedirectTarget(NamedTuple):
    """Of a member."""

    host: str
    port: int


class Course:
    """The members to which the requests about one topic go."""

    def __init__(self, doors: Iterable[RedirectTarget] = ()) -> None:
        """`doors`: other members that may be asked where the first one does not answer."""
        self._doors: deque[RedirectTarget | None] = deque([None, *doors])
        self.at: RedirectTarget | None = None
        """None: to the server that was named at first."""

    def begin(self, within: float | None = None) -> Trip:
        """One more request, which should be answered in so many seconds."""
        return Trip(self, PATIENCE_S if within is None else min(max(within, LEAST_PATIENCE_S), PATIENCE_S))

    def start_over(self) -> None:
        """Nobody answers where it has led to: the next request asks at the next door."""
        if self.at == self._doors[0]:
            self._doors.rotate(-1)
        self.at = self._doors[0]


class Trip:
    """One request's way from member to member."""

    def __init__(self, course: Course, patience_s: float) -> None:
        self._course = course
        self._begun = time.monotonic()
        self._patience_s = patience_s
        self._redirects = 0
        self.to = course.at
        self.is_asking = False
        """Behind ASKING."""

    def follow(self, refusal: ResponseError) -> float:
        """Go where this says; how long to wait before (seconds). Raises it where it says nothing of the kind, or
        does so for too long."""
        self.is_asking = False
        if isinstance(refusal, MovedError):
            self.to = self._course.at = RedirectTarget(refusal.host, refusal.port)
        elif isinstance(refusal, AskError):
            self.to, self.is_asking = RedirectTarget(refusal.host, refusal.port), True
        elif not isinstance(refusal, (TryAgainError, ClusterDownError)):
            raise refusal
        else:
            self.to = self._course.at
            if time.monotonic() > self._begun + self._patience_s:
                raise refusal
        if time.monotonic() > self._begun + PATIENCE_S:
            raise refusal
        self._redirects += 1
        return 0.0 if self._redirects <= _AT_ONCE and not isinstance(refusal, TryAgainError) else _PAUSE_S

    def is_lost(self) -> None:
        """Note that nobody answers there."""
        self._course.start_over()


def addresses_in(rows: Any) -> list[RedirectTarget]:
    """The members in CLUSTER SLOTS' answer."""
    return sorted({RedirectTarget(text(host), int(port)) for _, _, (host, port, *_) in rows})


def options_at(pool: Any, address: RedirectTarget, tcp: type) -> tuple[type, dict[str, Any]]:
    """The class and the options of connections to another member, as those of this pool are; `tcp` is the class of such
    connections. A program that has opened a member's folder goes on over TCP."""
    known = pool.connection_kwargs
    if issubclass(pool.connection_class, tcp):
        return pool.connection_class, {**known, "host": address.host, "port": address.port}
    kept = {name: known[name] for name in _KEPT if name in known}
    return tcp, {**kept, "host": address.host, "port": address.port}


BRIEF_S = 2.0
"""How long a member may take for an answer that is wanted of all members."""


def briefly(options: dict[str, Any], retry: Any) -> dict[str, Any]:
    """Options of connections to a member that may be down: it is asked once, and not waited for."""
    timeouts = ("socket_timeout", "socket_connect_timeout")
    return {**options, **{name: min(options.get(name) or BRIEF_S, BRIEF_S) for name in timeouts}, "retry": retry}
