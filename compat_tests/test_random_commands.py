"""The same random requests to ours and to the real server: every reply and push must be the same, in the same order.

Connections are not asked for a sentinel, which a transaction would queue and CLIENT REPLY OFF swallow. Instead a
control connection pings: a server reads all sockets that are readable in a turn, and writes what they are due at its
end, so that two answered pings say that all that was sent before has been read, executed and answered. What came is
then there.

RLITE_COMPAT_EXAMPLES sets the number of examples (and makes them random); without it they are the same in every run,
fewer on the sources than on the compiled package.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from installed import IS_INSTALLED

from compat_tests.random_commands import Words, pipelines
from compat_tests.servers import SocketServer
from compat_tests.transcript import comparable
from compat_tests.wire import Wire

CONNECTIONS = 3
UNORDERED = (b"UNSUBSCRIBE", b"SUNSUBSCRIBE")
"""Without names, in the order of a hash table."""
EXAMPLES = os.environ.get("RLITE_COMPAT_EXAMPLES")


class Side:
    """One server, its connections, and the control connection."""

    def __init__(self, server: SocketServer) -> None:
        self._server = server
        self._control = server.wire()
        self._wires: list[Wire | None] = [None] * CONNECTIONS

    def send(self, at: int, data: bytes) -> None:
        wire = self._wires[at]
        if wire is None:
            wire = self._wires[at] = self._server.wire()
            assert wire.ask(b"PING") == b"+PONG\r\n"
        try:
            wire.send(data)
        except (BrokenPipeError, ConnectionResetError):
            """It was told to go; what it was told before is still to be read."""

    def settle(self) -> None:
        """Have the server read all that was sent, and write all that it has to say."""
        for _ in range(2):
            self._control.ask(b"PING", b"control")

    def told(self, at: int) -> tuple[bytes, bool]:
        """All that came in on a connection, and whether it is open still."""
        wire = self._wires[at]
        if wire is None:
            return b"", True
        told, is_open = wire.take_what_came()
        if not is_open:
            self.hang_up(at)
        return told, is_open

    def hang_up(self, at: int) -> None:
        """Whoever says QUIT, or kills itself, hangs up, too: where the farewell is silenced, Redis does not."""
        wire, self._wires[at] = self._wires[at], None
        if wire is not None:
            wire.close()

    def close(self) -> None:
        for at in range(CONNECTIONS):
            self.hang_up(at)
        self._control.close()


class SameReplies(RuleBasedStateMachine):
    """Both servers get what one client says."""

    servers: tuple[SocketServer, SocketServer]

    def __init__(self) -> None:
        super().__init__()
        for server in self.servers:
            server.reset()
        self._sides = [Side(server) for server in self.servers]

    @rule(at=st.integers(0, CONNECTIONS - 1), pipeline=pipelines())
    def say(self, at: int, pipeline: tuple[list[Words], list[bytes]]) -> None:
        requests, chunks = pipeline
        for side in self._sides:
            for chunk in chunks:
                side.send(at, chunk)
                side.settle()
        said = {words[0].upper() for words in requests}
        no_order = b"EXEC" in said or any(words[0].upper() in UNORDERED for words in requests if len(words) == 1)
        leaves = b"QUIT" in said or any(b"KILL" in map(bytes.upper, words) for words in requests)
        for other in range(CONNECTIONS):
            (our_bytes, ours_is_open), (their_bytes, theirs_is_open) = (side.told(other) for side in self._sides)
            assert comparable(our_bytes, no_order) == comparable(their_bytes, no_order), f"{other} after {requests}"
            assert ours_is_open == theirs_is_open or (leaves and other == at), f"{other} after {requests}"
        if leaves:
            for side in self._sides:
                side.hang_up(at)

    def teardown(self) -> None:
        for side in self._sides:
            side.close()


@pytest.mark.timeout(0 if EXAMPLES else 600)
def test_same_requests_get_the_same_replies(ours: SocketServer, theirs: SocketServer) -> None:
    SameReplies.servers = (ours, theirs)
    run_state_machine_as_test(
        SameReplies,
        settings=settings(
            max_examples=int(EXAMPLES or (200 if IS_INSTALLED else 60)),
            stateful_step_count=25,
            deadline=None,
            derandomize=not EXAMPLES,
            suppress_health_check=list(HealthCheck),
        ),
    )
