"""What pushed_line.py is, for programs with an event loop: what their subscriptions and consumptions share.

Promise: whoever is cancelled while it waits for the next entry has taken none, and the next `get` continues.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from redis.exceptions import ConnectionError, ResponseError, TimeoutError

from rlite_pubsub.topics.aio_route import AsyncMemberRoute, Where
from rlite_pubsub.topics.course import Trip
from rlite_pubsub.topics.entry import Entry
from rlite_pubsub.topics.positions import next_delay_s
from rlite_pubsub.topics.pushed_line import WAIT_S

log = logging.getLogger("rlite_pubsub")

_LOST = (ConnectionError, TimeoutError, OSError)

Item = TypeVar("Item", bound=Entry)
L = TypeVar("L", bound="AwaitedLine[Any]")


class AwaitedLine(Generic[Item]):
    """An asynchronous iterator over what is pushed, once `begin` has returned. It ends when it is closed."""

    def __init__(self, where: Where, options: dict[str, Any]) -> None:
        self.route = AsyncMemberRoute(where, **options)
        self._connection: Any = None
        self._pool: Any = None  # which it is of
        self._come: deque[Item] = deque()  # not given yet
        self._delay_s = 0.0
        self._is_closed = False

    async def greet(self, connection: Any) -> Iterable[Item]:
        """Say what a new connection begins with; what there is already, in the place of what has not been given."""
        raise NotImplementedError

    def take(self, frame: Any) -> Iterable[Item]:
        """Return what was pushed. Raises ConnectionError where another connection has to be made."""
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
                connection = self._connection or await self._connect(deadline)
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
        await self.route.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _connect(self, deadline: float | None = None) -> Any:
        """To the member that has the topic; the deadline is by the loop's clock. Raises ConnectionError where it is not
        known in time which one that is."""
        trip = self.route.begin()
        while True:
            try:
                return await self._connect_at(trip)
            except _LOST:
                trip.is_lost()
                raise
            except ResponseError as refusal:
                delay_s = trip.follow(refusal)
                if deadline is not None and asyncio.get_running_loop().time() + delay_s >= deadline:
                    raise ConnectionError(str(refusal)) from refusal
                await asyncio.sleep(delay_s)

    async def _connect_at(self, trip: Trip) -> Any:
        pool: Any = self.route.at(trip.to).connection_pool
        connection = await pool.get_connection()
        try:
            await connection.connect()
            if trip.is_asking:
                await connection.send_command("ASKING")
                await connection.read_response()
            self._come = deque(await self.greet(connection))
        except BaseException:
            await connection.disconnect(nowait=True)
            await pool.release(connection)
            raise
        self._connection, self._pool = connection, pool
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
                await self._pool.release(connection)


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
