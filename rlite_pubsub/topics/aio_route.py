"""What route.py is, for programs with an event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import redis
import redis.asyncio
from redis.asyncio.cluster import RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError

from rlite_pubsub.embedded.lingering import kept_open
from rlite_pubsub.topics.course import Course, RedirectTarget, Trip, addresses_in, briefly, options_at

Where: TypeAlias = "str | os.PathLike[str] | redis.asyncio.Redis | RedisCluster"


def client_of(where: Where, **options: Any) -> redis.asyncio.Redis:
    """A client for a folder or a URL; a client is taken as it is. Of a cluster's client: one for one of its members,
    with connections of its own."""
    if isinstance(where, redis.asyncio.Redis):
        return where
    if isinstance(where, RedisCluster):
        node = _nodes_of(where)[0]
        known = {**node.connection_kwargs, "host": node.host, "port": node.port}
        pool = redis.asyncio.ConnectionPool(connection_class=node.connection_class, **known)
        return redis.asyncio.Redis(connection_pool=pool)
    place = os.fspath(where)
    if "://" in place and not place.startswith("rlite://"):
        return redis.asyncio.Redis.from_url(place, **options)
    from rlite_pubsub.embedded.aio_client import Redis, from_url

    return from_url(place, **options) if "://" in place else Redis(place, **options)


def _nodes_of(cluster: RedisCluster) -> list[Any]:
    """Those that it knows; before it has asked for them, where it is to ask."""
    return cluster.get_nodes() or list(cluster.nodes_manager.startup_nodes.values())


class AsyncMemberRoute:
    """What asks for a topic. What is given as `where` stays its owner's."""

    def __init__(self, where: Where, **options: Any) -> None:
        self._home = client_of(where, **options)
        self._owns_home = self._home is not where
        nodes = _nodes_of(where) if isinstance(where, RedisCluster) else ()
        self._course = Course(RedirectTarget(node.host, int(node.port)) for node in nodes)
        self._others: dict[RedirectTarget, redis.asyncio.Redis] = {}

    def begin(self) -> Trip:
        """One more request, for who sends it by a connection of its own."""
        return self._course.begin()

    async def ask(self, *words: Any, within: float | None = None) -> Any:
        """What the member that has the topic answers. Whoever wants that `within` so many seconds does not wait for a
        member that is away, or a topic that is being moved, for much longer. Raises RedisError."""
        trip = self._course.begin(within)
        while True:
            try:
                return await self._sent(trip, words)
            except (redis.ConnectionError, redis.TimeoutError):
                trip.is_lost()
                raise
            except ResponseError as refusal:
                await asyncio.sleep(trip.follow(refusal))

    async def _sent(self, trip: Trip, words: tuple[Any, ...]) -> Any:
        client = self.at(trip.to)
        if not trip.is_asking:
            return await client.execute_command(*words)  # type: ignore[no-untyped-call]
        pipe = client.pipeline(transaction=False)
        pipe.execute_command("ASKING")
        pipe.execute_command(*words)
        reply = (await pipe.execute(raise_on_error=False))[1]
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def ask_all(self, *words: Any) -> dict[str, Any]:
        """What each member answers, by host:port, or the failure to get an answer of it; of the only server, where
        nothing is sharded. All are asked at once, and each is waited for for BRIEF_S. Raises RedisError if this one
        fails."""
        try:
            rows = await self._home.execute_command("CLUSTER", "SLOTS")  # type: ignore[no-untyped-call]
        except ResponseError:
            return {"": await self._home.execute_command(*words)}  # type: ignore[no-untyped-call]
        addresses = addresses_in(rows)
        answers = await asyncio.gather(*[self._ask_briefly(address, words) for address in addresses])
        return {f"{address.host}:{address.port}": answer for address, answer in zip(addresses, answers, strict=True)}

    async def _ask_briefly(self, address: RedirectTarget, words: tuple[Any, ...]) -> Any:
        kind, options = options_at(self._home.connection_pool, address, redis.asyncio.Connection)
        known = briefly(options, Retry(NoBackoff(), 0))
        pool = redis.asyncio.ConnectionPool(connection_class=kind, **known)
        async with redis.asyncio.Redis(connection_pool=pool) as client:
            try:
                return await client.execute_command(*words)  # type: ignore[no-untyped-call]
            except redis.RedisError as failure:
                return failure
            finally:
                await pool.disconnect()

    def at(self, address: RedirectTarget | None) -> redis.asyncio.Redis:
        """A client of this member; of the server that was named at first."""
        if address is None:
            return self._home
        client = self._others.get(address)
        if client is None:
            kind, options = options_at(self._home.connection_pool, address, redis.asyncio.Connection)
            pool = redis.asyncio.ConnectionPool(connection_class=kind, **options)
            client = self._others[address] = redis.asyncio.Redis(connection_pool=pool)
        return client

    async def aclose(self) -> None:
        """Let go of the connections to other members, and of the client, if it is the route's own."""
        others, self._others = self._others, {}
        for client in others.values():
            await client.connection_pool.disconnect()
        if self._owns_home:
            await self._home.aclose()


@asynccontextmanager
async def brief_route(where: Where, options: dict[str, Any]) -> AsyncIterator[AsyncMemberRoute]:
    """A route for one call. The store of a folder stays open for a moment behind it, for the next one."""
    with kept_open(where, options):
        route = AsyncMemberRoute(where, **options)
        try:
            yield route
        finally:
            await route.aclose()
