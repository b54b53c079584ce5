"""Where every request comes in: who may pass, and the event bus, which is served right here. All else is the pages'.

Starlette's routing costs more than storing an event does; one comparison of a path spares it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from rlite_pubsub.gateway import channels, event, topics, uuid6
from rlite_pubsub.gateway.channels import Channels
from rlite_pubsub.gateway.guard import Guard
from rlite_pubsub.gateway.http import (
    Headers,
    Problem,
    Receive,
    Scope,
    Send,
    answer,
    header,
    parameters,
    tell,
    whole_body,
)
from rlite_pubsub.gateway.matcher import BadPattern, Matcher
from rlite_pubsub.gateway.posting import Posting, PostRefused, WrongType
from rlite_pubsub.gateway.streams import Streams
from rlite_pubsub.gateway.topics import Topics
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

log = logging.getLogger("rlite_pubsub")

EVENTS = "/api/events"
MAX_TYPE_BYTES = 1024
_JSON = (b"content-type", b"application/json")
_NOT_TEXT = (
    "The body of an event is UTF-8 text, and this is not. Encode it as base64, and let the event's type say so: "
    "`base64 -w0 file | curl --data-binary @- …`."
)


class Entrance:
    """The server's one ASGI application."""

    def __init__(
        self,
        guard: Guard,
        posting: Posting,
        streams: Streams,
        all_topics: Topics,
        all_channels: Channels,
        pages: ASGIApp,
        max_body_bytes: Callable[[], int],
    ) -> None:
        self._guard = guard
        self._posting = posting
        self._streams = streams
        self._topics = all_topics
        self._channels = all_channels
        self._pages = pages
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers: Headers = []
        try:
            headers = self._guard.headers(scope)
            self._guard.check(scope)
            await self._grant(scope, receive, send, headers)
        except Problem as problem:
            await tell(send, problem, headers)
        except StoreError as failure:
            log.warning("%s %s: %s", scope["method"], scope["path"], failure)
            await tell(send, Problem(503, "The store can't be used", str(failure)), headers)

    async def _grant(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        method = scope["method"]
        path = scope["path"]
        if method == "OPTIONS":
            await answer(send, 204, self._guard.preflight(scope), b"")
        elif _is_below(path, topics.PREFIX):
            await self._topics.serve(scope, receive, send, headers)
        elif _is_below(path, channels.PREFIX):
            await self._channels.serve(scope, receive, send, headers)
        elif path != EVENTS:
            await self._pages(scope, receive, _with(headers, send) if headers else send)
        elif method == "POST":
            await self._post(scope, receive, send, headers)
        elif method == "GET":
            await self._stream(scope, receive, send, headers)
        else:
            raise Problem(405, "No such method", "Events are posted and streamed.", [(b"allow", b"GET, POST, OPTIONS")])

    async def _post(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        type = type_of(scope["query_string"])
        body = await whole_body(scope, receive, self._max_body_bytes())
        if not body.isascii():
            try:
                body.decode()
            except UnicodeDecodeError as failure:
                raise Problem(415, "Not text", _NOT_TEXT) from failure
        try:
            entry_id = await self._posting.post(event.TOPIC, event.words(type, body))
        except WrongType as refusal:
            raise Problem(409, "Not stored", str(refusal)) from refusal
        except PostRefused as refusal:
            status = 507 if refusal.is_full else 503
            raise Problem(status, "Not stored", str(refusal)) from refusal
        await answer(send, 200, [_JSON, *headers], b'{"id": "%b"}' % uuid6.text(entry_id))

    async def _stream(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        asked, patterns = None, []
        for name, value in parameters(scope["query_string"]):
            if name == "typeMatcher":
                patterns.append(value)
            elif name == "last_event_id":
                asked = value or None
        said = header(scope, b"last-event-id")  # it is newer than the query of who comes back
        if said:
            asked = said.decode(errors="replace")
        try:
            matcher = Matcher(patterns) if patterns else None
        except BadPattern as failure:
            raise Problem(400, "Bad typeMatcher", str(failure)) from failure
        await self._streams.serve(self._streams.place(asked), matcher, headers, receive, send)


def _is_below(path: str, prefix: str) -> bool:
    return path.startswith(prefix) and path[len(prefix) :][:1] in ("", "/")


@lru_cache(1024)
def type_of(query: bytes) -> bytes:
    """The type that a query names. Raises Problem."""
    types = [value for name, value in parameters(query) if name == "type"]
    if len(types) != 1 or not types[0]:
        raise Problem(400, "No type", "An event has one type, which is not empty: POST /api/events?type=T.")
    type = types[0].encode()
    if len(type) > MAX_TYPE_BYTES:
        raise Problem(400, "Type too long", f"A type has at most {MAX_TYPE_BYTES} bytes.")
    if any(ord(character) < 32 or character == "\x7f" for character in types[0]):
        raise Problem(400, "Bad type", f"A type has no control characters: {json.dumps(types[0][:80])}.")
    return type


def _with(headers: Headers, send: Send) -> Send:
    """Say these, too."""

    async def more(message: dict[str, object]) -> None:  # pragma: no branch
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *headers]  # type: ignore[misc]
        await send(message)

    return more  # type: ignore[return-value]
