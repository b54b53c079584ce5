"""Requests about one queue, to whichever member of a sharded whole has it."""

from __future__ import annotations

import time
from typing import Any

import redis
from redis.exceptions import ResponseError

from rlite_pubsub.queues.course import Course, RedirectTarget, Trip, addresses_in, options_at


class QueueRoute:
    """Sends the requests of a queue and its subscribers."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        """At the server that the queue was opened at."""
        self._course = Course()
        self._others: dict[RedirectTarget, redis.Redis] = {}

    def ask(self, *words: Any) -> Any:
        """Return the answer of the member that has the queue. Raises RedisError."""
        trip = self._course.begin()
        while True:
            try:
                return self._sent(trip, words)
            except (redis.ConnectionError, redis.TimeoutError):
                trip.is_lost()
                raise
            except ResponseError as refusal:
                time.sleep(trip.follow(refusal))

    def _sent(self, trip: Trip, words: tuple[Any, ...]) -> Any:
        client = self.client if trip.to is None else self.at(trip.to)
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
            rows = self.client.execute_command("CLUSTER", "SLOTS")  # type: ignore[no-untyped-call]
        except ResponseError:
            return [self.client]
        return [self.at(address) for address in addresses_in(rows)]

    def at(self, address: RedirectTarget) -> redis.Redis:
        """A client of this member."""
        client = self._others.get(address)
        if client is None:
            kind, options = options_at(self.client.connection_pool, address, redis.Connection)
            pool = redis.ConnectionPool(connection_class=kind, **options)
            client = self._others[address] = redis.Redis(connection_pool=pool)
        return client

    def close(self, *, also_client: bool) -> None:
        """Let go of the connections to other members, and of the client, if it is the queue's own."""
        others, self._others = self._others, {}
        for client in others.values():
            client.connection_pool.disconnect()
        if also_client:
            self.client.close()
