"""A connection as two kernels have it: the fake of a model, with every way in which a client may end.

    server's program -> in flight -> (acknowledged) unread -> client's program
    client's program -> requests, FIN, RST -> server's program

What of it the server's kernel tells depends on the way: over a unix socket what is sent is in the other's queue at
once, and is thrown away when the other closes; for TCP on one machine the client's queue can be looked at; from
elsewhere only acknowledgements are known, and FIN and RST travel.
"""

from __future__ import annotations

import errno
import os
import select
import socket
from collections import deque
from collections.abc import Callable
from typing import Literal

import hiredis

Way = Literal["local", "unix", "elsewhere"]
CAPACITY_BYTES = 300
"""Of what is sent and not read."""


class Line:
    """Both ends. Those of the server are what `socket.socket` has; those of the client are verbs."""

    def __init__(self, way: Way, requests: bytes) -> None:
        self.way = way
        self.family = socket.AF_UNIX if way == "unix" else socket.AF_INET
        self._descriptor = os.eventfd(0)
        self._requests = requests
        self._travelling: deque[str] = deque()  # FIN and RST, on their way to the server
        self._has_ended = False  # FIN has come
        self._error = 0  # as SO_ERROR tells
        self._is_reset = False
        self.in_flight = b""
        self.unread = b""
        self.has_been_sent = False
        """Something has been said by the server."""
        self.is_closed_by_server = False
        self._is_shut_by_server = False
        self.is_shut = False  # by the client, which may close it later
        self.is_closed = False  # by the client
        self._reader = hiredis.Reader()
        self.step: Callable[[], None] = lambda: None
        """Called before the server asks its kernel: something else may happen first."""

    # -- the server's end

    def fileno(self) -> int:
        return self._descriptor

    def recv(self, limit: int) -> bytes:
        self.step()
        if self._error and (self.way == "unix" or not self._has_ended):  # TCP tells the end first, and only that
            self._raise_error()
        data, self._requests = self._requests[:limit], self._requests[limit:]
        if not data and not self._has_ended:
            raise BlockingIOError
        return data

    def send(self, data: bytes | memoryview) -> int:
        self.step()
        if self._error:
            self._raise_error()
        if self._is_reset or self._is_shut_by_server or (self.way == "unix" and (self.is_closed or self.is_shut)):
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        room = CAPACITY_BYTES - len(self.in_flight) - len(self.unread)
        if room <= 0:
            raise BlockingIOError
        taken = bytes(data[:room])
        self.has_been_sent = True
        if self.way == "unix":
            self.unread += taken
        else:
            self.in_flight += taken
        return len(taken)

    def getsockopt(self, level: int, option: int) -> int:
        assert not self.is_closed_by_server and option == socket.SO_ERROR
        self.step()
        error, self._error = self._error, 0
        return error

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 1

    def shutdown(self, how: int) -> None:
        self._is_shut_by_server = True

    def close(self) -> None:
        if not self.is_closed_by_server:
            self.is_closed_by_server = True
            os.close(self._descriptor)
        if self.is_closed:
            self.in_flight = b""

    def unacknowledged_bytes(self) -> int:
        """SIOCOUTQ."""
        self.step()
        return len(self.unread) if self.way == "unix" else len(self.in_flight)

    def unread_bytes(self) -> int | None:
        """What sock_diag tells of the client's end."""
        self.step()
        if self.way != "local" or self._is_reset:
            return None
        return len(self.unread)

    @property
    def events(self) -> int:
        """What a poller would tell the server."""
        events = 0
        if self._requests or self._has_ended:
            events |= select.EPOLLIN
        if self._error or self._is_reset:
            events |= select.EPOLLIN | select.EPOLLERR | select.EPOLLHUP
        return events

    @property
    def is_writable(self) -> bool:
        return CAPACITY_BYTES - len(self.in_flight) - len(self.unread) > CAPACITY_BYTES // 2

    def _raise_error(self) -> None:
        error, self._error = self._error, 0
        raise OSError(error, os.strerror(error))

    # -- what is between

    @property
    def is_travelling(self) -> bool:
        return bool(self._travelling or (self.in_flight and not self._is_reset))

    def travel(self, limit: int | None = None) -> None:
        """Something arrives: an end or a reset first; else so much of what was sent."""
        if self._travelling:
            self._arrive(self._travelling.popleft())
        elif self.in_flight:
            if self.is_closed or self.is_shut:  # nobody takes it
                self._arrive("RST")
                return
            arrived = self.in_flight[:limit]
            self.in_flight = self.in_flight[len(arrived) :]
            self.unread += arrived

    def _tell(self, what: str) -> None:
        self._travelling.append(what)
        if self.way != "elsewhere":
            self.travel()

    def _arrive(self, what: str) -> None:
        if what == "FIN":
            self._has_ended = True
        else:
            self._is_reset = True
            self._error = errno.EPIPE if self._has_ended and self.way != "unix" else errno.ECONNRESET
            self._requests = b""

    # -- the client's end

    @property
    def is_half_ended(self) -> bool:
        """Its end is on its way, or may still become a reset."""
        return bool(self._travelling) or (self.is_shut and not self.is_closed)

    def read(self, limit: int | None = None) -> list[bytes]:
        """The payloads of the messages that are whole by what is read now."""
        data, self.unread = self.unread[:limit], self.unread[len(self.unread[:limit]) :]
        self._reader.feed(data)
        found = []
        while (reply := self._reader.gets()) is not False:
            if isinstance(reply, list) and reply[0] == b"message":
                found.append(reply[2])
        return found

    @property
    def is_over(self) -> bool:
        """The server has ended it, and there is nothing more to read."""
        return (self.is_closed_by_server or self._is_shut_by_server) and not self.unread and not self.in_flight

    def shut(self) -> None:
        """shutdown(SHUT_RDWR)."""
        if not self.is_shut:
            self.is_shut = True
            self._tell("FIN")

    def close_here(self) -> None:
        """close(), or a kill."""
        if self.is_closed:
            return
        self.is_closed = True
        if self.unread:
            self._tell("RST")
            self.unread = b""  # after the error is there to be seen
        elif not self.is_shut:
            self._tell("FIN")
