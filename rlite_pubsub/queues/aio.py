"""What queue.py and subscriber.py are, for programs with an event loop.

    async with queues.aio.Queue("./store", "jobs", codec="json") as jobs:
        await jobs.push({"to": "ada"})
        worker = await jobs.create_subscriber("worker")
        async for item in worker: ...
    worker = await queues.aio.get_subscriber("./store", "jobs:worker", codec="json")
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Literal, overload

from redis.exceptions import RedisError, ResponseError

from rlite_pubsub.queues.codec import BYTES, Codec, CodecName, codec_of
from rlite_pubsub.queues.errors import NoSuchSubscriber, explained
from rlite_pubsub.queues.item import Item, Lease, Start, item_of, start_of
from rlite_pubsub.queues.requests import (
    WAIT_MS,
    QueueNames,
    SubscriberStatus,
    gathered,
    lease_words,
    names_in,
    statuses_of,
    subscriber_id,
    take_words,
)
from rlite_pubsub.topics.aio_route import AsyncMemberRoute, Where, brief_route
from rlite_pubsub.topics.entry import pairs_of, text


class Queue:
    """The queue of this name, once this is entered or `open` is awaited; it is made if need be.

    With `create=False` it must be there: raises NoSuchQueue. The keywords are those of the queue without an event loop.
    """

    def __init__(
        self, where: Where, name: str | bytes, *, create: bool = True, codec: CodecName = "bytes", **options: Any
    ) -> None:
        self.codec = codec_of(codec)
        self._route = AsyncMemberRoute(where, **options)
        self._creates = create
        self.name = name

    async def open(self) -> Queue:
        """Make the queue, or see that it is there; this queue."""
        try:
            await self._do("QUEUE.CREATE" if self._creates else "QUEUE.LIST", self.name)
        except BaseException:
            await self.aclose()
            raise
        return self

    async def push(self, *values: Any) -> list[str]:
        """Append values; their ids. All of them, or none."""
        packed = [self.codec.encode(value) for value in values]
        if not packed:
            return []
        return [text(entry_id) for entry_id in await self._do("QUEUE.PUSH", self.name, *packed)]

    async def create_subscriber(
        self,
        name: str | bytes,
        start: Start = "beginning",
        *,
        lease: float | None = None,
        max_deliveries: int | None = None,
        dead_letters: str | bytes | None = None,
    ) -> Subscriber:
        """A subscriber; one that is there keeps its place. The keywords are those of the queue without an event
        loop."""
        settings = lease_words(lease, max_deliveries, dead_letters)
        await self._do("QUEUE.SUBSCRIBER", self.name, name, start_of(start))
        if settings:
            await self._do("TOPIC.GROUP", self.name, name, *settings)
        return self.subscriber(name)

    def subscriber(self, name: str | bytes) -> Subscriber:
        """The subscriber of this name, which must have been made before."""
        return Subscriber(self._route, self.name, name, self.codec)

    async def list(self) -> list[SubscriberStatus]:
        """Return the status of its subscribers, by name."""
        return statuses_of(await self._do("QUEUE.LIST", self.name))

    async def size(self) -> int:
        """Return how many items its history has."""
        return int(await self._do("QUEUE.LEN", self.name))

    async def delete(self) -> bool:
        """Remove it, with its history and its subscribers; False if it is gone already."""
        return bool(await self._do("QUEUE.DELETE", self.name))

    async def aclose(self) -> None:
        """Let go of the client, if it is the queue's own. Everything stays where it is."""
        await self._route.aclose()

    async def __aenter__(self) -> Queue:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _do(self, *words: Any) -> Any:
        return await _ask(self._route, *words)


@dataclass(frozen=True, slots=True)
class LeasedItem(Item):
    """An item that comes again, to whoever pops next, unless it is acknowledged before its lease is over."""

    deliveries: int = 1
    """How often it was popped, this time included."""
    lease: Lease | None = field(default=None, repr=False, compare=False)

    async def ack(self) -> bool:
        """Say that it is done. False if it was done already, by whoever has popped it after the lease was over."""
        assert self.lease is not None
        return bool(await self.lease.acknowledge(self.id))

    async def give_back(self, delay: float = 0.0) -> bool:
        """Have it popped again, in so many seconds. False if it is not leased any more."""
        assert self.lease is not None
        return bool(await self.lease.give_back(self.id, delay))


