"""Encoding Server-Sent Events, as bytes. No I/O. No I/O.

Promise: whatever is in a type, an id or a body, a reader finds exactly one event with exactly these, and no field or
event more. A body may have any number of lines. The format knows no difference between CR LF, CR and LF, and ends
fields at them: the reader's line ends are all LF. A type or an id has one line; what would end it becomes a blank.
What is about the stream itself (`NOTICES`) is no event's type: to a reader such an event is a `message`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

CONTENT_TYPE = b"text/event-stream; charset=utf-8"
HEARTBEAT = b":\n\n"
NOTICES: Final = frozenset((b"gap", b"error", b"open"))
"""`gap` is the server's, the others are what a browser's EventSource tells of its connection."""
_BLANKS = bytes.maketrans(b"\r\n\0", b"   ")


def event(type: bytes, id: bytes, body: bytes) -> bytes:
    """One event. Without a type it is, to a reader, a `message`; without an id it leaves the reader's last one."""
    return _frame(b"" if type in NOTICES else type, id, body)


def _frame(type: bytes, id: bytes, body: bytes) -> bytes:
    if b"\n" in body or b"\r" in body:
        body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
    if type and id:
        return b"event: %b\nid: %b\ndata: %b\n\n" % (type.translate(_BLANKS), id.translate(_BLANKS), body)
    head = b"event: %b\n" % type.translate(_BLANKS) if type else b""
    if id:
        head += b"id: %b\n" % id.translate(_BLANKS)
    return b"%bdata: %b\n\n" % (head, body)


def retry(milliseconds: int) -> bytes:
    """Return the field that says how long a reader waits before it reconnects."""
    return b"retry: %d\n\n" % milliseconds


def position(id: bytes) -> bytes:
    """Return the field with the place of a reader that has no event yet: it asks for this when it reconnects."""
    return b"id: %b\n\n" % id.translate(_BLANKS)


def gap(about: Mapping[str, object]) -> bytes:
    """Law 8: what the reader asked for is not there any more."""
    return _frame(b"gap", b"", json.dumps(about, separators=(",", ":")).encode())
