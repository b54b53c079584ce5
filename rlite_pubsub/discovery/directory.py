"""A directory of servers: any Redis, Valkey or rlite-pubsub that all of them reach.

    rlite:server:ID     the card of a server, as JSON; it expires after `TTL_MS` unless the server says it again

A server that is killed is gone from there once its time is over; one that stops takes its card with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any

from rlite_pubsub.discovery.card import ServerCard, card_of

if TYPE_CHECKING:
    import redis

PREFIX = "rlite:server:"
TTL_MS = 15_000
EVERY_SECONDS = 5.0
"""How often a server says its card: two may be lost."""
TIMEOUT_SECONDS = 5.0
_SCANNED_AT_ONCE = 1000
_SCAN_SECONDS = 60.0
_MOST_NAMES = 100_000


def in_directory(url: str, topic: str | None = None) -> list[ServerCard]:
    """The servers in a directory, or those that have this topic, by machine and store. Raises redis.RedisError, and
    ValueError where this is no URL."""
    with client_of(url) as client:
        found = [card for card in _cards(client) if topic is None or topic in card.topics]
    return sorted(found, key=lambda card: (card.host, card.store, card.pid))


def client_of(url: str) -> redis.Redis:
    """Return a client that waits for a directory, but not for long. Raises ValueError."""
    import redis

    from rlite_pubsub.embedded.bounded_parsers import ShortParser

    options: dict[str, Any] = {"socket_timeout": TIMEOUT_SECONDS, "socket_connect_timeout": TIMEOUT_SECONDS}
    return redis.Redis.from_url(url, **options, parser_class=ShortParser)


def without_user(url: str) -> str:
    """Return a URL that may be shown."""
    return re.sub(r"(?<=://)[^/]*@", "", url.partition("?")[0])


def put(client: redis.Redis, card: ServerCard) -> None:
    """List this server. Raises redis.RedisError."""
    client.set(PREFIX + card.id, card.to_json(), px=TTL_MS)


def remove(client: redis.Redis, card: ServerCard) -> None:
    """Remove this server. Raises redis.RedisError."""
    client.delete(PREFIX + card.id)


def _names(client: redis.Redis) -> set[bytes]:
    """Raises redis.RedisError, also where the directory does not come to an end."""
    from redis.exceptions import InvalidResponse

    until = monotonic() + _SCAN_SECONDS
    names: set[Any] = set()
    cursor: Any = 0
    while True:
        cursor, more = client.scan(cursor, match=PREFIX + "*", count=_SCANNED_AT_ONCE)
        names.update(more)
        if not int(cursor):
            return names
        if len(names) > _MOST_NAMES or monotonic() > until:
            raise InvalidResponse(f"it lists {len(names)} servers, and more")


def _cards(client: redis.Redis) -> Iterator[ServerCard]:
    names = sorted(_names(client))
    for at in range(0, len(names), _SCANNED_AT_ONCE):
        texts: list[Any] = client.mget(names[at : at + _SCANNED_AT_ONCE])
        for text in texts:
            card = card_of(text) if text is not None else None
            if card is not None:
                yield card
