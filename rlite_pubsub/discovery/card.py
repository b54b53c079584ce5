"""A server's description of itself, as JSON. It names no user and no password."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace


@dataclass(frozen=True)
class ServerCard:
    """One server."""

    id: str
    """Another one each time it starts."""
    host: str
    """The name of its machine."""
    pid: int
    store: str
    """The folder, on that machine."""
    addresses: tuple[str, ...]
    """URLs, without users: redis://, rediss://, unix://, http://, https://."""
    version: str
    started_ms: int
    topics: tuple[str, ...] = ()
    """Of database 0, by name; in a directory alone. A byte that is not UTF-8 is written as `\\xNN`."""
    topics_left_out: int = 0
    """There are so many more."""

    def with_topics(self, names: tuple[str, ...], left_out: int) -> ServerCard:
        """Return the same server, with these topics."""
        return replace(self, topics=names, topics_left_out=left_out)

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))


def card_of(text: str | bytes) -> ServerCard | None:
    """Return what `to_json` wrote; None if the text is something else. Fields of later versions are ignored."""
    try:
        said = json.loads(text)
        found = {field.name: said[field.name] for field in fields(ServerCard)}
        card = ServerCard(**found)
        texts = card.id, card.host, card.store, card.version
        numbers = card.pid, card.started_ms, card.topics_left_out
        if not all(isinstance(each, str) for each in texts) or not all(type(each) is int for each in numbers):
            return None
        return replace(card, addresses=tuple(map(str, card.addresses)), topics=tuple(map(str, card.topics)))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
