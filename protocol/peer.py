"""A connection to another server, as a client has one: requests go out together, answers come in order."""

from __future__ import annotations

import socket

import hiredis

_READ_AT_ONCE = 1 << 16


class Peer:
    """One connection, with a limit of time for each step."""

    def __init__(self, host: str, port: int, timeout_s: float, *, path: str | None = None) -> None:
        """Connect. With `path` it is a unix socket, which must never be one that a client names, who may have no access
        to it. Raises OSError, OverflowError or UnicodeError if there is no such place."""
        if path is None:
            self._socket = socket.create_connection((host, port), timeout_s)
        else:
            self._socket = _connected(path, timeout_s)
        self._reader = hiredis.Reader()

    def send(self, requests: bytes) -> None:
        """Raises OSError."""
        self._socket.sendall(requests)

    def answer(self) -> object:
        """The next one; an exception where it is an error. Raises OSError where none comes, or what comes is none."""
        try:
            answer: object = self._reader.gets()
            while answer is False:
                data = self._socket.recv(_READ_AT_ONCE)
                if not data:
                    raise ConnectionError("the other side has closed")
                self._reader.feed(data)
                answer = self._reader.gets()
        except hiredis.HiredisError as error:
            raise ConnectionError(str(error)) from error
        return answer

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
