"""Entries and gaps of a topic, as a program sees them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

Since: TypeAlias = "datetime | str | bytes | int | None"
"""Where to start: at a time, after an id (the last one seen), at ms since 1970, or (None) with new entries."""

BEGINNING = "-"
"""As `since`: from the oldest retained entry."""
LATEST = "+"
"""As `since`: the last entry there is, and what comes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of a topic."""

    topic: str
    id: str
    """`ms-seq`: pass it as `since` to continue after it."""
    pairs: tuple[tuple[bytes, bytes], ...]
    """Its fields and values, in order; a field may stand there more than once."""

    @property
    def fields(self) -> dict[bytes, bytes]:
        """The values by field; if a field repeats, its last value."""
        return dict(self.pairs)

    @property
    def time(self) -> datetime:
        """When it was added, according to its id."""
        return datetime.fromtimestamp(int(self.id.partition("-")[0]) / 1000, UTC)

    def __getitem__(self, field: str | bytes) -> bytes:
        return self.fields[field.encode() if isinstance(field, str) else field]


@dataclass(frozen=True, slots=True)
class Gap:
    """Retention removed entries before they were read."""

    topic: str
    earliest: str
    """The id from which it continues."""
    lost: int
    """How many entries were removed: exact for a reader that was following, to within a thousand for one that came
    back."""


def start_of(since: Since) -> str:
    """Return a start in the words of TOPIC.SUBSCRIBE. Raises TypeError and ValueError."""
    if since is None:
        return "$"
    if isinstance(since, datetime):
        if since.tzinfo is None:
            raise ValueError("since= must be a datetime with a time zone")
        return str(max(0, int(since.timestamp() * 1000)))
    if isinstance(since, bytes):
        return since.decode()
    if isinstance(since, bool) or not isinstance(since, int | str):
        raise TypeError(f"since= must be a datetime, an id, a number of ms or None, not {type(since).__name__}")
    return str(since)


def entry_of(frame: list[Any]) -> Entry:
    """Make an entry from `topic-message name id fields`."""
    _, topic, entry_id, flat = frame
    return Entry(text(topic), text(entry_id), pairs_of(flat))


def pairs_of(flat: Iterable[bytes | str]) -> tuple[tuple[bytes, bytes], ...]:
    """Fields and values, of `field value field value …`."""
    words = [raw(word) for word in flat]
    return tuple(zip(words[::2], words[1::2], strict=True))


def text(word: bytes | str) -> str:
    """Return a word as text, whether the client decodes or not."""
    return word.decode(errors="surrogateescape") if isinstance(word, bytes) else word


def raw(word: bytes | str) -> bytes:
    """Return a word as bytes, whether the client decodes or not."""
    return word if isinstance(word, bytes) else word.encode(errors="surrogateescape")
