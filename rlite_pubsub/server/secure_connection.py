"""A client that speaks TLS: a connection like others, once its handshake is over. It does so in the same turns."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

from rlite_pubsub.server.connection import Connection
from rlite_pubsub.server.connections import Connections
from rlite_pubsub.server.relay import Relay
from rlite_pubsub.server.secure_wire import SecureWire
from rlite_pubsub.server.turns import READABLE, WRITABLE, Turns

log: Final = logging.getLogger("rlite_pubsub")

PARTING_SECONDS: Final = 5.0
"""How long the last bytes of a closed connection may take."""


class SecureConnection(Connection):
    """A client's connection with TLS. Nothing is executed before the handshake is over."""

    __slots__ = ("_is_known", "_leaves", "_refusal", "_relay", "_wire")

    def __init__(
        self, shared: Connections, sock: socket.socket, peer: str, context: ssl.SSLContext, refusal: bytes | None
    ) -> None:
        """`refusal` is sent to a client that is not let in, because nothing can be sent before the handshake."""
        wire = SecureWire(sock, context)
        super().__init__(shared, sock, peer, wire)
        self._wire = wire
        self._refusal = refusal
        self._is_known = False
        self._relay: Relay | None = None  # while another process says something to the peer
        self._leaves = False  # behind that
        wire.call_when_owing(self._watch_anew)

    def lend_socket(self) -> int | None:
        if self.fd < 0:
            return None
        relay = self._relay = Relay(self, self._shared.turns, self._relayed)
        return relay.descriptor

    def give_socket(self) -> int | None:
        self._leaves = self.replies_off = True
        return self.lend_socket()

    def _relayed(self) -> None:
        self._relay = None
        if self._leaves:
            self.close_after_reply()
        elif self.is_replica:
            self.engine.replicas.drained(self)

    @property
    def is_drained(self) -> bool:
        """Whether the peer has taken all that it was sent."""
        return super().takes_more

    @property
    def takes_more(self) -> bool:
        return self._relay is None and super().takes_more

    def drained(self) -> None:
        super().drained()
        if self._relay is not None:
            self._relay.go_on()

    def on_ready(self, events: int, data: bytes | None = None) -> None:
        if events & WRITABLE and self._wire.owed:
            self._pay()
            if self.fd < 0:
                return
        if self._is_known:
            super().on_ready(events)
        elif events & ~WRITABLE and self._shake_hands():
            super().on_ready(READABLE)  # with what came behind the handshake; that may be nothing

    def _shake_hands(self) -> bool:
        try:
            if not self._wire.shake_hands():
                return False
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as failure:
            log.debug("Error accepting a client connection: %s (addr=%s)", failure, self.peer)
            self.close_now()
            return False
        self._is_known = True
        if self._refusal is not None:
            self.send(self._refusal)
            self.close_after_reply()
            return False
        self._log_in_by_certificate()
        return True

    def _log_in_by_certificate(self) -> None:
        engine = self.engine
        if engine.settings["tls-auth-clients-user"] != b"cn":
            return
        name = self._wire.common_name()
        user = engine.users.get(name.encode()) if name is not None else None
        if user is not None and user.enabled:
            self.log_in(user)

    def _pay(self) -> None:
        """Write as much of what is owed as the peer takes."""
        try:
            self._wire.flush()
        except OSError:
            self.cut()
            return
        if not self._wire.owed:
            self._watch_anew()

    def _watch_anew(self) -> None:
        if self.fd >= 0:
            self._shared.turns.change(self.fd, self._events(reading=not self.closing))

    def _events(self, reading: bool = True) -> int:
        events = super()._events(reading)
        return events | WRITABLE if self._wire.owed else events

    def unacknowledged_bytes(self) -> int:
        return super().unacknowledged_bytes() + len(self._wire.owed)

    def _close(self, is_ended_by_peer: bool) -> None:
        """Close it like a plain connection. What the wire has taken still goes out, if the peer takes it soon."""
        if self._relay is not None:
            self._relay.close()
            self._relay = None
        if self.fd >= 0 and self._is_known and not is_ended_by_peer and not self.was_cut:
            self._wire.part()
            if self._wire.owed:
                Parting(self.socket.dup(), self._wire.owed, self._shared.turns, self.engine.call_later)
        super()._close(is_ended_by_peer)


class Parting:
    """The last bytes of a connection that is closed otherwise, on their way to a peer that was slow."""

    def __init__(
        self,
        sock: socket.socket,
        owed: bytes,
        turns: Turns,
        call_later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._socket = sock
        self._owed = owed
        self._turns = turns
        sock.setblocking(False)
        turns.watch(sock.fileno(), self, WRITABLE)
        call_later(PARTING_SECONDS, self.close)

    def on_ready(self, events: int) -> None:
        """The socket takes more, or never will."""
        try:
            self._owed = self._owed[self._socket.send(self._owed) :]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._owed = b""
        if not self._owed:
            self.close()

    def on_failure(self) -> None:
        """Do nothing: there is nobody to notify."""
        self.close()

    def close(self) -> None:
        """Close it; what has not been sent is lost."""
        if self._socket.fileno() >= 0:
            self._turns.unwatch(self._socket.fileno())
            self._socket.close()
