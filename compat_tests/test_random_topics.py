"""Topics, from several sessions at once: the same random requests get the same replies from ours and from the real
server, wake the same sleepers with the same words, and are followed by the same keyspace events.

Some requests wait for ever: what is said to their connection meanwhile is queued by both servers alike. Nodes hold few
entries, so that approximate trimming has something to trim.

RLITE_COMPAT_EXAMPLES sets the number of examples (and makes them random); without it they are the same in every run.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from compat_tests.random_commands import Words
from compat_tests.servers import SocketServer
from compat_tests.topic_commands import requests
from compat_tests.topic_replies import alike
from compat_tests.transcript import frames
from compat_tests.wire import Wire, request

SPEAKERS = 3
EXAMPLES = os.environ.get("RLITE_COMPAT_EXAMPLES")
SETTINGS = {"stream-node-max-entries": (b"3", b"100"), "notify-keyspace-events": (b"KEAmn", b"")}
"""During the test, and afterwards."""


class Side:
    """One server: some who speak, and one who listens to all that happens to keys."""

    def __init__(self, server: SocketServer) -> None:
        self._control = server.wire()
        self._speakers = [server.wire() for _ in range(SPEAKERS)]
        self._names = [wire.ask(b"CLIENT", b"ID")[1:-2] for wire in self._speakers]
        self._listener = server.wire()
        self._listener.say(b"PSUBSCRIBE", b"__key*")
        self._listener.read()

    def set(self, words: dict[str, bytes]) -> None:
        for name, value in words.items():
            assert self._control.ask(b"CONFIG", b"SET", name.encode(), value) == b"+OK\r\n"

    def send(self, at: int, said: list[Words]) -> None:
        self._speakers[at].send(b"".join([request(*words) for words in said]))

    def unblock(self, at: int, how: bytes) -> bytes:
        return self._control.ask(b"CLIENT", b"UNBLOCK", self._names[at], how)

    def told(self) -> list[bytes]:
        """What came in on each connection: when the control connection has been answered twice, all of it is there."""
        for _ in range(3):
            self._control.ask(b"PING")
        return [self._all_from(wire) for wire in (*self._speakers, self._listener)]

    def _all_from(self, wire: Wire) -> bytes:
        told, is_open = wire.take_what_came()
        assert is_open, "nobody is told to go"
        return told

    def close(self) -> None:
        for wire in (*self._speakers, self._listener, self._control):
            wire.close()


class SameTopics(RuleBasedStateMachine):
    """Both servers get what a few clients say."""

    servers: tuple[SocketServer, SocketServer]

    def __init__(self) -> None:
        super().__init__()
        for server in self.servers:
            server.reset()
        self._sides = [Side(server) for server in self.servers]
        self._said: list[object] = []
        for side in self._sides:
            side.set({name: during for name, (during, _) in SETTINGS.items()})

    @initialize(protocols=st.lists(st.sampled_from([b"2", b"3"]), min_size=SPEAKERS, max_size=SPEAKERS))
    def greet(self, protocols: list[bytes]) -> None:
        for at, protocol in enumerate(protocols):
            self.say(at, [[b"HELLO", protocol]])

    @rule(at=st.integers(0, SPEAKERS - 1), said=st.lists(requests, min_size=1, max_size=4))
    def say(self, at: int, said: list[Words]) -> None:
        self._said.append((at, said))
        for side in self._sides:
            side.send(at, said)
        self._compare()

    @rule(at=st.integers(0, SPEAKERS - 1), how=st.sampled_from([b"TIMEOUT", b"ERROR"]))
    def unblock(self, at: int, how: bytes) -> None:
        self._said.append((at, how))
        ours, theirs = (side.unblock(at, how) for side in self._sides)
        assert ours == theirs, f"after {self._said}"
        self._compare()

    def _compare(self) -> None:
        ours, theirs = (side.told() for side in self._sides)
        for at, (mine, yours) in enumerate(zip(ours, theirs, strict=True)):
            who = f"speaker {at}" if at < SPEAKERS else "the listener"
            assert alike(frames(mine), frames(yours)), f"{who} was told {mine!r}, by Redis {yours!r} after {self._said}"

    def teardown(self) -> None:
        for side in self._sides:
            side.set({name: afterwards for name, (_, afterwards) in SETTINGS.items()})
            side.close()


@pytest.mark.timeout(0 if EXAMPLES else 600)
def test_same_requests_about_topics_get_the_same_replies(ours: SocketServer, theirs: SocketServer) -> None:
    SameTopics.servers = (ours, theirs)
    run_state_machine_as_test(
        SameTopics,
        settings=settings(
            max_examples=int(EXAMPLES or 150),
            stateful_step_count=30,
            deadline=None,
            derandomize=not EXAMPLES,
            suppress_health_check=list(HealthCheck),
        ),
    )
