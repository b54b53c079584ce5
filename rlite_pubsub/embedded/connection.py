"""redis-py's connection, with a session of this process where the socket would be.

Pools, pipelines, transactions, `PubSub`, `Monitor`, retries and health checks are redis-py's own, unchanged: what they
say to a socket is said to a `ThreadLine`.

A command outside of a pipeline takes a short way through them, where it makes no difference that can be seen:
`Pool.take` hands out the idle connection that redis-py would, `Connection.answer` says one request and parses its
reply, which is there at once, and `Pool.give_back` has it idle again. Whatever is not as usual (a new connection, one
that was closed or has something unread, health checks, telemetry, an error of the connection) is left to redis-py.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from redis._parsers import _HiredisParser
from redis._parsers.hiredis import NOT_ENOUGH_DATA
from redis.client import EMPTY_RESPONSE, NEVER_DECODE
from redis.connection import ConnectionPool, UnixDomainSocketConnection
from redis.exceptions import ConnectionError, ResponseError, TimeoutError

from rlite_pubsub.embedded.errors import UsedAfterFork
from rlite_pubsub.embedded.host import CLOSED, NO_OPTIONS
from rlite_pubsub.embedded.line import ThreadLine
from rlite_pubsub.embedded.options import StoreOptions
from rlite_pubsub.embedded.request import request_of

_DEFAULT_TIMEOUT = object()
_PUSH = ord(">")


class ThreadLineParser(_HiredisParser):
    """redis-py's parser, which reads from a line and copies nothing on the way."""

    def can_read(self, timeout: float | None = 0) -> bool:
        """Return whether there is something to read, waiting this long for it; None waits forever."""
        reader = self._reader
        if not reader:
            raise ConnectionError(CLOSED)
        return bool(reader.has_data()) or self._fetch(timeout)

    def read_from_socket(self, timeout: Any = _DEFAULT_TIMEOUT, raise_on_timeout: bool = True) -> bool:
        """Let the reader have more. False, or TimeoutError, if there is nothing in time."""
        is_of_socket = not isinstance(timeout, int | float | None)
        if is_of_socket:
            timeout = self._socket_timeout
        while not self._fetch(timeout):
            if not (is_of_socket and self._sock is not None and self._sock.is_held_up):
                break  # else `writer-patience` is in force, and not the time that a server may take
        else:
            return True
        if raise_on_timeout:
            raise TimeoutError("Timeout reading from socket")
        return False

    def on_disconnect(self) -> None:
        line, reader = getattr(self, "_sock", None), getattr(self, "_reader", None)  # there once it was connected
        if line is not None and reader is not None:
            line.leave_unread(bool(reader.has_data()))
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


class StoreConnection(UnixDomainSocketConnection):
    """A connection to the store in the folder `path`. Options of sockets (keep-alive, TLS, buffer sizes) have no
    effect."""

    def __init__(
        self, path: str | os.PathLike[str] = "", store_options: StoreOptions = NO_OPTIONS, **options: Any
    ) -> None:
        options["parser_class"] = ThreadLineParser
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

    @property
    def is_idle(self) -> bool:
        """True if only a request and its reply are expected of it."""
        line: Any = self._sock
        if line is None or self.health_check_interval or self._parser._reader.has_data() or not line.host.is_open:
            return False
        session = line.session
        waits = session.outbox.inbox or session.outbox.backlog or session.blocked
        return session.is_open and not (waits or session.feed or session.holds_names or session.consumes)

    @property
    def is_owed_an_answer(self) -> bool:
        """True if a request of it waits, or waits to be executed."""
        line: Any = self._sock
        return line is not None and line.host.is_open and bool(line.session.is_owed_an_answer)

    def answer(self, client: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Execute a command for a client, as its `execute_command` would with this connection."""
        request = request_of(self.encoder, args)
        name, reader = args[0], self._parser._reader
        line: Any = self._sock
        try:
            data = line.ask(request)
            reader.feed(data)
            options.pop("keys", None)
            if not data or data[0] == _PUSH or NEVER_DECODE in options or EMPTY_RESPONSE in options:
                reply = client.parse_response(self, name, **options)
                line.is_answering = False
                return reply
            reply = reader.gets()
            if reply is NOT_ENOUGH_DATA:
                reply = client.parse_response(self, name, **options)
                line.is_answering = False
                return reply
            if isinstance(reply, Exception):
                raise reply
            line.is_answering = False
            if reply.__class__ is list and reply and isinstance(reply[0], ConnectionError):
                raise reply[0]
        except ResponseError:
            raise
        except BaseException as failure:
            self.disconnect()  # type: ignore[no-untyped-call]
            if not isinstance(failure, self.retry._supported_errors):
                raise
            return self._answer_again(failure, client, args, options)
        callback = dict.get(client.response_callbacks, name.upper())
        return reply if callback is None else callback(reply, **options)

    def _answer_again(
        self, failure: BaseException, client: Any, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """The first attempt has failed so: the others, if there are to be any, are redis-py's."""
        first = [failure]

        def attempt() -> Any:
            if first:
                raise first.pop()
            return client._send_command_parse_response(self, args[0], *args, **options)

        def disconnect(_: Exception) -> None:
            self.disconnect()  # type: ignore[no-untyped-call]

        return self.retry.call_with_retry(attempt, disconnect)


class Pool(ConnectionPool):
    """redis-py's pool, which knows a short way to an idle connection and back."""

    def release(self, connection: StoreConnection) -> None:  # type: ignore[override]
        """As redis-py's. What was interrupted between its request and the reply is closed: no other gets that."""
        if connection.is_owed_an_answer:
            connection.disconnect()  # type: ignore[no-untyped-call]
        super().release(connection)  # type: ignore[arg-type]

    def take(self) -> StoreConnection | None:
        """Return the connection that `get_connection` would hand out, if there is nothing to do about it."""
        is_observed = _observers is not None and _observers.get_provider_manager() is not None
        if is_observed or self.pid != os.getpid() or getattr(self, "cache", None) is not None:
            return None
        with self._lock:
            idle: list[StoreConnection] = self._available_connections
            if not idle or not idle[-1].is_idle:
                return None
            connection = idle.pop()
            self._in_use_connections.add(connection)
        return connection

    def give_back(self, connection: StoreConnection) -> None:
        """`release`."""
        if self.pid != os.getpid() or connection.should_reconnect():  # type: ignore[no-untyped-call]
            self.release(connection)
            return
        with self._lock:
            if connection in self._in_use_connections:
                self._in_use_connections.remove(connection)
                self._available_connections.append(connection)


try:
    from redis.observability.providers import get_observability_instance
except ImportError:
    _observers = None
else:
    _observers = get_observability_instance()  # with a manager, each command is measured
