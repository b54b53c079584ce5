"""Reading topics, and writing to them: `publish` and `subscribe`.

A subscription goes on by itself: where its connection ends, or its server, it connects again and resumes behind the
last entry that it has given. Each entry is given once, in the order of its topic; a gap reports what retention took.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from redis.exceptions import DataError

from rlite_pubsub.topics.entry import Entry, Since, text
from rlite_pubsub.topics.positions import OnGap, Positions, warn_of_gap
from rlite_pubsub.topics.pushed_line import PushedLine
from rlite_pubsub.topics.route import MemberRoute, Where, brief_route

Starts: TypeAlias = "Since | Mapping[str, Since] | Mapping[bytes, Since]"
"""One start, or one for each topic."""
Fields: TypeAlias = "Mapping[str, Any] | Mapping[bytes, Any] | str | bytes"
"""An entry's fields and values; plain text becomes the field `message`."""


def append_words(topic: str | bytes, fields: Fields) -> list[Any]:
    """The XADD. Raises DataError without a field, and TypeError for what has none."""
    if not isinstance(fields, str | bytes | Mapping):
        raise TypeError(f"an entry's fields are a mapping, or text, not {type(fields).__name__}")
    pairs = {"message": fields} if isinstance(fields, str | bytes) else dict(fields)
    if not pairs:
        raise DataError("an entry has at least one field")
    return ["XADD", topic, "*", *[word for pair in pairs.items() for word in pair]]


def publish(where: Where, topic: str | bytes, fields: Fields, **options: Any) -> str:
    """Append an entry; its id. The store of a folder stays open for a second, for the next one."""
    words = append_words(topic, fields)
    with brief_route(where, options) as route:
        return text(route.ask(*words))


def subscribe(
    where: Where,
    *topics: str | bytes,
    since: Starts = None,
    on_gap: OnGap = warn_of_gap,
    **options: Any,
) -> Subscription:
    """Follow topics. `since` is one start for all of them, or one for each: `{"orders": "1700000000000-0"}`.

    What is published from now on is received. Raises ConnectionError where the store can't be had, and ResponseError
    where one of the names is no topic's, or the start is none; CROSSSLOT, where they are topics of several slots of a
    sharded store."""
    return Subscription(where, topics, since, on_gap, options)


class Subscription(PushedLine[Entry]):
    """An iterator over entries. It ends when it is closed."""

    def __init__(
        self,
        where: Where,
        topics: Iterable[str | bytes],
        since: Starts,
        on_gap: OnGap,
        options: dict[str, Any],
    ) -> None:
        self._positions = positions_of(topics, since, on_gap)
        super().__init__(MemberRoute(where, **options))

    @property
    def positions(self) -> dict[str | bytes, str]:
        """By topic, as it was named, the id after which it would continue. Pass them to `subscribe` as `since` to do so
        later."""
        return self._positions.by_topic

    def greet(self, connection: Any) -> list[Entry]:
        connection.send_command(*self._positions.greeting())
        while not self._positions.are_known:
            self._positions.take(connection.read_response(push_request=True))
        return []

    def take(self, frame: Any) -> list[Entry]:
        entry = self._positions.take(frame)
        return [] if entry is None else [entry]


def positions_of(topics: Iterable[str | bytes], since: Starts, on_gap: OnGap) -> Positions:
    if isinstance(since, Mapping):
        starts: dict[str | bytes, Since] = dict.fromkeys(topics)
        known = {text(topic): topic for topic in starts}
        for topic, start in since.items():
            starts[known.get(text(topic), topic)] = start
        return Positions(starts, None, on_gap)
    return Positions(topics, since, on_gap)
