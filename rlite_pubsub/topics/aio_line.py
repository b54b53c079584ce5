"""What pushed_line.py is, for programs with an event loop: what their subscriptions and consumptions share.

Promise: whoever is cancelled while it waits for the next entry has taken none, and the next `get` continues.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from types import TracebackType
from typing import Any, Generic, Self, TypeAlias, TypeVar

import redis.asyncio
from redis.exceptions import ConnectionError, TimeoutError

from rlite_pubsub.topics.entry import Entry
from rlite_pubsub.topics.positions import next_delay_s
from rlite_pubsub.topics.pushed_line import WAIT_S

log = logging.getLogger("rlite_pubsub")

Where: TypeAlias = "str | os.PathLike[str] | redis.asyncio.Redis"
_LOST = (ConnectionError, TimeoutError, OSError)

Item = TypeVar("Item", bound=Entry)
L = TypeVar("L", bound="AwaitedLine[Any]")


def client_of(where: Where, **options: Any) -> redis.asyncio.Redis:
    """A client for a folder or a URL; a client is taken as it is."""
    if isinstance(where, redis.asyncio.Redis):
        return where
    place = os.fspath(where)
    if "://" in place and not place.startswith("rlite://"):
        return redis.asyncio.Redis.from_url(place, **options)
    from rlite_pubsub.embedded.aio_client import Redis, from_url

    return from_url(place, **options) if "://" in place else Redis(place, **options)


class AwaitedLine(Generic[Item]):
    """An asynchronous iterator over what is pushed, once `begin` has returned. It ends when it is closed."""

    def __init__(self, where: Where, options: dict[str, Any]) -> None:
        self._client = client_of(where, **options)
        self._owns_client = self._client is not where
        self._connection: Any = None
        self._come: deque[Item] = deque()  # not given yet
        self._delay_s = 0.0
        self._is_closed = False

    async def greet(self, connection: Any) -> Iterable[Item]:
        """Say what a new connection begins with; what there is already, in the place of what has not been given."""
        raise NotImplementedError

    def take(self, frame: Any) -> Iterable[Item]:
        """What was pushed. Raises ConnectionError where another connection has to be made."""
        raise NotImplementedError

    async def begin(self) -> None:
        """Return once the server has answered what each new connection begins with."""
        await self._connect()

    async def __aiter__(self) -> AsyncIterator[Item]:
        while not self._is_closed:
            entry = await self.get(WAIT_S)
            if entry is not None:
                yield entry

    async def get(self, timeout: float | None = None) -> Item | None:
        """The next entry, or None if none comes within `timeout` seconds. Without a timeout it waits for one."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while not self._is_closed:
            left = WAIT_S if deadline is None else deadline - loop.time()
            try:
                connection = self._connection or await self._connect()
                if self._come:
                    return self._come.popleft()
                frame = await connection.read_response(
                    timeout=max(0.0, min(left, WAIT_S)), disconnect_on_error=False, push_request=True
                )
                if frame is not None:
                    self._come += self.take(frame)
                    self._delay_s = 0.0
                    continue
            except _LOST as failure:
                await self._lose(failure, left)
            if deadline is not None and loop.time() >= deadline:
                break
        return None

    async def aclose(self) -> None:
        """End it."""
        self._is_closed = True
        await self._hang_up()
        if self._owns_client:
            await self._client.aclose()

    async def __aenter__(self) -> Self:
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
            self._come = deque(await self.greet(connection))
        except BaseException:
            await connection.disconnect(nowait=True)
            await self._client.connection_pool.release(connection)
            raise
        self._connection = connection
        return connection

    async def _lose(self, failure: BaseException, left_s: float) -> None:
        await self._hang_up()
        if not self._is_closed:
            self._delay_s = next_delay_s(self._delay_s)
            log.info("Topics: the connection is lost (%s); retrying in %.2f s", failure, self._delay_s)
            await asyncio.sleep(max(0.0, min(self._delay_s, left_s)))

    async def _hang_up(self) -> None:
        """End the connection; the next read makes another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                with contextlib.suppress(*_LOST):
                    await connection.disconnect()
            finally:
                await self._client.connection_pool.release(connection)


class UnbegunLine(Generic[L]):
    """A line that is about to begin: `await` it, or say `async with` or `async for`."""

    def __init__(self, make: Callable[[], L]) -> None:
        self._make = make
        self._entered: L | None = None

    def __await__(self) -> Generator[Any, None, L]:
        return self._begin().__await__()

    async def __aenter__(self) -> L:
        self._entered = await self._begin()
        return self._entered

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._entered is not None
        await self._entered.aclose()

    async def __aiter__(self) -> AsyncIterator[Any]:
        async with self as line:
            async for entry in line:
                yield entry

    async def _begin(self) -> L:
        line = self._make()
        try:
            await line.begin()
        except BaseException:
            await line.aclose()
            raise
        return line
