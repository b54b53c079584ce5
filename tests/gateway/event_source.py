"""What a browser's EventSource does, in Python: the stream's lines by the WHATWG's rules, and coming back."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tests.patience import PATIENCE_S


class Event(NamedTuple):
    type: str
    id: str
    data: str


def events(lines: Iterable[str], last_id: str = "") -> Iterator[Event]:
    """The events that a reader dispatches; `lines` are without their ends."""
    type, data, id = "", "", last_id
    for line in lines:
        if not line:
            if data:
                yield Event(type or "message", id, data.removesuffix("\n"))
            type, data = "", ""
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            type = value
        elif field == "data":
            data += value + "\n"
        elif field == "id" and "\0" not in value:
            id = value


def lines_of(text: str) -> list[str]:
    """A whole stream's lines: CR LF, CR and LF all end one."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]


class EventSource:
    """One connection. `take` reads so many events; the last id is kept for whoever comes back."""

    def __init__(
        self, port: int, query: str = "", last_id: str = "", *, path: str = "/api/events", **headers: str
    ) -> None:
        self.last_id = last_id
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if last_id:
            sent["Last-Event-ID"] = last_id
        self.connection.request("GET", path + query, headers=sent)
        self.response = self.connection.getresponse()
        self._events = events(self._lines(), last_id)

    def _lines(self) -> Iterator[str]:
        while line := self.response.readline():
            if not line.endswith(b"\n"):
                return
            yield line[:-1].decode()

    def line(self) -> bytes:
        """The next line, raw."""
        return self.response.readline()

    def next(self) -> Event:
        event = next(self._events)
        self.last_id = event.id
        return event

    def take(self, count: int) -> list[Event]:
        return [self.next() for _ in range(count)]

    def rest(self) -> list[Event]:
        """All up to the end of the stream, however it ends."""
        found = []
        with contextlib.suppress(OSError, http.client.HTTPException):
            for event in self._events:
                self.last_id = event.id
                found.append(event)
        return found

    def close(self) -> None:
        self.response.close()
        self.connection.close()
