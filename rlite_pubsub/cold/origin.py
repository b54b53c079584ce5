"""Which topic of which store entries come from, for code that runs without Arrow."""

from __future__ import annotations

from typing import NamedTuple


class Origin(NamedTuple):
    """Whose entries a block has."""

    store: str
    topic: bytes
    number: int
    """The topic's in its store: it tells it from one of the same name that was before it."""


def text_of(name: bytes) -> str:
    """A topic's name in its column."""
    return name.decode(errors="backslashreplace")
