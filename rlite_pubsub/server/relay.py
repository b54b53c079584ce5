"""Passes on what another process of ours says to a connection whose TLS keys only this process has: through a pair of
sockets, and from there into its outbox.

Law 7: nobody waits for a slow peer but that process. A piece is taken from it when the peer has taken the one before,
so no more than that is in memory.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final, Protocol

from rlite_pubsub.server.turns import READABLE, Turns

_PIECE_BYTES: Final = 192 << 10


class Relayed(Protocol):
    """A connection."""

    def send(self, data: bytes) -> None:
        """Say this to the peer."""

    @property
    def is_drained(self) -> bool:
        """Whether the peer has taken all that was said."""


class Relay:
    """A relay to one connection, until the other end of `descriptor` or the connection is closed."""

    def __init__(self, connection: Relayed, turns: Turns, ended: Callable[[], None]) -> None:
        """`ended` is called once all that was said is passed on."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        self.descriptor = theirs.detach()
        """To be given to that process, and closed here."""
        self._socket = ours
        self._connection = connection
        self._turns = turns
        self._ended = ended
        turns.watch(ours.fileno(), self, READABLE)

    def on_ready(self, events: int) -> None:
        """Pass on what that process has said, or end with it."""
        if not self._connection.is_drained:
            self._turns.change(self._socket.fileno(), 0)
            return
        try:
            data = self._socket.recv(_PIECE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            self._connection.send(data)
        else:
            self.close()
            self._ended()

    def go_on(self) -> None:
        """Read on, now that the peer has taken what it was sent."""
        if self._socket.fileno() >= 0:
            self._turns.change(self._socket.fileno(), READABLE)

    def on_failure(self) -> None:
        """Hang up, so that the process hears that nobody listens."""
        self.close()

    def close(self) -> None:
        """Pass nothing more on."""
        if self._socket.fileno() >= 0:
            self._turns.unwatch(self._socket.fileno())
            self._socket.close()
