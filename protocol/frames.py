"""Takes output apart: into whole replies, their first elements, or what a client makes of one."""

from __future__ import annotations

from collections.abc import Iterator

import hiredis

from rlite_pubsub.protocol.replies import Reply

_COUNTED = {ord("*"): 1, ord(">"): 1, ord("~"): 1, ord("%"): 2}
_SIZED = frozenset(b"$=")
_LINES = frozenset(b"+-:,(#_$=")
_ATTRIBUTE = ord("|")


def frames(data: bytes) -> Iterator[bytes]:
    """Each top-level reply in `data`, as its bytes. `data` must consist of whole replies."""
    at = 0
    while at < len(data):
        end = _end(data, at)
        yield data[at:end]
        at = end


def elements(frame: bytes, limit: int) -> list[bytes]:
    """Return the first elements of an aggregate, as text, as long as they are bulk strings or integers."""
    line_end = frame.index(b"\r\n")
    at = line_end + 2
    found: list[bytes] = []
    for _ in range(min(limit, max(0, int(frame[1:line_end])))):
        line_end = frame.index(b"\r\n", at)
        kind, number = frame[at], frame[at + 1 : line_end]
        if kind == 0x3A:
            found.append(number)
            at = line_end + 2
        elif kind == 0x24 and number != b"-1":
            start = line_end + 2
            found.append(frame[start : start + int(number)])
            at = start + int(number) + 2
        else:
            break
    return found


def value(frame: bytes) -> Reply:
    """Return one whole reply, which is not an error, as a client sees it: text is bytes, a map of RESP3 a dict."""
    reader = hiredis.Reader()
    reader.feed(frame)
    return reader.gets()


def _end(data: bytes, at: int) -> int:
    """Return where the reply at `at` ends."""
    pending = 1
    while pending:
        pending -= 1
        line_end = data.index(b"\r\n", at)
        kind = data[at]
        if kind in _COUNTED:
            pending += max(0, int(data[at + 1 : line_end])) * _COUNTED[kind]
        elif kind in _SIZED:
            size = int(data[at + 1 : line_end])
            if size >= 0:
                line_end += size + 2
        at = line_end + 2
    return at


class Frames:
    """Takes a stream apart as it comes: each whole reply counts once, however its bytes were cut on the way."""

    def __init__(self) -> None:
        self._data = b""
        self._parts: list[bytes] = []  # what has come since, joined when there may be enough
        self._missing = 0  # so many bytes are needed before it makes sense to look
        self._at = 0  # of the reply under way: looked at up to here
        self._pending = 1  # and so many elements are to come

    def feed(self, data: bytes) -> list[bytes]:
        """Return the replies that are complete with it. Raises ValueError for what is not a reply."""
        self._parts.append(data)
        self._missing -= len(data)
        if self._missing > 0:
            return []
        self._data = b"".join([self._data, *self._parts])
        self._parts = []
        found = []
        start = 0
        while self._advance():
            found.append(self._data[start : self._at])
            start, self._pending = self._at, 1
        self._data = self._data[start:]
        self._at -= start
        return found

    def _advance(self) -> bool:
        """Advance to the end of a reply; return False if it is not complete."""
        data = self._data
        self._missing = 1
        while self._pending:
            line_end = data.find(b"\r\n", self._at)
            if line_end < 0:
                return False
            kind, end = data[self._at], line_end + 2
            if kind in _SIZED and data[self._at + 1 : line_end] != b"-1":
                end += int(data[self._at + 1 : line_end]) + 2
                if end > len(data):
                    self._missing = end - len(data)
                    return False
            elif kind in _COUNTED or kind == _ATTRIBUTE:
                self._pending += max(0, int(data[self._at + 1 : line_end])) * _COUNTED.get(kind, 2)
                self._pending += kind == _ATTRIBUTE
            elif kind not in _LINES:
                raise ValueError(f"{data[self._at : line_end][:100]!r} is not a reply")
            self._pending -= 1
            self._at = end
        return True
