"""Takes our own output apart: into whole replies, their first elements, or what a client makes of one."""

from __future__ import annotations

from collections.abc import Iterator

import hiredis

from rlite_pubsub.protocol.replies import Reply

_COUNTED = {ord("*"): 1, ord(">"): 1, ord("~"): 1, ord("%"): 2}
_SIZED = frozenset(b"$=")


def frames(data: bytes) -> Iterator[bytes]:
    """Each top-level reply in `data`, as its bytes. `data` must consist of whole replies."""
    at = 0
    while at < len(data):
        end = _end(data, at)
        yield data[at:end]
        at = end


def elements(frame: bytes, limit: int) -> list[bytes]:
    """The first elements of an aggregate, as text, as long as they are bulk strings or integers."""
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
    """What a client makes of one whole reply that is no error: text is bytes, a map of RESP3 a dict."""
    reader = hiredis.Reader()
    reader.feed(frame)
    return reader.gets()


def _end(data: bytes, at: int) -> int:
    """Where the reply at `at` ends."""
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
