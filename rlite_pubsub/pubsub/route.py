"""A route: who receives what is published to one name, and the run of messages that is under way on it.

A run is encoded once for each form in which it is received (protocol version, and the patterns that matched), joined
once, and every session of that form is given the same bytes. Within a run each message goes through all of its forms
before the next one, so that a session with a channel and a matching pattern sees them in Redis's order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from rlite_pubsub.protocol.encoder import bulk, integer
from rlite_pubsub.pubsub.kinds import PATTERNS, Kind
from rlite_pubsub.pubsub.session import Session

# -- Routes found lately, in two generations: when the young one is full the old one is forgotten. So a route in use
# stays, a million one-off names cost no more memory than the first few thousand, and nothing is kept in order of use.

GENERATION_ROUTES: Final = 4096
MAX_NAME_BYTES: Final = 1024
"""For a longer name the route is rebuilt for each message."""


class RouteCache:
    """Routes by name. `young` may be asked directly: what is in it is right."""

    __slots__ = ("_old", "young")

    def __init__(self) -> None:
        self.young: dict[bytes, Route] = {}
        self._old: dict[bytes, Route] = {}

    def get(self, name: bytes) -> Route | None:
        """Return a route that was put; it is young again."""
        route = self.young.get(name)
        if route is None and (route := self._old.get(name)) is not None:
            self.put(name, route)
        return route

    def put(self, name: bytes, route: Route) -> None:
        """Keep a route until it, or all, are dropped, or it has not been used for long."""
        if len(name) > MAX_NAME_BYTES:
            return
        if len(self.young) >= GENERATION_ROUTES:
            self._old = dict(self.young)
            self.young.clear()
        self.young[name] = route

    def drop(self, name: bytes) -> None:
        """Drop the route: this name's receivers have changed."""
        self.young.pop(name, None)
        self._old.pop(name, None)

    @property
    def holds_any(self) -> bool:
        """True if there may be a route to drop."""
        return bool(self.young) or bool(self._old)

    def drop_all(self) -> None:
        """Any name's receivers may have changed."""
        self.young.clear()
        self._old.clear()

    def __len__(self) -> int:
        return len(self.young.keys() | self._old.keys())


Form = tuple[bytes, ...]
"""What stands before the payload's length, once for each time that the message is received."""


def frame(protocol: int, *parts: bytes) -> bytes:
    """Return the beginning of a message, up to its payload's length."""
    header = (b"*%d\r\n" if protocol == 2 else b">%d\r\n") % (len(parts) + 1)
    return header + b"".join([bulk(part) for part in parts]) + b"$"


class Audience:
    """The sessions that receive a message in the same form."""

    __slots__ = ("form", "sessions")

    def __init__(self, form: Form) -> None:
        self.form = form
        self.sessions: list[Session] = []

    def encode(self, tails: list[bytes]) -> bytes:
        """Return the run as this audience's sessions read it. Each tail is `<length>\\r\\n<payload>`."""
        form = self.form
        if len(form) == 1:
            prefix = form[0]
            return b"%b%b\r\n" % (prefix, (b"\r\n" + prefix).join(tails))
        return b"".join([b"%b%b\r\n" % (prefix, tail) for tail in tails for prefix in form])

    def framing_bytes(self, tails: list[bytes], data: bytes) -> int:
        """Return how many bytes of the encoded run are not payload."""
        payload_bytes = sum([len(tail) - tail.index(b"\n") - 1 for tail in tails])
        return len(data) - len(self.form) * payload_bytes


class Address(NamedTuple):
    """The other processes and the durable subscribers that a message goes to."""

    kind: Kind
    name: bytes
    subscribers: tuple[int, ...]
    durable: tuple[tuple[int, bytes], ...] = ()
    """(id, the packed forms in which it receives the message) of each."""


class Route:
    """The receivers of a message to one name, as long as nobody's subscriptions change."""

    __slots__ = ("address", "audiences", "name", "receivers", "receivers_here", "reply", "tails", "topic")

    def __init__(
        self,
        audiences: list[Audience],
        address: Address | None = None,
        elsewhere: int = 0,
        topic: bytes | None = None,
        name: bytes = b"",
    ) -> None:
        self.name = name
        self.audiences = audiences
        self.address = address
        self.receivers_here = sum(len(audience.sessions) * len(audience.form) for audience in audiences)
        self.receivers = elsewhere + self.receivers_here
        self.reply = integer(self.receivers)
        self.topic = topic  # of which each message becomes an entry, before anything else is done with it
        self.tails: list[bytes] = []  # the run under way


NOBODY: Final = Route([])
"""The route of every name that nobody receives."""


def build_audiences(
    name: bytes, kind: Kind, holders: Iterable[Session], matches: list[tuple[bytes, Iterable[Session]]]
) -> list[Audience]:
    """Return the receivers of a message to `name`: its own holders, then those of each pattern that matches it."""
    received: dict[Session, list[bytes]] = {}
    frames: dict[tuple[int, bytes | None], bytes] = {}
    for session in holders:
        key = (session.protocol, None)
        if key not in frames:
            frames[key] = frame(session.protocol, kind.message, name)
        received[session] = [frames[key]]
    for pattern, sessions in matches:
        for session in sessions:
            pattern_key = (session.protocol, pattern)
            if pattern_key not in frames:
                frames[pattern_key] = frame(session.protocol, PATTERNS.message, pattern, name)
            received.setdefault(session, []).append(frames[pattern_key])
    audiences: dict[Form, Audience] = {}
    for session, form in received.items():
        key_form = tuple(form)
        audience = audiences.get(key_form)
        if audience is None:
            audience = audiences[key_form] = Audience(key_form)
        audience.sessions.append(session)
    return list(audiences.values())
