"""What subscription.py is, for programs with an event loop.

    subscription = await topics.aio.subscribe("./store", "orders")    # what is published from now on is received
    async with topics.aio.subscribe("./store", "orders") as subscription: ...
    async for entry in topics.aio.subscribe("./store", "orders", since=last_id): ...
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from types import TracebackType
from typing import Any, TypeAlias

import redis.asyncio
from redis.exceptions import ConnectionError, TimeoutError

from rlite_pubsub.topics.entry import Entry, Since, text
from rlite_pubsub.topics.positions import OnGap, Positions, warn_of_gap
from rlite_pubsub.topics.pushed_line import WAIT_S
from rlite_pubsub.topics.subscription import Fields, fields_of, positions_of

log = logging.getLogger("rlite_pubsub")

Where: TypeAlias = "str | os.PathLike[str] | redis.asyncio.Redis"
_LOST = (ConnectionError, TimeoutError, OSError)


def client_of(where: Where, **options: Any) -> redis.asyncio.Redis:
    """A client for a folder or a URL; a client is taken as it is."""
    if isinstance(where, redis.asyncio.Redis):
        return where
    place = os.fspath(where)
    if "://" in place and not place.startswith("rlite://"):
        return redis.asyncio.Redis.from_url(place, **options)
    from rlite_pubsub.embedded.aio_client import Redis, from_url

    return from_url(place, **options) if "://" in place else Redis(place, **options)


async def publish(where: Where, topic: str | bytes, fields: Fields, **options: Any) -> str:
    """Append an entry; its id."""
    client = client_of(where, **options)
    try:
        return text(await client.xadd(topic, fields_of(fields)))
    finally:
        if client is not where:
            await client.aclose()


def subscribe(
    where: Where,
    *topics: str | bytes,
    since: Since | Mapping[str, Since] = None,
    on_gap: OnGap = warn_of_gap,
    **options: Any,
) -> Subscribing:
    """Follow topics, once this is awaited, entered or iterated over. `since` is one start for all of them, or one for
    each: `{"orders": "1700000000000-0"}`.

    What is published after `await subscribe(...)` is received. Raises there ConnectionError where the store can't be
    had, and ResponseError where one of the names is no topic's, or the start is none."""
    positions = positions_of(topics, since, on_gap)
    return Subscribing(lambda: Subscription(where, positions, options))


class Subscribing:
    """A subscription that is about to begin: `await` it, or say `async with` or `async for`."""

    def __init__(self, make: Callable[[], Subscription]) -> None:
        self._make = make
        self._entered: Subscription | None = None

    def __await__(self) -> Generator[Any, None, Subscription]:
        return self._begin().__await__()

    async def __aenter__(self) -> Subscription:
        self._entered = await self._begin()
        return self._entered

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._entered is not None
        await self._entered.aclose()

    async def __aiter__(self) -> AsyncIterator[Entry]:
        async with self as subscription:
            async for entry in subscription:
                yield entry

    async def _begin(self) -> Subscription:
        subscription = self._make()
        try:
            await subscription.begin()
        except BaseException:
            await subscription.aclose()
            raise
        return subscription


class Subscription:
    """An asynchronous iterator over entries. It ends when it is closed."""

    def __init__(self, where: Where, positions: Positions, options: dict[str, Any]) -> None:
        self._positions = positions
        self._client = client_of(where, **options)
        self._owns_client = self._client is not where
        self._connection: Any = None
        self._is_closed = False

    async def begin(self) -> None:
        """Return once the server has said where each topic continues."""
        connection = await self._connect()
        while not self._positions.are_known:
            self._positions.take(await connection.read_response(push_request=True))

    @property
    def positions(self) -> dict[str, str]:
        """By topic, the id after which it would continue. Pass them to `subscribe` as `since` to do so later."""
        return dict(self._positions.ids)

    async def __aiter__(self) -> AsyncIterator[Entry]:
        while not self._is_closed:
            entry = await self.get(WAIT_S)
            if entry is not None:
                yield entry

    async def get(self, timeout: float | None = None) -> Entry | None:
        """The next entry, or None if none comes within `timeout` seconds. Without a timeout it waits for one."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while not self._is_closed:
            left = WAIT_S if deadline is None else deadline - loop.time()
            try:
                connection = self._connection or await self._connect()
                frame = await connection.read_response(
                    timeout=max(0.0, min(left, WAIT_S)), disconnect_on_error=False, push_request=True
                )
                if frame is not None:
                    entry = self._positions.take(frame)
                    if entry is not None:
                        return entry
                    continue
            except _LOST as failure:
                await self._lose(failure, left)
            if deadline is not None and loop.time() >= deadline:
                break
        return None

    async def aclose(self) -> None:
        """End it."""
        self._is_closed = True
        await self._disconnect()
        if self._owns_client:
            await self._client.aclose()

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _connect(self) -> Any:
        pool: Any = self._client.connection_pool
        connection = await pool.get_connection()
        try:
            await connection.connect()
            await connection.send_command(*self._positions.command)
        except BaseException:
            await connection.disconnect()
            await self._client.connection_pool.release(connection)
            raise
        self._connection = connection
        return connection

    async def _lose(self, failure: BaseException, left_s: float) -> None:
        await self._disconnect()
        if not self._is_closed:
            delay_s = self._positions.next_delay_s()
            log.info("Topics: the connection is lost (%s); retrying in %.2f s", failure, delay_s)
            await asyncio.sleep(max(0.0, min(delay_s, left_s)))

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*_LOST):
                await connection.disconnect()
            await self._client.connection_pool.release(connection)
