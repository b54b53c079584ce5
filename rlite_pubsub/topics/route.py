"""Requests about one topic, to whichever member of a sharded store has it."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, TypeAlias

import redis
from redis.cluster import RedisCluster
from redis.exceptions import ResponseError

from rlite_pubsub.topics.course import Course, RedirectTarget, Trip, addresses_in, options_at

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

    def ask(self, *words: Any) -> Any:
        """What the member that has the topic answers. Raises RedisError."""
        trip = self.begin()
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

    def members(self) -> list[redis.Redis]:
        """A client of each member; of the only server, where nothing is sharded."""
        try:
            rows = self._home.execute_command("CLUSTER", "SLOTS")  # type: ignore[no-untyped-call]
        except ResponseError:
            return [self._home]
        return [self.at(address) for address in addresses_in(rows)]

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
