"""Requests about one topic, to whichever member of a sharded store has it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeAlias

import redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.exceptions import ResponseError
from redis.retry import Retry

from rlite_pubsub.embedded.lingering import kept_open
from rlite_pubsub.topics.course import Course, RedirectTarget, Trip, addresses_in, briefly, options_at

Where: TypeAlias = "str | os.PathLike[str] | redis.Redis | RedisCluster"
"""A store's folder, a URL (rlite://, redis://, rediss://, unix://), or a client."""


def client_of(where: Where, **options: Any) -> redis.Redis:
    """A client for a folder or a URL; a client is taken as it is. Of a cluster's client: one for one of its members,
    with connections of its own."""
    if isinstance(where, redis.Redis):
        return where
    if isinstance(where, RedisCluster):
        node = where.get_default_node()  # type: ignore[no-untyped-call]
        return _client_at(where.get_redis_connection(node), RedirectTarget(node.host, node.port))
    place = os.fspath(where)
    if "://" in place and not place.startswith("rlite://"):
        return redis.Redis.from_url(place, **options)
    from rlite_pubsub.embedded.client import Redis, from_url

    return from_url(place, **options) if "://" in place else Redis(place, **options)


def _client_at(known: redis.Redis, address: RedirectTarget) -> redis.Redis:
    """A client of another member, which connects as this one does."""
    kind, options = options_at(known.connection_pool, address, redis.Connection)
    return redis.Redis(connection_pool=redis.ConnectionPool(connection_class=kind, **options))


class MemberRoute:
    """What asks for a topic, in any thread. What is given as `where` stays its owner's."""

    def __init__(self, where: Where, **options: Any) -> None:
        """The keywords are the client's."""
        self._home = client_of(where, **options)
        self._owns_home = self._home is not where
        nodes = where.get_nodes() if isinstance(where, RedisCluster) else ()  # type: ignore[no-untyped-call]
        self._course = Course(RedirectTarget(node.host, node.port) for node in nodes)
        self._others: dict[RedirectTarget, redis.Redis] = {}
        self._lock = threading.Lock()

    def begin(self) -> Trip:
        """One more request, for who sends it by a connection of its own."""
        return self._course.begin()

    def ask(self, *words: Any, within: float | None = None) -> Any:
        """What the member that has the topic answers. Whoever wants that `within` so many seconds does not wait for a
        member that is away, or a topic that is being moved, for much longer. Raises RedisError."""
        trip = self._course.begin(within)
        while True:
            try:
                return self._sent(trip, words)
            except (redis.ConnectionError, redis.TimeoutError):
                trip.is_lost()
                raise
            except ResponseError as refusal:
                time.sleep(trip.follow(refusal))

    def _sent(self, trip: Trip, words: tuple[Any, ...]) -> Any:
        client = self.at(trip.to)
        if not trip.is_asking:
            return client.execute_command(*words)  # type: ignore[no-untyped-call]
        pipe = client.pipeline(transaction=False)
        pipe.execute_command("ASKING")  # type: ignore[no-untyped-call]
        pipe.execute_command(*words)  # type: ignore[no-untyped-call]
        reply = pipe.execute(raise_on_error=False)[1]
        if isinstance(reply, Exception):
            raise reply
        return reply

    def ask_all(self, *words: Any) -> dict[str, Any]:
        """What each member answers, by host:port, or the failure to get an answer of it; of the only server, where
        nothing is sharded. All are asked at once, and each is waited for for BRIEF_S. Raises RedisError if this one
        fails."""
        try:
            rows = self._home.execute_command("CLUSTER", "SLOTS")  # type: ignore[no-untyped-call]
        except ResponseError:
            return {"": self._home.execute_command(*words)}  # type: ignore[no-untyped-call]
        with ThreadPoolExecutor(max_workers=16) as pool:
            asked = {address: pool.submit(self._ask_briefly, address, words) for address in addresses_in(rows)}
        return {f"{address.host}:{address.port}": found.result() for address, found in asked.items()}

    def _ask_briefly(self, address: RedirectTarget, words: tuple[Any, ...]) -> Any:
        kind, options = options_at(self._home.connection_pool, address, redis.Connection)
        known = briefly(options, Retry(NoBackoff(), 0))
        with redis.Redis(connection_pool=redis.ConnectionPool(connection_class=kind, **known)) as client:
            try:
                return client.execute_command(*words)
            except redis.RedisError as failure:
                return failure
            finally:
                client.connection_pool.disconnect()

    def at(self, address: RedirectTarget | None) -> redis.Redis:
        """A client of this member; of the server that was named at first."""
        if address is None:
            return self._home
        with self._lock:
            client = self._others.get(address)
            if client is None:
                client = self._others[address] = _client_at(self._home, address)
            return client

    def close(self) -> None:
        """Let go of the connections to other members, and of the client, if it is the route's own."""
        with self._lock:
            others, self._others = self._others, {}
        for client in others.values():
            client.connection_pool.disconnect()
        if self._owns_home:
            self._home.close()


@contextmanager
def brief_route(where: Where, options: dict[str, Any]) -> Iterator[MemberRoute]:
    """A route for one call. The store of a folder stays open for a moment behind it, for the next one."""
    with kept_open(where, options) as kept:
        route = MemberRoute(kept) if kept is not None else MemberRoute(where, **options)
        try:
            yield route
        finally:
            route.close()
