"""A bare connection: requests out as bytes, replies back as bytes, whatever the version of the protocol.

Nothing here waits for a time: a reply that does not come within `PATIENCE_S` is a failure.
"""

from __future__ import annotations

import socket
from types import TracebackType

from patience import PATIENCE_S


def request(*words: bytes) -> bytes:
    """A request as an array of bulk strings."""
    return b"*%d\r\n" % len(words) + b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words])


def bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)


class Wire:
    """One socket and what came in on it."""

    def __init__(self, port: int, protocol: int = 2) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self.socket.makefile("rb")
        if protocol == 3:
            assert self.ask(b"HELLO", b"3").startswith(b"%")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def ask(self, *words: bytes) -> bytes:
        """Send one request; the next frame that comes back, as it stood on the wire."""
        self.send(request(*words))
        return self.read()

    def say(self, *words: bytes) -> None:
        """Send one request and read nothing."""
        self.send(request(*words))

    def read(self, count: int = 1) -> bytes:
        """So many whole frames, as they stood on the wire."""
        return b"".join([self._frame() for _ in range(count)])

    def read_line(self) -> bytes:
        """Up to the next newline, wherever it stands."""
        line = self._file.readline()
        if not line:
            raise EOFError("the server closed the connection")
        return line

    def read_to_end(self) -> bytes:
        """All up to the server's closing of the connection."""
        try:
            return self._file.read()
        except ConnectionResetError:
            return b""

    def take_what_came(self) -> tuple[bytes, bool]:
        """All that is there already, frames or not, and whether more may come."""
        came = b""
        self.socket.settimeout(0)
        try:
            while part := self.socket.recv(1 << 20):
                came += part
        except BlockingIOError:
            return came, True
        except ConnectionResetError:
            return came, False
        finally:
            self.socket.settimeout(PATIENCE_S)
        return came, False

    def _frame(self) -> bytes:
        line = self._file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError(f"the server closed the connection after {line!r}")
        kind, length = line[:1], line[1:-2]
        if kind in b"$=!" and length != b"-1":
            return line + self._file.read(int(length) + 2)
        if kind in b"*~>" and length != b"-1":
            return line + self.read(int(length))
        if kind == b"%":
            return line + self.read(2 * int(length))
        return line

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
