"""One connection of the generator. A wait that lasts too long is an error, not a hang."""

from __future__ import annotations

import socket
from types import TracebackType

from . import wire

PATIENCE_S = 120.0
LOADING = b"-LOADING"


class WrongAnswer(Exception):
    """The server closed the connection, fell silent or answered something else than the work demands."""


class Client:
    """A blocking connection whose socket the traffic loops use directly."""

    def __init__(self, port: int, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(PATIENCE_S)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.socket.connect(("127.0.0.1", port))
        except OSError:
            self.socket.close()
            raise

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        self.socket.close()

    def send(self, request: bytes) -> None:
        self.socket.sendall(request)

    def discard(self, buffer: bytearray) -> int:
        """Lets the kernel drop what has arrived; how many bytes that was."""
        count = self.socket.recv_into(buffer, len(buffer), socket.MSG_TRUNC)
        if count == 0:
            raise WrongAnswer("the server closed a subscriber's connection")
        return count

    def expect(self, answer: bytes) -> None:
        """Reads exactly this answer."""
        got = bytearray()
        while len(got) < len(answer):
            try:
                chunk = self.socket.recv(len(answer) - len(got))
            except TimeoutError:
                raise WrongAnswer(f"silence after {bytes(got[-80:])!r}, expected {answer[:80]!r}") from None
            if not chunk:
                raise WrongAnswer(f"connection closed after {bytes(got[-80:])!r}, expected {answer[:80]!r}")
            got += chunk
            if not answer.startswith(bytes(got)):
                raise WrongAnswer(f"answered {bytes(got[:200])!r}, expected {answer[:80]!r}")

    def call(self, request: bytes, answer: bytes) -> None:
        self.send(request)
        self.expect(answer)

    def is_loaded(self, request: bytes, answer: bytes) -> bool:
        """Reads exactly this answer, or that the server is still loading."""
        self.send(request)
        if self.socket.recv(len(LOADING), socket.MSG_PEEK | socket.MSG_WAITALL).startswith(LOADING):
            return False
        self.expect(answer)
        return True

    def ask(self, request: bytes) -> bytes:
        """Any answer: a line, or the bytes of a string."""
        self.send(request)
        with self.socket.makefile("rb") as answer:
            line = answer.readline()
            if not line.startswith(b"$"):
                return line.rstrip()
            return answer.read(int(line[1:]) + 2)[:-2]

    def subscribe(self, *names: bytes, kind: bytes = b"subscribe", protocol: int = wire.RESP2) -> None:
        answer = b"".join(wire.confirmation(kind, name, held + 1, protocol) for held, name in enumerate(names))
        self.call(wire.command(kind.upper(), *names), answer)

    def speak_resp3(self) -> None:
        """HELLO 3; its answer names the server and is therefore not compared, only read to its end."""
        self.send(wire.command(b"HELLO", b"3") + wire.command(b"PING"))
        got = b""
        while not got.endswith(b"+PONG\r\n"):
            chunk = self.socket.recv(65536)
            if not chunk:
                raise WrongAnswer(f"HELLO 3 was answered {got!r} and the connection was closed")
            got += chunk
        if not got.startswith(b"%"):
            raise WrongAnswer(f"HELLO 3 was answered {got[:200]!r}")
