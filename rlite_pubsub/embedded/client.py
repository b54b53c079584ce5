"""`rlite_pubsub.Redis`: redis-py's client on a folder.

A command outside of a pipeline takes a short way through the pool (connection.py). A PUBLISH takes a shorter one to the
store, past the pool: it needs no connection, for nothing about a connection makes it different. Whatever could make it
observable or different (MONITOR, CLIENT PAUSE, a slow log that wants everything, a client with one connection, a
response callback) sends it through a connection like any other.
"""

from __future__ import annotations

import os
from typing import Any, TypeVar

import redis
from redis.connection import ConnectionPool

from rlite_pubsub.embedded.host import NO_OPTIONS, Host
from rlite_pubsub.embedded.options import StoreOptions

R = TypeVar("R", bound="Redis")


class Redis(redis.Redis):
    """The whole API of redis-py, with no server and no port.

    `path` is the store's folder, which is made if necessary. Every other keyword is redis-py's (`decode_responses`,
    `protocol`, `client_name`, `retry`, ...); those that concern sockets alone have no effect.
    The store is opened at the first command; StoreUnavailable says why it cannot be.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        db: int = 0,
        *,
        connection_pool: ConnectionPool | None = None,
        single_connection_client: bool = False,
        **options: Any,
    ) -> None:
        self._host: Host | None = None
        is_own_pool = connection_pool is None
        if connection_pool is None:
            connection_pool = pool_of(path, db, options)
        super().__init__(
            connection_pool=connection_pool,
            single_connection_client=single_connection_client,
            event_dispatcher=options.get("event_dispatcher"),
        )
        self.auto_close_connection_pool = is_own_pool
        self._encoder = self.get_encoder()
        self._encoding, self._encoding_errors = self._encoder.encoding, self._encoder.encoding_errors

    @classmethod
    def from_url(cls: type[R], url: str, **options: Any) -> R:
        """Return a client for `rlite:///absolute/path?db=0&decode_responses=True`; the URL goes before the keywords."""
        from rlite_pubsub.embedded.options import options_of

        return cls(**{**options, **options_of(url)})

    def publish(self, channel: Any, message: Any, **options: Any) -> Any:
        """Publish, and return how many received it."""
        host = self._host
        if host is None or not host.is_open:
            host = self._open_host()
        if (
            not host.short_way
            or options
            or self.connection is not None
            or dict.__contains__(self.response_callbacks, "PUBLISH")
        ):
            return self._execute("PUBLISH", channel, message, **options)
        if channel.__class__ is str:
            channel = channel.encode(self._encoding, self._encoding_errors)
        elif channel.__class__ is not bytes:
            channel = self._encode(channel)
        if message.__class__ is str:
            message = message.encode(self._encoding, self._encoding_errors)
        elif message.__class__ is not bytes:
            message = self._encode(message)
        receivers = host.publish(channel, message)
        return self._execute("PUBLISH", channel, message) if receivers is None else receivers

    def set(self, name: Any, value: Any, *rest: Any, **options: Any) -> Any:
        """redis-py's, which is not asked what to make of arguments that are not there."""
        if rest or options:
            return super().set(name, value, *rest, **options)
        return self.execute_command("SET", name, value)

    def execute_command(self, *args: Any, **options: Any) -> Any:
        if len(args) == 3 and args[0] == "PUBLISH":
            return self.publish(args[1], args[2], **options)
        pool: Any = self.connection_pool
        if self.connection is not None or not hasattr(pool, "take") or args[0][:7] == "HIMPORT":
            return self._execute(*args, **options)  # (redis-py prepares a connection for HIMPORT)
        connection = pool.take()
        if connection is None:
            return self._execute(*args, **options)
        try:
            return connection.answer(self, args, options)
        finally:
            pool.give_back(connection)

    def _execute(self, *args: Any, **options: Any) -> Any:
        return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]

    def _encode(self, value: Any) -> bytes:
        return bytes(self._encoder.encode(value))  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Let go of the connections, and of the store."""
        super().close()
        host, self._host = getattr(self, "_host", None), None
        if host is not None:
            host.close()

    def _open_host(self) -> Host:
        if self._host is not None:
            self._host = None  # closed, or of the process that this one was forked from
        kwargs = self.connection_pool.connection_kwargs
        self._host = Host.open(kwargs["path"], kwargs.get("store_options", NO_OPTIONS))
        return self._host


def pool_of(path: str | os.PathLike[str] | None, db: int, options: dict[str, Any]) -> ConnectionPool:
    """Return a pool with the options that redis-py would give it: they are taken from a client for a unix socket."""
    if path is None:
        raise TypeError("the path of the store's folder is missing")
    from rlite_pubsub.embedded.connection import Pool, StoreConnection

    store_options = StoreOptions.taken_from(options)
    socket_client = redis.Redis(unix_socket_path=os.path.abspath(path), db=db, **options)
    socket_client.auto_close_connection_pool = False
    pool = socket_client.connection_pool
    pool.__class__ = Pool
    pool.connection_class = StoreConnection
    pool.connection_kwargs["store_options"] = store_options
    return pool


def from_url(url: str, **options: Any) -> Redis:
    """`Redis.from_url`."""
    return Redis.from_url(url, **options)
