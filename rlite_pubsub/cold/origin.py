"""The store and topic that entries come from, for code that runs without Arrow."""

from __future__ import annotations

from typing import NamedTuple


class Origin(NamedTuple):
    """The origin of a block's entries."""

    store: str
    topic: bytes
    number: int
    """The topic's in its store: it tells it from one of the same name that was before it."""


def text_of(name: bytes) -> str:
    """Return a topic's name in its column."""
    return name.decode(errors="backslashreplace")
