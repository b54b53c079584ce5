"""redis-py's connection, with a session of this process where the socket would be.

Pools, pipelines, transactions, `PubSub`, `Monitor`, retries and health checks are redis-py's own, unchanged: what they
say to a socket is said to a `ThreadLine`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from redis._parsers import _HiredisParser
from redis.connection import UnixDomainSocketConnection
from redis.exceptions import ConnectionError, TimeoutError

from rlite_pubsub.embedded.errors import UsedAfterFork
from rlite_pubsub.embedded.host import CLOSED, NO_OPTIONS
from rlite_pubsub.embedded.line import ThreadLine
from rlite_pubsub.embedded.options import StoreOptions
from rlite_pubsub.embedded.request import request_of

_DEFAULT_TIMEOUT = object()


class Parser(_HiredisParser):
    """redis-py's parser, which reads from a line and copies nothing on the way."""

    def can_read(self, timeout: float | None = 0) -> bool:
        """Whether there is something, waiting for it so long; None waits for ever."""
        reader = self._reader
        if not reader:
            raise ConnectionError(CLOSED)
        return bool(reader.has_data()) or self._fetch(timeout)

    def read_from_socket(self, timeout: Any = _DEFAULT_TIMEOUT, raise_on_timeout: bool = True) -> bool:
        """Let the reader have more. False, or TimeoutError, if there is nothing in time."""
        if not isinstance(timeout, int | float | None):
            timeout = self._socket_timeout
        if self._fetch(timeout):
            return True
        if raise_on_timeout:
            raise TimeoutError("Timeout reading from socket")
        return False

    def on_disconnect(self) -> None:
        line, reader = getattr(self, "_sock", None), getattr(self, "_reader", None)  # there once it was connected
        if line is not None and reader is not None:
            line.is_unread = bool(reader.has_data())
        super().on_disconnect()  # type: ignore[no-untyped-call]

    def _fetch(self, timeout_s: float | None) -> bool:
        line, reader = self._sock, self._reader
        if line is None or reader is None:
            raise ConnectionError(CLOSED)
        data = line.receive(timeout_s)
        if data is None:
            return False
        if not data:
            raise ConnectionError(CLOSED)
        reader.feed(data)
        return True


class Connection(UnixDomainSocketConnection):
    """To the store in the folder `path`. What concerns sockets alone (keep-alive, TLS, buffer sizes) has no effect."""

    def __init__(
        self, path: str | os.PathLike[str] = "", store_options: StoreOptions = NO_OPTIONS, **options: Any
    ) -> None:
        options["parser_class"] = Parser
        self._store_options = store_options
        super().__init__(path=os.fspath(path), **options)  # type: ignore[no-untyped-call]

    def _connect(self) -> ThreadLine:
        if self.pid != os.getpid():
            raise UsedAfterFork(self.path)
        return ThreadLine(self.path, self._store_options)

    def send_command(self, *args: Any, **kwargs: Any) -> None:
        """Execute one request as a turn."""
        check_health = kwargs.get("check_health", True)
        self.send_packed_command([[request_of(self.encoder, args)]], check_health)  # type: ignore[no-untyped-call]

    def pack_command(self, *args: Any) -> list[list[list[bytes]]]:
        """One turn with one request."""
        return [[request_of(self.encoder, args)]]

    def pack_commands(self, commands: Iterable[Iterable[Any]]) -> list[list[list[bytes]]]:
        """One turn with all of them."""
        return [[request_of(self.encoder, tuple(args)) for args in commands]]
