"""TLS between a socket and a connection.

    socket  <->  incoming, outgoing (ssl.MemoryBIO)  <->  SSLObject  <->  Connection

The law: a wire never waits, and what it has taken of a reply it writes: ciphertext that the socket does not take is
*owed*, no more than one step of RECORD_BYTES and what the handshake says. While a wire owes, it takes nothing more, so
the outbox has its backlog as with any slow reader; its descriptor is watched until it owes nothing.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Final

from rlite_pubsub.engine.settings.tls import common_name

RECORD_BYTES: Final = 64 * 1024
"""Encrypted at once: a few records of TLS."""
PLAIN_BYTES: Final = 64 * 1024
"""Decrypted at once."""


class SecureWire:
    """A socket's `recv` and `send`, encrypted."""

    __slots__ = ("_incoming", "_outgoing", "_owing", "_recv", "_send", "_tls", "owed")

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._recv = sock.recv
        self._send = sock.send
        self._owing: Callable[[], None] = _nobody
        self.owed = b""  # ciphertext that the socket has not taken

    def call_when_owing(self, owing: Callable[[], None]) -> None:
        """Call `owing` when the socket must be watched until it takes more."""
        self._owing = owing

    def shake_hands(self) -> bool:
        """Take part in the handshake, with what has come; whether it is over. Raises OSError (ssl.SSLError is one)."""
        if not self._fetch(PLAIN_BYTES):
            raise ConnectionResetError("closed during the handshake")
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self.flush()
            return False
        except ssl.SSLError:
            self._say_why()
            raise
        self.flush()
        return True

    def recv(self, size: int) -> bytes:
        """All that has come, which may be more than `size`: nobody would look for the rest. Empty at the end. Raises
        BlockingIOError where there is nothing whole yet, and OSError."""
        try:
            is_open = self._fetch(size)
        except (BlockingIOError, InterruptedError):
            if not self._incoming.pending:
                raise
            is_open = True  # what came with the handshake is there
        tls = self._tls
        parts: list[bytes] = []
        try:
            while part := tls.read(PLAIN_BYTES):
                parts.append(part)
            is_open = False  # a farewell (close_notify)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLEOFError:
            is_open = False
        except ssl.SSLError:
            if not parts:
                raise
        if self._outgoing.pending:
            self.flush()
        if parts:
            return b"".join(parts)
        if is_open:
            raise BlockingIOError
        return b""

    def send(self, data: bytes | memoryview) -> int:
        """Send data; return how much was taken. Raises BlockingIOError if nothing can be, and OSError."""
        if self.owed:
            self.flush()
            if self.owed:
                raise BlockingIOError
        size, taken = len(data), 0
        tls = self._tls
        if size <= RECORD_BYTES:
            taken = tls.write(data)
            self.flush()
            return taken
        view = memoryview(data)
        while taken < size and not self.owed:
            taken += tls.write(view[taken : taken + RECORD_BYTES])
            self.flush()
        return taken

    def flush(self) -> None:
        """Write as much of what is owed as the socket takes. Raises OSError."""
        data = self.owed + self._outgoing.read() if self.owed else self._outgoing.read()
        if not data:
            return
        try:
            sent = self._send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        was_owing = bool(self.owed)
        self.owed = data[sent:] if sent != len(data) else b""
        if self.owed and not was_owing:
            self._owing()

    def part(self) -> None:
        """Say farewell, if the socket takes it now."""
        try:
            self._tls.unwrap()
        except (OSError, ValueError):
            pass  # the peer's own farewell is not waited for
        try:
            self.flush()
        except OSError:
            self.owed = b""

    def common_name(self) -> str | None:
        """The CN of the peer's certificate, which has been verified; None: it has shown none."""
        return common_name(self._tls.getpeercert())

    def _fetch(self, size: int) -> bool:
        """Take what the socket has; False at its end. Raises BlockingIOError and OSError."""
        data = self._recv(size)
        if not data:
            self._incoming.write_eof()
            return False
        self._incoming.write(data)
        return True

    def _say_why(self) -> None:
        """The alert that tells the peer what is wrong with it."""
        try:
            self.flush()
        except OSError:
            pass  # it has gone


def _nobody() -> None:
    """Do nothing: nobody watches yet."""
