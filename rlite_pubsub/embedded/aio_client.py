"""`rlite_pubsub.asyncio.Redis`: redis-py's asyncio client on a folder. What holds for `Redis` holds here, too.

The store is used in the loop's own thread: a commit takes some ten microseconds.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Iterable
from typing import Any, TypeVar

import redis.asyncio
from redis._parsers import _AsyncHiredisParser
from redis.asyncio.connection import ConnectionPool, UnixDomainSocketConnection

from rlite_pubsub.embedded.errors import UsedAfterFork
from rlite_pubsub.embedded.host import NO_OPTIONS, Host
from rlite_pubsub.embedded.loop_line import LoopLine
from rlite_pubsub.embedded.options import StoreOptions, options_of
from rlite_pubsub.embedded.request import request_of


class LoopLineParser(_AsyncHiredisParser):
    """redis-py's parser, which says what it leaves unread."""

    def on_disconnect(self) -> None:
        line = getattr(self, "_stream", None)  # there once it has been connected
        if isinstance(line, LoopLine) and self._reader is not None:
            line.leave_unread(bool(self._reader.has_data()))
        super().on_disconnect()  # type: ignore[no-untyped-call]


class AsyncStoreConnection(UnixDomainSocketConnection):
    """A connection to the store in the folder `path`. Options of sockets (keep-alive, TLS, buffer sizes) have no
    effect."""

    def __init__(
        self, *, path: str | os.PathLike[str] = "", store_options: StoreOptions = NO_OPTIONS, **options: Any
    ) -> None:
        options["parser_class"] = LoopLineParser
        self._store_options = store_options
        super().__init__(path=os.fspath(path), **options)
        self._pid = os.getpid()

    async def connect_check_health(self, check_health: bool = True, retry_socket_connect: bool = True) -> None:
        if self.is_connected:
            return
        if self._pid != os.getpid():
            raise UsedAfterFork(self.path)
        # redis-py would make any failure a ConnectionError, and try again
        host = Host.open(self.path, self._store_options)
        try:
            await super().connect_check_health(check_health, retry_socket_connect)
        finally:
            host.close()

    async def _connect(self) -> None:
        self._reader = self._writer = LoopLine(self.path, self._store_options)  # type: ignore[assignment]

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """Execute requests as one turn."""
        if not self.is_connected:
            await self.connect_check_health(check_health=False)
        if check_health:
            await self.check_health()  # type: ignore[no-untyped-call]
        try:
            self._writer.writelines(command)  # type: ignore[union-attr]
        except BaseException:
            await self.disconnect(nowait=True)
            raise

    async def read_response(self, disable_decoding: bool = False, timeout: float | None = None, **options: Any) -> Any:
        """As redis-py's. A request that waits for a writer is answered once `writer-patience` is over; the time that is
        allowed for a reply counts behind that."""
        if timeout is None and isinstance(self._reader, LoopLine):
            try:
                await self._reader.pass_line()
            except BaseException:
                if options.get("disconnect_on_error", True):
                    await self.disconnect(nowait=True)
                raise
        return await super().read_response(disable_decoding, timeout, **options)

    def pack_command(self, *args: Any) -> list[list[bytes]]:  # type: ignore[override]
        """Return a turn with one request."""
        return [request_of(self.encoder, args)]

    def pack_commands(self, commands: Iterable[Iterable[Any]]) -> list[list[bytes]]:  # type: ignore[override]
        """Return a turn with all of them."""
        return [request_of(self.encoder, tuple(args)) for args in commands]


R = TypeVar("R", bound="Redis")

PUBLISHED_AT_ONCE = 64
"""After this many messages a task that only publishes lets the others run."""


class Redis(redis.asyncio.Redis):
    """The whole API of redis-py's asyncio client, with no server and no port."""

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
        self._published = 0
        is_own_pool = connection_pool is None
        if connection_pool is None:
            connection_pool = _new_pool(path, db, options)
        super().__init__(
            connection_pool=connection_pool,
            single_connection_client=single_connection_client,
            event_dispatcher=options.get("event_dispatcher"),
        )
        self.auto_close_connection_pool = is_own_pool
        self._encoder = self.get_encoder()  # type: ignore[no-untyped-call]

    @classmethod
    def from_url(cls: type[R], url: str, **options: Any) -> R:  # type: ignore[override]
        """Return a client for `rlite:///absolute/path?db=0&decode_responses=True`; the URL goes before the keywords."""
        return cls(**{**options, **options_of(url)})

    def publish(self, channel: Any, message: Any, **options: Any) -> Awaitable[Any]:
        """Publish, and return how many received it."""
        return self._publish(channel, message, options)

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        if len(args) == 3 and args[0] == "PUBLISH":
            return await self._publish(args[1], args[2], options)
        return await self._execute(*args, **options)

    async def _publish(self, channel: Any, message: Any, options: dict[str, Any]) -> Any:
        host = self._host
        if host is None or not host.is_open:
            kwargs = self.connection_pool.connection_kwargs
            host = self._host = Host.open(kwargs["path"], kwargs.get("store_options", NO_OPTIONS))
        if (
            not host.short_way
            or options
            or self.single_connection_client
            or dict.__contains__(self.response_callbacks, "PUBLISH")
        ):
            return await self._execute("PUBLISH", channel, message, **options)
        encode = self._encoder.encode
        receivers = host.publish(bytes(encode(channel)), bytes(encode(message)))
        if receivers is None:
            return await self._execute("PUBLISH", channel, message)
        self._published += 1
        if self._published % PUBLISHED_AT_ONCE == 0:
            await asyncio.sleep(0)
        return receivers

    async def _execute(self, *args: Any, **options: Any) -> Any:
        return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """Let go of the connections, and of the store."""
        await super().aclose(close_connection_pool)
        self._let_go()

    def _let_go(self) -> None:
        host, self._host = getattr(self, "_host", None), None
        if host is not None:
            host.close()

    def __del__(self, *args: Any, **kwargs: Any) -> None:
        self._let_go()
        super().__del__(*args, **kwargs)


def _new_pool(path: str | os.PathLike[str] | None, db: int, options: dict[str, Any]) -> ConnectionPool:
    """Return a pool with the options that redis-py would give it: they are taken from a client for a unix socket."""
    if path is None:
        raise TypeError("the path of the store's folder is missing")
    store_options = StoreOptions.taken_from(options)
    socket_client = redis.asyncio.Redis(unix_socket_path=os.path.abspath(path), db=db, **options)
    socket_client.auto_close_connection_pool = False
    pool = socket_client.connection_pool
    pool.connection_class = AsyncStoreConnection
    pool.connection_kwargs["store_options"] = store_options
    return pool


def from_url(url: str, **options: Any) -> Redis:
    """`Redis.from_url`."""
    return Redis.from_url(url, **options)
