"""What comes in as Server-Sent Events: bytes in, events out. No I/O.

Promise: an event counts once all of it is there, its empty line included; until then neither it nor its id is known. So
whoever comes back with `last_id` after any cut gets each event once.
"""

from __future__ import annotations

import re
from typing import NamedTuple

DEFAULT_TYPE = "message"
_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")
"""A CR at the end of what is there may be half of a line's end."""


class Event(NamedTuple):
    """One of a stream."""

    type: str
    id: str | None
    """None where it has none of its own."""
    data: str


class EventStream:
    """One connection's. `last_id` and `retry_ms` are for the next one."""

    def __init__(self, last_id: str | None, retry_ms: int) -> None:
        self.last_id = last_id
        self.retry_ms = retry_ms
        self._rest = b""
        self._type = ""
        self._id: str | None = None
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[Event]:
        """The events that are complete with it."""
        *lines, self._rest = _LINE_END.split(self._rest + data)
        found = []
        for line in lines:
            if line:
                self._take(line.decode(errors="replace"))
            else:
                event = self._dispatched()
                if event is not None:
                    found.append(event)
        return found

    def _take(self, line: str) -> None:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._type = value
        elif field == "id" and "\0" not in value:
            self._id = value
        elif field == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = int(value)

    def _dispatched(self) -> Event | None:
        type, id, data = self._type, self._id, self._data
        self._type, self._id, self._data = "", None, []
        if id is not None:
            self.last_id = id
        return Event(type or DEFAULT_TYPE, id, "\n".join(data)) if data else None
