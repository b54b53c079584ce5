"""Entries and gaps of a topic, as a program sees them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from rlite_pubsub import measures

Since: TypeAlias = measures.Since
"""Where to start: at a time (a datetime, `2026-11-18T10:00Z`, ms since 1970), so long ago (a timedelta, `24h`), after
an id (the last one seen), at `beginning` or `end`, or (None) with new entries."""

BEGINNING = measures.BEGINNING
"""As `since`: from the oldest retained entry."""
LATEST = measures.LAST
"""As `since`: the last entry there is, and what comes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of a topic."""

    topic: str | bytes
    """Its name as it was given, str or bytes."""
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

    topic: str | bytes
    earliest: str
    """The id from which it continues."""
    lost: int
    """How many entries were removed: exact for a reader that was following, to within a thousand for one that came
    back."""


def start_of(since: Since) -> str:
    """Return a start in the words of TOPIC.SUBSCRIBE. Raises TypeError and ValueError."""
    return measures.start_since(since, time.time_ns() // 1_000_000)


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
