"""Takes output apart: into whole replies, their first elements, or what a client makes of one."""

from __future__ import annotations

from collections.abc import Iterator

import hiredis

from rlite_pubsub.protocol.replies import Reply

_COUNTED = {ord("*"): 1, ord(">"): 1, ord("~"): 1, ord("%"): 2}
_SIZED = frozenset(b"$=")
_LINES = frozenset(b"+-:,(#_$=")
_ATTRIBUTE = ord("|")
_MOST_BYTES = 1 << 30
_MOST_DIGITS = 12
_DEEPEST = 128


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

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        """A reply of more bytes is refused."""
        self._most_bytes = most_bytes
        self._data = b""
        self._parts: list[bytes] = []  # what has come since, joined when there may be enough
        self._missing = 0  # so many bytes are needed before it makes sense to look
        self._at = 0  # of the reply under way: looked at up to here
        self._seen = 0  # and up to here there is no end of a line
        self._pending: list[int] = [1]  # so many elements are to come, of each aggregate that is under way

    def feed(self, data: bytes) -> list[bytes]:
        """Return the replies that are complete with it. Raises ValueError for what is not a reply, or is too large, or
        too deep."""
        self._parts.append(data)
        self._missing -= len(data)
        if self._missing > 0:
            return []
        self._data = b"".join([self._data, *self._parts])
        self._parts = []
        found = []
        start = 0
        while self._advance(start):
            found.append(self._data[start : self._at])
            start, self._pending = self._at, [1]
        self._data = self._data[start:]
        self._at -= start
        self._seen = max(self._at, self._seen - start)
        return found

    def _advance(self, start: int) -> bool:
        """Advance to the end of a reply; return False if it is not complete."""
        data = self._data
        self._missing = 1
        while self._pending:
            line_end = data.find(b"\r\n", max(self._at, self._seen))
            if line_end < 0:
                self._seen = max(self._at, len(data) - 1)
                self._check_size(len(data) - start)
                return False
            kind, end = data[self._at], line_end + 2
            self._count(1)
            if kind in _SIZED and data[self._at + 1 : line_end] != b"-1":
                size = self._number(line_end)
                if size < 0:
                    raise ValueError("a string of less than nothing")
                end += size + 2
                if end > len(data):
                    self._count(-1)
                    self._check_size(end - start)
                    self._missing = end - len(data)
                    return False
            elif kind in _COUNTED or kind == _ATTRIBUTE:
                if kind == _ATTRIBUTE:
                    self._count(-1)  # what it belongs to follows
                count = max(0, self._number(line_end)) * _COUNTED.get(kind, 2)
                if count:
                    if len(self._pending) > _DEEPEST:
                        raise ValueError("a reply that is nested too deeply")
                    self._pending.append(count)
            elif kind not in _LINES:
                raise ValueError(f"{data[self._at : line_end][:100]!r} is not a reply")
            self._at = end
            while self._pending and not self._pending[-1]:
                self._pending.pop()
        return True

    def _count(self, elements: int) -> None:
        self._pending[-1] -= elements

    def _number(self, line_end: int) -> int:
        digits = self._data[self._at + 1 : line_end]
        if len(digits) > _MOST_DIGITS:
            raise ValueError("a reply that is too large")
        return int(digits)

    def _check_size(self, size: int) -> None:
        if size > self._most_bytes:
            raise ValueError("a reply that is too large")
