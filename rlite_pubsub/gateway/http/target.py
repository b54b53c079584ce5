"""The meaning of a path: read once, so that a request is let in and served by the same reading.

A path is split at its `/` before anything in it is decoded, so that a name may have any bytes: `a%2Fb` is one name, and
`%FF` one that is no text. A `/` that is not encoded belongs to the name, too, wherever that leaves no doubt: what ends
like one of the paths below is one of them.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.http.request import Problem

API = b"/api/"
EVENTS = "/api/events"
CHANNELS = "/api/channels"
TOPICS = "/api/topics"
KEYS = "/api/keys"
SESSION = "/api/session"
CONNECTIONS = "/api/connections"
MAX_NAME_BYTES = 8192
_KEY = f"{KEYS}/{{name}}"
_CHANNEL = f"{CHANNELS}/{{name}}"
_TOPIC = f"{TOPICS}/{{name}}"
_GROUP = f"{_TOPIC}/groups/{{group}}"
_OF_TOPIC = {
    word: f"{_TOPIC}/{word.decode()}"
    for word in (b"batch", b"blocks", b"info", b"groups", b"pause", b"resume")
}
_OF_GROUP = {
    word: f"{_GROUP}/{word.decode()}"
    for word in (b"info", b"pending", b"dead_letters", b"redeliver", b"pause", b"resume", b"requeue")
}
_NAMED = {b"channels": CHANNELS, b"topics": TOPICS, b"keys": KEYS}
_HALF_ESCAPED = re.compile(rb"%(?![0-9A-Fa-f]{2})")


class RequestTarget(NamedTuple):
    """The target of a request."""

    path: str
    """As it is declared, with `{name}` and `{group}` for what is in it; as it came, where none is declared."""
    name: bytes = b""
    """The channel or topic; the event bus is the topic `events`. Empty: it is about none, or about many."""
    group: bytes = b""


def target_of(raw_path: bytes) -> RequestTarget:
    """Return the target of this path, encoded as it came. Raises Problem."""
    if b"%" in raw_path and _HALF_ESCAPED.search(raw_path):
        raise Problem(400, "Bad path", "A percent sign in a path is followed by two hexadecimal digits.")
    if not raw_path.startswith(API):
        return RequestTarget(_text(raw_path))
    kind, *rest = raw_path[len(API) :].split(b"/")
    path = _NAMED.get(unquote_to_bytes(kind))
    if path is None:
        decoded = _text(raw_path)
        return RequestTarget(decoded, event.TOPIC if decoded == EVENTS else b"")
    if rest in ([], [b""]):
        return RequestTarget(path)
    if path == KEYS:
        return RequestTarget(_KEY, _name(rest))
    if path == CHANNELS:
        return RequestTarget(_CHANNEL, _name(rest))
    verb = rest[-1]
    if len(rest) > 3 and rest[-3] == b"groups" and verb in _OF_GROUP:
        return RequestTarget(_OF_GROUP[verb], _name(rest[:-3]), _name(rest[-2:-1]))
    if len(rest) > 1 and verb in _OF_TOPIC:
        return RequestTarget(_OF_TOPIC[verb], _name(rest[:-1]))
    return RequestTarget(_TOPIC, _name(rest))


def _name(parts: list[bytes]) -> bytes:
    name = unquote_to_bytes(b"/".join(parts))
    if not name:
        raise Problem(404, "No name", "A name in a path may not be empty.")
    if len(name) > MAX_NAME_BYTES:
        raise Problem(400, "Name too long", f"A name in a path has at most {MAX_NAME_BYTES} bytes.")
    return name


def _text(raw_path: bytes) -> str:
    return unquote_to_bytes(raw_path).decode(errors="backslashreplace")
