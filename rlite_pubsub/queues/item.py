"""The items of a queue, and where a subscriber starts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from rlite_pubsub import measures
from rlite_pubsub.queues.codec import BYTES, Codec, Undecodable
from rlite_pubsub.topics.entry import pairs_of, text

Start: TypeAlias = "datetime | timedelta | str | bytes | int"
"""`beginning`, `end`, the id of the last item that was seen, a time (in ms since 1970 if it is a number), or an age
(`24h`, a timedelta)."""

_VALUE = b"value"


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a queue."""

    id: str
    """`ms-seq`."""
    pairs: tuple[tuple[bytes, bytes], ...]
    """Its fields: one, `value`, unless something else than a queue has put it there."""
    codec: Codec = field(default=BYTES, repr=False, compare=False)
    """The queue's."""

    @property
    def value(self) -> Any:
        """The pushed value. Raises KeyError for an entry that no queue has written, and Undecodable for one of another
        codec."""
        packed = dict(self.pairs)[_VALUE]
        try:
            return self.codec.decode(packed)
        except ValueError as failure:
            raise Undecodable(f"{self.id} is not {self.codec.name}: {failure}") from failure

    @property
    def time(self) -> datetime:
        """When it was pushed, according to its id."""
        return datetime.fromtimestamp(int(self.id.partition("-")[0]) / 1000, UTC)


class Lease:
    """What the holder of a leased item may ask of its subscriber: once."""

    __slots__ = ("_ask", "_of", "is_settled")

    def __init__(self, ask: Callable[..., Any], queue: str | bytes, name: str | bytes) -> None:
        self._ask = ask
        self._of = queue, name
        self.is_settled = False

    def acknowledge(self, id: str) -> Any:
        """What XACK answers, or the promise of it."""
        self.is_settled = True
        return self._ask("XACK", *self._of, id)

    def give_back(self, id: str, delay: float) -> Any:
        """What QUEUE.RETURN answers, or the promise of it."""
        self.is_settled = True
        return self._ask("QUEUE.RETURN", *self._of, *delay_words(delay), id)


@dataclass(frozen=True, slots=True)
class LeasedItem(Item):
    """An item that comes again, to whoever pops next, unless it is acknowledged before its lease is over."""

    deliveries: int = 1
    """How often it was popped, this time included."""
    lease: Lease | None = field(default=None, repr=False, compare=False)

    def ack(self) -> bool:
        """Say that it is done. False if it was done already, by whoever has popped it after the lease was over."""
        assert self.lease is not None
        return bool(self.lease.acknowledge(self.id))

    def give_back(self, delay: float = 0.0) -> bool:
        """Have it popped again, in so many seconds. False if it is not leased any more."""
        assert self.lease is not None
        return bool(self.lease.give_back(self.id, delay))


def item_of(reply: Any, codec: Codec = BYTES) -> Item:
    """Make an item from an id and an array of fields and values."""
    entry_id, flat = reply
    return Item(text(entry_id), pairs_of(flat), codec)


def delay_words(delay: float) -> tuple[str | int, ...]:
    """The option of a delay in seconds. Raises ValueError."""
    if delay < 0:
        raise ValueError("delay= is a number of seconds, at least 0")
    return ("DELAY", int(delay * 1000)) if delay else ()


def start_of(start: Start) -> str:
    """Return a start in the words of QUEUE.SUBSCRIBER. Raises TypeError and ValueError."""
    if start is None:
        raise TypeError("start= can't be None")
    found = measures.start_since(start, time.time_ns() // 1_000_000, "start")
    if found == measures.LAST:
        raise ValueError(f"start= is {measures.STARTS}, a datetime or a timedelta, not {start!r}")
    return found
