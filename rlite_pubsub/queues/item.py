"""The items of a queue, and where a subscriber starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

from rlite_pubsub.queues.codec import BYTES, Codec, Undecodable
from rlite_pubsub.topics.entry import raw, text

Start: TypeAlias = "datetime | str | bytes | int"
"""`beginning`, `end`, the id of the last item that was seen, or a time (in ms since 1970 if it is a number)."""

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


def item_of(reply: Any, codec: Codec = BYTES) -> Item:
    """Make an item from an id and an array of fields and values."""
    entry_id, flat = reply
    return Item(text(entry_id), tuple(zip(map(raw, flat[::2]), map(raw, flat[1::2]), strict=True)), codec)


def start_of(start: Start) -> str | bytes:
    """Return a start in the words of QUEUE.SUBSCRIBER. Raises TypeError and ValueError."""
    if isinstance(start, datetime):
        if start.tzinfo is None:
            raise ValueError("a start must be a datetime with a time zone")
        return str(max(0, int(start.timestamp() * 1000)))
    if isinstance(start, bool) or not isinstance(start, int | str | bytes):
        raise TypeError(f"a start must be a datetime, an id, a number of ms or a word, not {type(start).__name__}")
    return start if isinstance(start, bytes) else str(start)
