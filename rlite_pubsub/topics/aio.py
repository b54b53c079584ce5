"""What subscription.py and consumption.py are, for programs with an event loop.

    subscription = await topics.aio.subscribe("./store", "orders")    # what is published from now on is received
    async with topics.aio.subscribe("./store", "orders") as subscription: ...
    async for entry in topics.aio.subscribe("./store", "orders", since=last_id): ...

    async for entry in topics.aio.consume("./store", "orders", "billing", "worker-1", credit=16):
        await work_on(entry)
        await entry.ack()

    async for batch in await topics.aio.arrow("./store", "orders", since="24h", columns="id, item, price double"): ...
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from rlite_pubsub.measures import BEGINNING, Since
from rlite_pubsub.topics import history
from rlite_pubsub.topics.aio_consumption import Consumed, Consumption
from rlite_pubsub.topics.aio_line import AwaitedLine, UnbegunLine
from rlite_pubsub.topics.aio_route import Where, brief_route
from rlite_pubsub.topics.entry import Entry, text
from rlite_pubsub.topics.positions import OnGap, Positions, warn_of_gap
from rlite_pubsub.topics.subscription import Fields, Starts, append_words, positions_of

if TYPE_CHECKING:
    from rlite_pubsub.pipeline.history import History

__all__ = ["Consumed", "Consumption", "Subscription", "Where", "arrow", "consume", "publish", "subscribe"]


async def publish(where: Where, topic: str | bytes, fields: Fields, **options: Any) -> str:
    """Append an entry; its id. The store of a folder stays open for a second, for the next one."""
    words = append_words(topic, fields)
    async with brief_route(where, options) as route:
        return text(await route.ask(*words))


async def arrow(
    where: str | os.PathLike[str],
    topic: str,
    *,
    since: Since = BEGINNING,
    until: Since = None,
    columns: str | Iterable[str] | None = None,
    **options: object,
) -> History:
    """`topics.arrow`, planned in a thread; iterated over by `async for`, it is read in one."""
    return await asyncio.to_thread(
        history.arrow, where, topic, since=since, until=until, columns=columns, **options
    )


def subscribe(
    where: Where,
    *topics: str | bytes,
    since: Starts = None,
    on_gap: OnGap = warn_of_gap,
    **options: Any,
) -> Subscribing:
    """Follow topics, once this is awaited, entered or iterated over. `since` is one start for all of them, or one for
    each: `{"orders": "1700000000000-0"}`.

    What is published after `await subscribe(...)` is received. Raises there ConnectionError where the store can't be
    had, and ResponseError where one of the names is no topic's, or the start is none; CROSSSLOT, where they are topics
    of several slots of a sharded store."""
    positions = positions_of(topics, since, on_gap)
    return UnbegunLine(lambda: Subscription(where, positions, options))


def consume(
    where: Where,
    topic: str | bytes,
    group: str | bytes,
    consumer: str | bytes,
    *,
    credit: int = 16,
    **options: Any,
) -> Consuming:
    """Receive a group's entries for a consumer, at most `credit` of them unacknowledged at a time, once this is
    awaited, entered or iterated over.

    Raises there ConnectionError where the store can't be had, and ResponseError where there is no such topic or
    group."""
    if credit < 1:
        raise ValueError("credit= must be at least 1")
    return UnbegunLine(lambda: Consumption(where, topic, group, consumer, credit, options))


class Subscription(AwaitedLine[Entry]):
    """An asynchronous iterator over entries. It ends when it is closed."""

    def __init__(self, where: Where, positions: Positions, options: dict[str, Any]) -> None:
        super().__init__(where, options)
        self._positions = positions

    @property
    def positions(self) -> dict[str | bytes, str]:
        """By topic, as it was named, the id after which it would continue. Pass them to `subscribe` as `since` to do so
        later."""
        return self._positions.by_topic

    async def greet(self, connection: Any) -> list[Entry]:
        await connection.send_command(*self._positions.greeting())
        while not self._positions.are_known:
            self._positions.take(await connection.read_response(push_request=True))
        return []

    def take(self, frame: Any) -> list[Entry]:
        entry = self._positions.take(frame)
        return [] if entry is None else [entry]


Subscribing: TypeAlias = UnbegunLine[Subscription]
Consuming: TypeAlias = UnbegunLine[Consumption]
