"""Working through a group's entries: `consume`.

The server pushes entries as they come, at most `credit` of them unacknowledged (TOPIC.CONSUME). What the consumer had
not acknowledged when it ended comes first when it begins again under its name. Where the connection ends, or its
server, it connects again; what it was given before and has not acknowledged is not given twice by one consumption.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from redis.exceptions import ResponseError

from rlite_pubsub.topics.entry import Entry, pairs_of, text
from rlite_pubsub.topics.pushed_line import PushedLine
from rlite_pubsub.topics.route import MemberRoute, Where

PAGE = 100
"""Entries of the consumer's own history that are read at once."""


@dataclass(frozen=True, slots=True)
class Consumed(Entry):
    """An entry that is to be acknowledged."""

    acknowledge: Callable[[str], bool] = field(repr=False, compare=False)

    def ack(self) -> bool:
        """Acknowledge the entry, which makes room for another. Returns False if it was no longer pending, because it
        timed out or another consumer has claimed it. Any thread may call this. Raises what an XACK raises."""
        return self.acknowledge(self.id)


def consume(
    where: Where,
    topic: str | bytes,
    group: str | bytes,
    consumer: str | bytes,
    *,
    credit: int = 16,
    **options: Any,
) -> Consumption:
    """Receive a group's entries for a consumer, at most `credit` of them unacknowledged at a time.

    Raises ConnectionError where the store can't be had, and ResponseError where there is no such topic or group."""
    return Consumption(where, topic, group, consumer, credit, options)


class Consumption(PushedLine[Consumed]):
    """An iterator over entries. It ends when it is closed; what was not acknowledged stays pending."""

    def __init__(
        self,
        where: Where,
        topic: str | bytes,
        group: str | bytes,
        consumer: str | bytes,
        credit: int,
        options: dict[str, Any],
    ) -> None:
        if credit < 1:
            raise ValueError("credit= must be at least 1")
        self._topic, self._group, self._consumer, self._credit = topic, group, consumer, credit
        self._given: set[str] = set()  # and not acknowledged
        super().__init__(MemberRoute(where, **options))

    def get(self, timeout: float | None = None) -> Consumed | None:
        """The next entry, or None if none comes within `timeout` seconds. Without a timeout it waits for one. Raises
        ResponseError if the group is gone."""
        entry = super().get(timeout)
        if entry is not None:
            self._given.add(entry.id)
        return entry

    def greet(self, connection: Any) -> list[Consumed]:
        come = list(self._history(connection))
        connection.send_command("TOPIC.CONSUME", self._topic, self._group, self._consumer, "CREDIT", self._credit)
        while (reply := _answer(connection)) not in (b"OK", "OK"):
            come += self.take(reply)
        return come

    def take(self, frame: Any) -> list[Consumed]:
        if isinstance(frame, ResponseError):
            raise frame
        if text(frame[0]) == "topic-unconsume":
            self.hang_up()  # to connect again says why
            return []
        return [self._entry(text(entry_id), pairs) for entry_id, pairs in frame[4]]

    def _history(self, connection: Any) -> Iterator[Consumed]:
        """Yield the consumer's pending entries, without those given to it here."""
        after = "0-0"
        while True:
            connection.send_command(*pending_words(self._topic, self._group, self._consumer, after))
            entries = pending_in(_answer(connection))
            if not entries:
                return
            for entry_id, pairs in entries:
                after = text(entry_id)
                if pairs is None:  # it was deleted meanwhile: nobody can work on it
                    self.route.ask("XACK", self._topic, self._group, after)
                elif after not in self._given:
                    yield self._entry(after, pairs)

    def _entry(self, entry_id: str, flat: Iterable[Any]) -> Consumed:
        return Consumed(self._topic, entry_id, pairs_of(flat), self._acknowledge)

    def _acknowledge(self, entry_id: str) -> bool:
        was_pending = bool(self.route.ask("XACK", self._topic, self._group, entry_id))
        self._given.discard(entry_id)
        return was_pending


def pending_words(topic: str | bytes, group: str | bytes, consumer: str | bytes, after: str) -> list[Any]:
    """Return the request for the next page of a consumer's pending entries."""
    return ["XREADGROUP", "GROUP", group, consumer, "COUNT", PAGE, "STREAMS", topic, after]


def pending_in(reply: Any) -> list[Any]:
    """Return the ids and fields in the reply to that, in either version of the protocol."""
    found: list[Any] = next(iter(reply.values())) if isinstance(reply, dict) else reply[0][1]
    return found


def _answer(connection: Any) -> Any:
    """Return the next answer. Raises ResponseError."""
    reply = connection.read_response(push_request=True)
    if isinstance(reply, ResponseError):
        raise reply
    return reply
