"""Reading topics, and writing to them: `publish` and `subscribe`.

A subscription goes on by itself: where its connection ends, or its server, it connects again and resumes behind the
last entry that it has given. Each entry is given once, in the order of its topic; a gap reports what retention took.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import redis

from rlite_pubsub.topics.entry import Entry, Since, text
from rlite_pubsub.topics.positions import OnGap, Positions, warn_of_gap
from rlite_pubsub.topics.pushed_line import PushedLine

Where: TypeAlias = "str | os.PathLike[str] | redis.Redis"
"""A store's folder, a URL (rlite://, redis://, rediss://, unix://), or a client."""
Fields: TypeAlias = "Mapping[str, Any] | Mapping[bytes, Any] | str | bytes"
"""An entry's fields and values; plain text becomes the field `message`."""


def client_of(where: Where, **options: Any) -> redis.Redis:
    """A client for a folder or a URL; a client is taken as it is."""
    if isinstance(where, redis.Redis):
        return where
    place = os.fspath(where)
    if "://" in place and not place.startswith("rlite://"):
        return redis.Redis.from_url(place, **options)
    from rlite_pubsub.embedded.client import Redis, from_url

    return from_url(place, **options) if "://" in place else Redis(place, **options)


def fields_of(fields: Fields) -> dict[Any, Any]:
    """Return fields as XADD wants them."""
    return {"message": fields} if isinstance(fields, str | bytes) else dict(fields)


def publish(where: Where, topic: str | bytes, fields: Fields, **options: Any) -> str:
    """Append an entry; its id."""
    client = client_of(where, **options)
    try:
        return text(client.xadd(topic, fields_of(fields)))
    finally:
        if client is not where:
            client.close()


def subscribe(
    where: Where,
    *topics: str | bytes,
    since: Since | Mapping[str, Since] = None,
    on_gap: OnGap = warn_of_gap,
    **options: Any,
) -> Subscription:
    """Follow topics. `since` is one start for all of them, or one for each: `{"orders": "1700000000000-0"}`.

    What is published from now on is received. Raises ConnectionError where the store can't be had, and ResponseError
    where one of the names is no topic's, or the start is none."""
    return Subscription(where, topics, since, on_gap, options)


class Subscription(PushedLine[Entry]):
    """An iterator over entries. It ends when it is closed."""

    def __init__(
        self,
        where: Where,
        topics: Iterable[str | bytes],
        since: Since | Mapping[str, Since],
        on_gap: OnGap,
        options: dict[str, Any],
    ) -> None:
        self._positions = positions_of(topics, since, on_gap)
        client = client_of(where, **options)
        super().__init__(client, owns_client=client is not where)

    @property
    def positions(self) -> dict[str, str]:
        """The id of each topic after which it would continue. Pass them to `subscribe` as `since` to do so later."""
        return dict(self._positions.ids)

    def greet(self, connection: Any) -> list[Entry]:
        connection.send_command(*self._positions.command)
        while not self._positions.are_known:  # at first: say where each topic continues before `subscribe` returns
            self._positions.take(connection.read_response(push_request=True))
        return []

    def take(self, frame: Any) -> list[Entry]:
        entry = self._positions.take(frame)
        return [] if entry is None else [entry]


def positions_of(topics: Iterable[str | bytes], since: Since | Mapping[str, Since], on_gap: OnGap) -> Positions:
    if isinstance(since, Mapping):
        starts: dict[str, Since] = dict.fromkeys(map(text, topics))
        starts.update(since)
        return Positions(starts, None, on_gap)
    return Positions(topics, since, on_gap)
