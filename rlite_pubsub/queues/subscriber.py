"""The reader of a queue. Its place is the store's: any process that knows its name goes on where it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Literal, overload

from redis.exceptions import RedisError, ResponseError

from rlite_pubsub.queues.codec import BYTES, Codec
from rlite_pubsub.queues.errors import explained
from rlite_pubsub.queues.item import Item, Lease, LeasedItem, item_of
from rlite_pubsub.queues.requests import WAIT_MS, subscriber_id, take_words
from rlite_pubsub.topics.entry import pairs_of, text
from rlite_pubsub.topics.route import MemberRoute


class Subscriber:
    """One subscriber of a queue. Several of one name share one position: each item goes to one of them."""

    def __init__(
        self,
        route: MemberRoute,
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
        """The id by which `get_subscriber` finds it, in any process."""
        return subscriber_id(self.queue, self.name)

    @overload
    def pop(self, timeout: float | None = ..., *, ack: Literal[False] = ...) -> Item | None: ...
    @overload
    def pop(self, timeout: float | None = ..., *, ack: Literal[True]) -> LeasedItem | None: ...
    def pop(self, timeout: float | None = 0.0, *, ack: bool = False) -> Item | None:
        """The next item; None if none comes within this many seconds (None: wait for one). Raises SubscriberAsleep and
        NoSuchSubscriber.

        What is popped is done with: at most once. With `ack=True` it comes again unless `ack()` says within the lease
        that it is done: at least once."""
        reply = self._take(timeout, None, ack=ack)
        return None if reply is None else self._item(reply, ack=ack)

    @overload
    def pop_many(
        self, count: int, timeout: float | None = ..., *, ack: Literal[False] = ...
    ) -> list[Item]: ...
    @overload
    def pop_many(self, count: int, timeout: float | None = ..., *, ack: Literal[True]) -> list[LeasedItem]: ...
    def pop_many(
        self, count: int, timeout: float | None = 0.0, *, ack: bool = False
    ) -> list[Item] | list[LeasedItem]:
        """Return at most `count` of the next items: those that are there, or the first to come."""
        return [self._item(one, ack=ack) for one in self._take(timeout, count, ack=ack) or ()]

    @contextmanager
    def popping(self, timeout: float | None = 0.0, *, retry_after: float = 0.0) -> Iterator[LeasedItem | None]:
        """`pop(timeout, ack=True)` for a `with`: the item is acknowledged at its end, and given back if it is left by
        an exception, to be popped again in `retry_after` seconds. None if there is no item."""
        item = self.pop(timeout, ack=True)
        if item is None or item.lease is None:
            yield None
            return
        try:
            yield item
        except BaseException:
            if not item.lease.is_settled:
                with suppress(RedisError):  # then its lease ends by itself
                    item.give_back(retry_after)
            raise
        if not item.lease.is_settled:
            item.ack()

    def peek(self) -> Item | None:
        """The next item, without advancing the position."""
        reply = self._ask("QUEUE.PEEK", self.queue, self.name, within=0)
        return None if reply is None else item_of(reply, self.codec)

    def peek_many(self, count: int) -> list[Item]:
        """Return at most `count` of the next items."""
        reply = self._ask("QUEUE.PEEK", self.queue, self.name, "COUNT", count, within=0)
        return [item_of(one, self.codec) for one in reply]

    def __iter__(self) -> Iterator[Item]:
        """All items as they come, without end."""
        while True:
            item = self.pop(None)
            if item is not None:
                yield item

    def sleep(self) -> bool:
        """Stop receiving; False if it is asleep already."""
        return bool(self._do("QUEUE.SLEEP"))

    def wakeup(self) -> bool:
        """Resume; False if it is awake."""
        return bool(self._do("QUEUE.WAKEUP"))

    def delete(self) -> bool:
        """Delete the subscriber; False if it does not exist."""
        return bool(self._do("QUEUE.DELETE"))

    def close(self) -> None:
        """Let go of the client, if it is the subscriber's own. Its place stays."""
        if self._owns_route:
            self._route.close()

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _item(self, reply: Any, *, ack: bool) -> Item:
        if not ack:
            return item_of(reply, self.codec)
        entry_id, flat, deliveries = reply
        lease = Lease(self._ask, self.queue, self.name)
        return LeasedItem(text(entry_id), pairs_of(flat), self.codec, deliveries, lease)

    def _take(self, timeout: float | None, count: int | None, *, ack: bool) -> Any:
        """Return QUEUE.POP's final answer."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left_ms = None if deadline is None else int((deadline - time.monotonic()) * 1000)
            within = None if left_ms is None else left_ms / 1000
            reply = self._ask(*take_words(self.queue, self.name, count, left_ms, ack=ack), within=within)
            if reply or (left_ms is not None and left_ms <= WAIT_MS):
                return reply

    def _do(self, command: str, *options: Any) -> Any:
        return self._ask(command, self.queue, self.name, *options)

    def _ask(self, *words: Any, within: float | None = None) -> Any:
        try:
            return self._route.ask(*words, within=within)
        except ResponseError as refusal:
            raise explained(refusal) from None