class Subscriber:
    """One subscriber of a queue. Several of one name share one place: each item goes to one of them."""

    def __init__(
        self,
        route: AsyncMemberRoute,
        queue: str | bytes,
        name: str | bytes,
        codec: Codec = BYTES,
        *,
        owns_route: bool = False,
    ) -> None:
        self._route = route
        self._owns_route = owns_route
        self.queue = queue
        self.name = name
        self.codec = codec

    @property
    def id(self) -> str:
        """What `get_subscriber` finds it by, in any process."""
        return subscriber_id(self.queue, self.name)

    @overload
    async def pop(self, timeout: float | None = ..., *, ack: Literal[False] = ...) -> Item | None: ...
    @overload
    async def pop(self, timeout: float | None = ..., *, ack: Literal[True]) -> LeasedItem | None: ...
    async def pop(self, timeout: float | None = 0.0, *, ack: bool = False) -> Item | None:
        """The next item; None if none comes within so many seconds (None: wait for one). Raises SubscriberAsleep and
        NoSuchSubscriber.

        What is popped is done with: at most once. With `ack=True` it comes again unless `ack()` says within the lease
        that it is done: at least once."""
        reply = await self._take(timeout, None, ack=ack)
        return None if reply is None else self._item(reply, ack=ack)

    @overload
    async def pop_many(
        self, count: int, timeout: float | None = ..., *, ack: Literal[False] = ...
    ) -> list[Item]: ...
    @overload
    async def pop_many(
        self, count: int, timeout: float | None = ..., *, ack: Literal[True]
    ) -> list[LeasedItem]: ...
    async def pop_many(
        self, count: int, timeout: float | None = 0.0, *, ack: bool = False
    ) -> list[Item] | list[LeasedItem]:
        """Return at most `count` of the next items: those that are there, or the first to come."""
        return [self._item(one, ack=ack) for one in await self._take(timeout, count, ack=ack) or ()]

    @asynccontextmanager
    async def popping(
        self, timeout: float | None = 0.0, *, retry_after: float = 0.0
    ) -> AsyncIterator[LeasedItem | None]:
        """`pop(timeout, ack=True)` for an `async with`: the item is acknowledged at its end, and given back if it is
        left by an exception, to be popped again in `retry_after` seconds. None if there is no item."""
        item = await self.pop(timeout, ack=True)
        if item is None or item.lease is None:
            yield None
            return
        try:
            yield item
        except BaseException:
            if not item.lease.is_settled:
                with suppress(RedisError):  # then its lease ends by itself
                    await item.give_back(retry_after)
            raise
        if not item.lease.is_settled:
            await item.ack()

    async def peek(self) -> Item | None:
        """The next item, which stays the next one."""
        reply = await _ask(self._route, "QUEUE.PEEK", self.queue, self.name, within=0)
        return None if reply is None else item_of(reply, self.codec)

    async def peek_many(self, count: int) -> list[Item]:
        """Return at most `count` of the next items."""
        reply = await _ask(self._route, "QUEUE.PEEK", self.queue, self.name, "COUNT", count, within=0)
        return [item_of(one, self.codec) for one in reply]

    async def __aiter__(self) -> AsyncIterator[Item]:
        """All items, as they come; without an end."""
        while True:
            item = await self.pop(None)
            if item is not None:
                yield item

    async def sleep(self) -> bool:
        """Be given nothing from now on; False if it is asleep already."""
        return bool(await self._do("QUEUE.SLEEP"))

    async def wakeup(self) -> bool:
        """Go on; False if it is awake."""
        return bool(await self._do("QUEUE.WAKEUP"))

    async def delete(self) -> bool:
        """Give up the place; False if there is no such subscriber."""
        return bool(await self._do("QUEUE.DELETE"))

    async def aclose(self) -> None:
        """Let go of the client, if it is the subscriber's own. Its place stays."""
        if self._owns_route:
            await self._route.aclose()

    async def __aenter__(self) -> Subscriber:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()

    def _item(self, reply: Any, *, ack: bool) -> Item:
        if not ack:
            return item_of(reply, self.codec)
        entry_id, flat, deliveries = reply
        lease = Lease(partial(_ask, self._route), self.queue, self.name)
        return LeasedItem(text(entry_id), pairs_of(flat), self.codec, deliveries, lease)

    async def _take(self, timeout: float | None, count: int | None, *, ack: bool) -> Any:
        """Return the final answer to QUEUE.POP, which may be sent several times."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left_ms = None if deadline is None else int((deadline - time.monotonic()) * 1000)
            within = None if left_ms is None else left_ms / 1000
            words = take_words(self.queue, self.name, count, left_ms, ack=ack)
            reply = await _ask(self._route, *words, within=within)
            if reply or (left_ms is not None and left_ms <= WAIT_MS):
                return reply

    async def _do(self, command: str, *options: Any) -> Any:
        return await _ask(self._route, command, self.queue, self.name, *options)


async def _ask(route: AsyncMemberRoute, *words: Any, within: float | None = None) -> Any:
    try:
        return await route.ask(*words, within=within)
    except ResponseError as refusal:
        raise explained(refusal) from None


async def create_queue(where: Where, name: str | bytes, **options: Any) -> Queue:
    """The queue of this name, created if necessary."""
    return await Queue(where, name, **options).open()


async def get_queue(
    where: Where, name: str | bytes | None = None, *, subscriber: str | None = None, **options: Any
) -> Queue:
    """The queue of this name, or the one that the subscriber with this id reads. Raises NoSuchQueue, NoSuchSubscriber,
    and ValueError for what is no id."""
    if (name is None) == (subscriber is None):
        raise TypeError("get_queue takes a queue's name, or subscriber= with an id")
    if subscriber is None:
        assert name is not None
        return await Queue(where, name, create=False, **options).open()
    of_queue, who = names_in(subscriber)
    queue = await Queue(where, of_queue, create=False, **options).open()
    try:
        names = {status.name for status in await queue.list()}
        if text(who) not in names:
            raise NoSuchSubscriber(f"No such subscriber {subscriber!r}")
    except BaseException:
        await queue.aclose()
        raise
    return queue


async def get_subscriber(where: Where, id: str, **options: Any) -> Subscriber:
    """The subscriber with this id, wherever that was made; its queue's keywords. Raises as `get_queue`."""
    queue = await get_queue(where, subscriber=id, **options)
    return Subscriber(queue._route, queue.name, names_in(id)[1], queue.codec, owns_route=True)


async def list_queues(where: Where, **options: Any) -> QueueNames:
    """The names of all queues; where they are sharded, of all members that answer: `missing` of the list names the
    others. Raises RedisError if none does."""
    async with brief_route(where, options) as route:
        return gathered(await route.ask_all("QUEUE.LIST"))
