"""What a request is made of, whatever it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Words = tuple[str, ...]


class Request(NamedTuple):
    """One operation. Several commands are a transaction."""

    kind: str
    key: str
    value: Any
    commands: list[Words]
    understand: Callable[[list[Any]], Any]
    user: str | None = None
    """Who asks; None: who may do everything."""
    is_event: bool = False
    """It is posted over HTTP; the command is the event's type and body."""


def bare(value: Any) -> str | None:
    """Without its padding."""
    text = value.decode() if isinstance(value, bytes) else value
    return None if text is None else text.partition(":")[0]
