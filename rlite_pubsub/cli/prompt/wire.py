"""Requests out, bytes in: to a server by a socket, with TLS or without, or to a store of this machine."""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
from dataclasses import dataclass
from typing import Protocol

from rlite_pubsub.protocol.batch import BatchReader, Run
from rlite_pubsub.protocol.parser import Parser

CONNECT_S = 10.0
_READ_BYTES = 1 << 16


class Wire(Protocol):
    """A connection to the server."""

    def send(self, request: list[bytes]) -> None:
        """Say it. Raises OSError and redis-py's ConnectionError."""

    def receive(self, timeout_s: float | None) -> bytes | None:
        """Return what has come; nothing (b"") at the end, None if there is nothing yet. It waits no longer than
        asked."""

    def exchange(self, data: bytes, timeout_s: float) -> tuple[int, bytes | None]:
        """Send as many bytes of these encoded requests as are taken at once, and receive what has come. It waits for
        either, no longer than asked. Raises as `send` does, and ProtocolError if a store can't read the requests."""

    def close(self) -> None:
        """Leave. Nobody may be waiting for something."""


@dataclass(frozen=True)
class Tls:
    """The options of TLS: how server and client prove who they are."""

    authorities: str | None = None
    folder_of_authorities: str | None = None
    certificate: str | None = None
    key: str | None = None
    name: str | None = None
    """By which the server is to be called; None: its host."""
    is_believed: bool = False
    """Whatever it shows."""
    ciphers: str | None = None
    """Of TLS 1.2 and below, as OpenSSL lists them; None: what Python allows."""

    def context(self) -> ssl.SSLContext:
        """Raises OSError."""
        context = ssl.create_default_context(cafile=self.authorities, capath=self.folder_of_authorities)
        if self.is_believed:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.ciphers is not None:
            context.set_ciphers(self.ciphers)
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key)
        return context


class SocketWire:
    """A connection to a server by a socket."""

    def __init__(self, host: str, port: int, unix: str | None, tls: Tls | None) -> None:
        """Raises OSError."""
        if unix is not None:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(unix)
        else:
            self._socket = socket.create_connection((host, port), CONNECT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self._socket = tls.context().wrap_socket(self._socket, server_hostname=tls.name or host)
        self._socket.settimeout(None)
        self._lock = threading.Lock()  # TLS reads and writes of one connection may not overlap

    def send(self, request: list[bytes]) -> None:
        words = b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in request])
        with self._lock:
            self._socket.sendall(b"*%d\r\n%b" % (len(request), words))

    def receive(self, timeout_s: float | None) -> bytes | None:
        decrypted = self._socket.pending() if isinstance(self._socket, ssl.SSLSocket) else 0
        if not decrypted and not select.select([self._socket], [], [], timeout_s)[0]:
            return None
        with self._lock:
            self._socket.settimeout(0)
            try:
                return self._receive_now()
            finally:
                self._socket.settimeout(None)

    def exchange(self, data: bytes, timeout_s: float) -> tuple[int, bytes | None]:
        decrypted = self._socket.pending() if isinstance(self._socket, ssl.SSLSocket) else 0
        writing = [self._socket] if data else []
        readable, writable, _ = select.select([self._socket], writing, [], 0 if decrypted else timeout_s)
        with self._lock:
            self._socket.settimeout(0)
            try:
                sent = self._send_now(data) if writable else 0
                return sent, self._receive_now() if readable or decrypted else None
            finally:
                self._socket.settimeout(None)

    def _send_now(self, data: bytes) -> int:
        try:
            return self._socket.send(data)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0

    def _receive_now(self) -> bytes | None:
        try:
            return self._socket.recv(_READ_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError):  # a part of a record
            return None

    def close(self) -> None:
        self._socket.close()


class StoreWire:
    """A connection to a store, without a server: the same commands, executed in this process."""

    def __init__(self, folder: str) -> None:
        """Raises StoreError."""
        from rlite_pubsub.embedded.line import ThreadLine

        self._line = ThreadLine(os.path.abspath(folder))
        self._parser = Parser(BatchReader())

    def send(self, request: list[bytes]) -> None:
        self._line.sendall([request])

    def exchange(self, data: bytes, timeout_s: float) -> tuple[int, bytes | None]:
        taken = self._parser.take(data) if data else []
        requests = [one for each in taken for one in (each.commands() if isinstance(each, Run) else [each])]
        if requests:
            self._line.sendall(requests)
        if self._parser.failure is not None:
            raise self._parser.failure
        return len(data), self._line.receive(0 if data else timeout_s)

    def receive(self, timeout_s: float | None) -> bytes | None:
        return self._line.receive(timeout_s)

    def close(self) -> None:
        self._line.close()
