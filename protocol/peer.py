"""A connection to another server, as a client has one: requests go out together, answers come in order.

The other side may be anybody's: a line is no longer than Redis reads one, an answer stays within limits, and each must
be there within the time, from its first byte to its last.
"""

from __future__ import annotations

import socket
from time import monotonic
from typing import Final

import hiredis

from rlite_pubsub.protocol.bounded import NOTHING, ReplyLimits, TooMuch, bounded_reader

_READ_AT_ONCE: Final = 1 << 16
_SENT_AT_ONCE: Final = 1 << 16
_LONGEST_LINE: Final = 1024


class Peer:
    """One connection, with a limit of time for each step. It is asked for lines, or for answers, and not for both."""

    def __init__(self, host: str, port: int, timeout_s: float, *, path: str | None = None) -> None:
        """Connect. With `path` it is a unix socket, which must never be one that a client names, who may have no access
        to it. Raises OSError, OverflowError or UnicodeError if there is no such place."""
        self._timeout_s = timeout_s
        if path is None:
            self._socket = socket.create_connection((host, port), timeout_s)
        else:
            self._socket = _connected(path, timeout_s)
        self._reader = bounded_reader(ReplyLimits(seconds=timeout_s))
        self._lines = b""

    def send(self, requests: bytes) -> None:
        """The other side may take each piece of it in its time. Raises OSError."""
        left = memoryview(requests)
        while left:
            self._socket.settimeout(self._timeout_s)  # which is the most for all that `sendall` sends
            self._socket.sendall(left[:_SENT_AT_ONCE])
            left = left[_SENT_AT_ONCE:]

    def line(self) -> bytes:
        """The next line, without its end. Raises OSError where none comes in time, or one that is too long."""
        until = monotonic() + self._timeout_s
        while (end := self._lines.find(b"\n")) < 0:
            if len(self._lines) >= _LONGEST_LINE:
                raise ConnectionError("the other side says more than a line")
            self._lines += self._receive(until, _LONGEST_LINE)
        line, self._lines = self._lines[:end], self._lines[end + 1 :]
        return line.rstrip(b"\r")

    def answer(self) -> object:
        """The next one; an exception where it is an error. Raises OSError where none comes, or what comes is none."""
        until = monotonic() + self._timeout_s
        try:
            answer: object = self._reader.gets()
            while answer is NOTHING:
                self._reader.feed(self._receive(until, _READ_AT_ONCE))
                answer = self._reader.gets()
        except (hiredis.HiredisError, TooMuch) as error:
            raise ConnectionError(str(error)) from error
        return answer

    def _receive(self, until: float, most: int) -> bytes:
        left_s = until - monotonic()
        if left_s <= 0:
            raise TimeoutError("the other side takes too long")
        self._socket.settimeout(left_s)
        data = self._socket.recv(most)
        if not data:
            raise ConnectionError("the other side has closed")
        return data

    def close(self) -> None:
        self._socket.close()


def _connected(path: str, timeout_s: float) -> socket.socket:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.settimeout(timeout_s)
        line.connect(path)
    except BaseException:
        line.close()
        raise
    return line
