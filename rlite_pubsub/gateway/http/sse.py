"""Encoding Server-Sent Events, as bytes. No I/O. No I/O.

Promise: whatever is in a type, an id or a body, a reader finds exactly one event with exactly these, and no field or
event more. A body may have any number of lines. The format knows no difference between CR LF, CR and LF, and ends
fields at them: the reader's line ends are all LF. A type or an id has one line; what would end it becomes a blank.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

CONTENT_TYPE = b"text/event-stream; charset=utf-8"
HEARTBEAT = b":\n\n"
_BLANKS = bytes.maketrans(b"\r\n\0", b"   ")


def event(type: bytes, id: bytes, body: bytes) -> bytes:
    """One event. Without a type it is, to a reader, a `message`; without an id it leaves the reader's last one."""
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
    """Law 8: what the reader asked for is not there any more. Has no id, which tells it from an event of that type."""
    return event(b"gap", b"", json.dumps(about, separators=(",", ":")).encode())
