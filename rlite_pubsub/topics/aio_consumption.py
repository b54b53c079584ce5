"""What consumption.py is, for programs with an event loop.

The same promises; and a `get` or an `ack` that is cancelled leaves the consumption as it is: the next `get` gives the
next entry, and an entry whose `ack` did not return may be acknowledged again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from redis.exceptions import ConnectionError, ResponseError

from rlite_pubsub.topics.aio_line import AwaitedLine
from rlite_pubsub.topics.aio_route import Where
from rlite_pubsub.topics.consumption import pending_in, pending_words
from rlite_pubsub.topics.entry import Entry, pairs_of, text


@dataclass(frozen=True, slots=True)
class Consumed(Entry):
    """An entry that is to be acknowledged."""

    acknowledge: Callable[[str], Awaitable[bool]] = field(repr=False, compare=False)

    async def ack(self) -> bool:
        """Acknowledge the entry, which makes room for another. Returns False if it was no longer pending, because it
        timed out or another consumer has claimed it. Any task of the loop may call this. Raises what an XACK raises."""
        return await self.acknowledge(self.id)


class Consumption(AwaitedLine[Consumed]):
    """An asynchronous iterator over entries. It ends when it is closed; what was not acknowledged stays pending."""

    def __init__(
        self,
        where: Where,
        topic: str | bytes,
        group: str | bytes,
        consumer: str | bytes,
        credit: int,
        options: dict[str, Any],
    ) -> None:
        super().__init__(where, options)
        self._topic, self._group, self._consumer, self._credit = topic, group, consumer, credit
        self._given: set[str] = set()  # and not acknowledged

    async def get(self, timeout: float | None = None) -> Consumed | None:
        """The next entry, or None if none comes within `timeout` seconds. Without a timeout it waits for one. Raises
        ResponseError if the group is gone."""
        entry = await super().get(timeout)
        if entry is not None:
            self._given.add(entry.id)
        return entry

    async def greet(self, connection: Any) -> list[Consumed]:
        come = [entry async for entry in self._history(connection)]
        await connection.send_command("TOPIC.CONSUME", self._topic, self._group, self._consumer, "CREDIT", self._credit)
        while (reply := await _answer(connection)) not in (b"OK", "OK"):
            come += self.take(reply)
        return come

    def take(self, frame: Any) -> list[Consumed]:
        if isinstance(frame, ResponseError):
            raise frame
        if text(frame[0]) == "topic-unconsume":
            raise ConnectionError("the server no longer pushes entries of this group")  # to connect again says why
        return [self._entry(text(entry_id), flat) for entry_id, flat in frame[4]]

    async def _history(self, connection: Any) -> AsyncIterator[Consumed]:
        """Yield what is pending with the consumer, except what it has been given here."""
        after = "0-0"
        while True:
            await connection.send_command(*pending_words(self._topic, self._group, self._consumer, after))
            entries = pending_in(await _answer(connection))
            if not entries:
                return
            for entry_id, flat in entries:
                after = text(entry_id)
                if flat is None:  # it was deleted meanwhile: nobody can work on it
                    await self.route.ask("XACK", self._topic, self._group, after)
                elif after not in self._given:
                    yield self._entry(after, flat)

    def _entry(self, entry_id: str, flat: Iterable[Any]) -> Consumed:
        return Consumed(self._topic, entry_id, pairs_of(flat), self._acknowledge)

    async def _acknowledge(self, entry_id: str) -> bool:
        was_pending = bool(await self.route.ask("XACK", self._topic, self._group, entry_id))
        self._given.discard(entry_id)
        return was_pending


async def _answer(connection: Any) -> Any:
    """Return what comes next. Raises ResponseError."""
    reply = await connection.read_response(push_request=True)
    if isinstance(reply, ResponseError):
        raise reply
    return reply
