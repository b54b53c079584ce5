"""The reader of a queue. Its place is the store's: any process that knows its name goes on where it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from redis.exceptions import ResponseError

from rlite_pubsub.queues.codec import BYTES, Codec
from rlite_pubsub.queues.errors import explained
from rlite_pubsub.queues.item import Item, item_of
from rlite_pubsub.queues.requests import WAIT_MS, subscriber_id, take_words
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

    def pop(self, timeout: float | None = 0.0) -> Item | None:
        """The next item; None if none comes within this many seconds (None: wait for one). Raises SubscriberAsleep and
        NoSuchSubscriber."""
        reply = self._take(timeout, None)
        return None if reply is None else item_of(reply, self.codec)

    def pop_many(self, count: int, timeout: float | None = 0.0) -> list[Item]:
        """Return at most `count` of the next items: those that are there, or the first to come."""
        return [item_of(one, self.codec) for one in self._take(timeout, count) or ()]

    def peek(self) -> Item | None:
        """The next item, without advancing the position."""
        reply = self._do("QUEUE.PEEK")
        return None if reply is None else item_of(reply, self.codec)

    def peek_many(self, count: int) -> list[Item]:
        """Return at most `count` of the next items."""
        return [item_of(one, self.codec) for one in self._do("QUEUE.PEEK", "COUNT", count)]

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

    def _take(self, timeout: float | None, count: int | None) -> Any:
        """Return QUEUE.POP's final answer."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left_ms = None if deadline is None else int((deadline - time.monotonic()) * 1000)
            reply = self._ask(*take_words(self.queue, self.name, count, left_ms))
            if reply or (left_ms is not None and left_ms <= WAIT_MS):
                return reply

    def _do(self, command: str, *options: Any) -> Any:
        return self._ask(command, self.queue, self.name, *options)

    def _ask(self, *words: Any) -> Any:
        try:
            return self._route.ask(*words)
        except ResponseError as refusal:
            raise explained(refusal) from None
