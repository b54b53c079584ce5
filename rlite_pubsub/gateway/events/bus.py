"""The event bus: events are posted, and streamed in one order over all types."""

from __future__ import annotations

import json
from functools import lru_cache

from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.events.matcher import (
    MAX_PATTERN_CHARACTERS,
    MAX_PATTERNS,
    MAX_TYPE_BYTES,
    BadPattern,
    Matcher,
)
from rlite_pubsub.gateway.events.posting import Posting, PostRefused
from rlite_pubsub.gateway.http import sse
from rlite_pubsub.gateway.http.operation import STREAM, Request, as_json, serves
from rlite_pubsub.gateway.http.parameter import Parameter, Several, check_names
from rlite_pubsub.gateway.http.request import Problem, answer, parameters
from rlite_pubsub.gateway.http.schema import SENT, TEXT, record
from rlite_pubsub.gateway.streams.streams import HEADERS, Streams
from rlite_pubsub.gateway.topics import LAST_EVENT_ID, RESUMES, SINCE, last_event_id
from rlite_pubsub.storage.topics import uuid6

MAX_KNOWN_BYTES = 256
"""Of a query that is not read twice."""
_RESERVED = ", ".join(sorted(name.decode() for name in sse.NOTICES))
_JSON = (b"content-type", b"application/json")
_NOT_TEXT = (
    "The body of an event is UTF-8 text, and this is not. Encode it as base64, and let the event's type say so: "
    "`base64 -w0 file | curl --data-binary @- …`."
)
_UUID = {"type": "string", "format": "uuid", "description": "A UUID of version 6, which sorts by time."}
TYPE = Parameter(
    "type",
    f"At most {MAX_TYPE_BYTES} bytes of UTF-8, without control characters. {_RESERVED} are notices of streams, and no "
    "event's type.",
    {
        "type": "string",
        "minLength": 1,
        "pattern": "^[^\\x00-\\x1f\\x7f]+$",
        "not": {"enum": sorted(name.decode() for name in sse.NOTICES)},
    },
    str,
    "",
    is_required=True,
)
TYPE_MATCHER = Several(
    "typeMatcher",
    "Only events in whose type one of these regular expressions is found. They are RE2's, which take linear time.",
    {
        "type": "array",
        "items": {"type": "string", "maxLength": MAX_PATTERN_CHARACTERS, "format": "regex"},
        "maxItems": MAX_PATTERNS,
    },
)


class EventsResource:
    """The events of one server."""

    def __init__(self, posting: Posting, streams: Streams) -> None:
        self._posting = posting
        self._streams = streams

    @serves(
        "POST",
        "/api/events",
        "Store an event",
        about="Answered once it is stored as durably as `appendfsync` says. The body is UTF-8 text.",
        parameters=(TYPE,),
        body={"text/plain": TEXT},
        answers=as_json(record(id=_UUID)),
        refusals=(409, 413, 415, 507),
    )
    async def post(self, request: Request) -> object:
        type = type_of(request.scope["query_string"])
        body = await request.body()
        if not body.isascii():
            try:
                body.decode()
            except UnicodeDecodeError as failure:
                raise Problem(415, "Not text", _NOT_TEXT) from failure
        try:
            entry_id = await self._posting.post(event.TOPIC, event.words(type, body), request.client)
        except PostRefused as refusal:
            raise Problem(refusal.status, "Not stored", str(refusal)) from refusal
        await answer(request.send, 200, [_JSON, *request.headers], b'{"id": "%b"}' % uuid6.text(entry_id))
        return None

    @serves(
        "GET",
        "/api/events",
        "Follow events",
        about="A stream that replays the events after an id, of all types in one order, and continues with new ones, "
        "without a gap or a duplicate. Each has a type, an id and a body. The body's line ends (CR LF, CR, LF) all "
        "arrive as LF, the only one that this format has; `/api/topics/events` has bodies as they were posted. What a "
        f"Redis client has appended with one of the types {_RESERVED} arrives as a `message`.",
        parameters=(TYPE_MATCHER, SINCE, LAST_EVENT_ID),
        headers=RESUMES,
        answers={STREAM: SENT},
    )
    async def _stream(self, request: Request) -> None:
        patterns, since = TYPE_MATCHER.of(request.query), SINCE.of(request.query)
        asked = last_event_id(request, LAST_EVENT_ID.of(request.query))
        try:
            matcher = Matcher(patterns) if patterns else None
        except BadPattern as failure:
            raise Problem(400, "Bad typeMatcher", str(failure)) from failure
        if request.is_head:
            return await request.send_head(HEADERS)
        start = self._streams.start(asked, since)
        await self._streams.serve(start, matcher, request.headers, request.receive, request.send)


def type_of(query: bytes) -> bytes:
    """Return the type that a query names. Raises Problem."""
    return _known_type_of(query) if len(query) <= MAX_KNOWN_BYTES else _type_of(query)


def _type_of(query: bytes) -> bytes:
    said = parameters(query)
    check_names(said, (TYPE.name,))
    types = [value for _, value in said]
    if len(types) != 1 or not types[0]:
        raise Problem(400, "No type", "An event has one type, which is not empty: POST /api/events?type=T.")
    type = types[0].encode()
    if len(type) > MAX_TYPE_BYTES:
        raise Problem(400, "Type too long", f"A type has at most {MAX_TYPE_BYTES} bytes.")
    if any(ord(character) < 32 or character == "\x7f" for character in types[0]):
        raise Problem(400, "Bad type", f"A type has no control characters: {json.dumps(types[0][:80])}.")
    if type in sse.NOTICES:
        raise Problem(400, "Reserved type", f"{_RESERVED} are notices of streams, and no event's type.")
    return type


_known_type_of = lru_cache(1024)(_type_of)
