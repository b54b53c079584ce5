"""What route.py is, for programs with an event loop."""

from __future__ import annotations

import asyncio
from typing import Any

import redis
import redis.asyncio
from redis.exceptions import ResponseError

from rlite_pubsub.queues.course import Course, RedirectTarget, Trip, addresses_in, options_at
from rlite_pubsub.queues.errors import explained


class QueueRoute:
    """What asks for a queue and its subscribers."""

    def __init__(self, client: redis.asyncio.Redis) -> None:
        self.client = client
        """At the server that the queue was opened at."""
        self._course = Course()
        self._others: dict[RedirectTarget, redis.asyncio.Redis] = {}

    async def ask(self, *words: Any) -> Any:
        """What the member that has the queue answers. Raises RedisError."""
        trip = self._course.begin()
        while True:
            try:
                return await self._sent(trip, words)
            except (redis.ConnectionError, redis.TimeoutError):
                trip.is_lost()
                raise
            except ResponseError as refusal:
                try:
                    delay_s = trip.follow(refusal)
                except ResponseError as final:
                    raise explained(final) from None
                await asyncio.sleep(delay_s)

    async def _sent(self, trip: Trip, words: tuple[Any, ...]) -> Any:
        client = self.client if trip.to is None else self.at(trip.to)
        if not trip.is_asking:
            return await client.execute_command(*words)  # type: ignore[no-untyped-call]
        pipe = client.pipeline(transaction=False)
        pipe.execute_command("ASKING")
        pipe.execute_command(*words)
        reply = (await pipe.execute(raise_on_error=False))[1]
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def members(self) -> list[redis.asyncio.Redis]:
        """A client of each member; of the only server, where nothing is sharded."""
        try:
            rows = await self.client.execute_command("CLUSTER", "SLOTS")  # type: ignore[no-untyped-call]
        except ResponseError:
            return [self.client]
        return [self.at(address) for address in addresses_in(rows)]

    def at(self, address: RedirectTarget) -> redis.asyncio.Redis:
        """A client of this member."""
        client = self._others.get(address)
        if client is None:
            kind, options = options_at(self.client.connection_pool, address, redis.asyncio.Connection)
            pool = redis.asyncio.ConnectionPool(connection_class=kind, **options)
            client = self._others[address] = redis.asyncio.Redis(connection_pool=pool)
        return client

    async def aclose(self, *, also_client: bool) -> None:
        """Let go of the connections to other members, and of the client, if it is the queue's own."""
        others, self._others = self._others, {}
        for client in others.values():
            await client.connection_pool.disconnect()
        if also_client:
            await self.client.aclose()
