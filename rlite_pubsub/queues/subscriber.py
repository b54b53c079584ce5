"""Whoever reads a queue. Its place is the store's: any process that knows its name goes on where it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import redis
from redis.exceptions import ResponseError

from rlite_pubsub.queues.errors import explained
from rlite_pubsub.queues.item import Item, item_of

WAIT_MS = 5000
"""The longest single wait: a longer one is several."""


@dataclass(frozen=True, slots=True)
class SubscriberStatus:
    """What is known of one."""

    name: str
    position: str
    """The id of the last item that it has popped, or behind which it began."""
    behind: int | None
    """How many items it has not popped; None where deletions, or where it began, leave that open."""
    is_asleep: bool


class Subscriber:
    """One subscriber of a queue. Several of one name share one place: each item goes to one of them."""

    def __init__(self, client: redis.Redis, queue: str | bytes, name: str | bytes) -> None:
        self._client = client
        self.queue = queue
        self.name = name

    def pop(self, timeout: float | None = 0.0) -> Item | None:
        """The next item; None if none comes within so many seconds (None: wait for one). Raises SubscriberAsleep and
        NoSuchSubscriber."""
        reply = self._take(timeout)
        return None if reply is None else item_of(reply)

    def pop_many(self, count: int, timeout: float | None = 0.0) -> list[Item]:
        """At most `count` of the next items: those that are there, or the first to come."""
        return [item_of(one) for one in self._take(timeout, "COUNT", count) or ()]

    def peek(self) -> Item | None:
        """The next item, which stays the next one."""
        reply = self._do("QUEUE.PEEK")
        return None if reply is None else item_of(reply)

    def peek_many(self, count: int) -> list[Item]:
        """At most `count` of the next items."""
        return [item_of(one) for one in self._do("QUEUE.PEEK", "COUNT", count)]

    def __iter__(self) -> Iterator[Item]:
        """All items, as they come; without an end."""
        while True:
            item = self.pop(None)
            if item is not None:
                yield item

    def sleep(self) -> bool:
        """Be given nothing from now on; False if it is asleep already."""
        return bool(self._do("QUEUE.SLEEP"))

    def wakeup(self) -> bool:
        """Go on; False if it is awake."""
        return bool(self._do("QUEUE.WAKEUP"))

    def delete(self) -> bool:
        """Give up the place; False if there is no such subscriber."""
        return bool(self._do("QUEUE.DELETE"))

    def _take(self, timeout: float | None, *options: Any) -> Any:
        """What QUEUE.POP answers in the end."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left_ms = WAIT_MS if deadline is None else int((deadline - time.monotonic()) * 1000)
            block = ("BLOCK", min(left_ms, WAIT_MS)) if left_ms > 0 else ()
            reply = self._do("QUEUE.POP", *options, *block)
            if reply or (deadline is not None and left_ms <= WAIT_MS):
                return reply

    def _do(self, command: str, *options: Any) -> Any:
        try:
            return self._client.execute_command(command, self.queue, self.name, *options)  # type: ignore[no-untyped-call]
        except ResponseError as refusal:
            raise explained(refusal) from None
