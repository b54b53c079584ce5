"""A client of the tests: one socket, and the replies that come over it."""

from __future__ import annotations

import socket
import struct
from typing import Any

import hiredis
from patience import PATIENCE_S

Word = bytes | str | int


def request(*words: Word) -> bytes:
    encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded])


class Peer:
    """Connected to a TCP port or to a unix socket's path. Every wait is bounded."""

    def __init__(
        self,
        address: int | str | tuple[str, int],
        *,
        protocol: int = 2,
        receive_buffer_bytes: int | None = None,
    ) -> None:
        where: Any = ("127.0.0.1", address) if isinstance(address, int) else address
        self.socket = socket.socket(socket.AF_UNIX if isinstance(where, str) else socket.AF_INET)
        if receive_buffer_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(where)
        self._reader = hiredis.Reader(notEnoughData=_NOTHING)
        self.unfinished = b""
        """The last that has come, where it is no whole reply yet."""
        if protocol == 3:
            self.do("HELLO", 3)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def do(self, *words: Word) -> Any:
        """Send a request; the next reply."""
        self.send(request(*words))
        return self.reply()

    def reply(self) -> Any:
        """The next reply; an error is returned, not raised."""
        while (reply := self._reader.gets()) is _NOTHING:
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionResetError("closed by the server")
            self._reader.feed(data)
            self.unfinished = data
        self.unfinished = b""
        return reply

    def replies(self, count: int) -> list[Any]:
        return [self.reply() for _ in range(count)]

    def is_closed(self) -> bool:
        """Read, whatever comes, to the end; False if the end does not come in time."""
        try:
            while self.socket.recv(1 << 20):
                pass
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Close with an RST instead of a FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_NOTHING = object()
