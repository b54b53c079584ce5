"""Topics over HTTP: their entries as JSON and as streams, posted one by one or in batches, and lists of them."""

from __future__ import annotations

import asyncio
import re
import time
from typing import NamedTuple

from rlite_pubsub.gateway import entry
from rlite_pubsub.gateway.asking import Asking, plain
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.events.event_log import Form
from rlite_pubsub.gateway.events.posting import Posting, PostRefused
from rlite_pubsub.gateway.http import listing
from rlite_pubsub.gateway.http.operation import STREAM, Request, as_json, serves
from rlite_pubsub.gateway.http.parameter import AFTER, COUNT, ENCODING, MATCH, Parameter, list_span_of
from rlite_pubsub.gateway.http.request import Problem, header
from rlite_pubsub.gateway.http.schema import (
    BYTES,
    ENTRY_ID,
    NAME,
    NUMBER,
    SENT,
    SWITCH,
    TEXT,
    array,
    maybe,
    page,
    record,
)
from rlite_pubsub.gateway.streams.streams import HEADERS
from rlite_pubsub.gateway.streams.topic_streams import TopicStreams
from rlite_pubsub.measures import BEGINNING, END, MOMENT, PLACE, START_NAMES, moment_or_ms, start_of
from rlite_pubsub.protocol import frames
from rlite_pubsub.storage.topics import entry_ids, uuid6
from rlite_pubsub.storage.topics.entry_ids import Id

_DECODE = {"text": entry.decode, "base64": entry.decode_binary}
_STREAM_TYPE = STREAM.encode()


def last_event_id(request: Request, said: str) -> str | None:
    """Return where a reader goes on: its header is newer than the query (`said`) of a reconnecting client; None if it
    has neither."""
    found = header(request.scope, b"last-event-id")
    return found.decode(errors="replace") if found else said or None


def _id(word: str) -> Id:
    found = uuid6.parse(word)
    if found is None:
        if not entry.IS_ID.fullmatch(word):
            raise ValueError("An id is `ms-seq`.")
        return entry_ids.MAX  # it is behind all that there can be
    return found


def _place(word: str) -> Id:
    """Return an id, or the time of one."""
    if word == "latest":
        return entry_ids.MAX
    ms = moment_or_ms(word, int(time.time() * 1000))
    if ms is not None:
        return (ms, 0) if ms <= entry_ids.PART_MAX else entry_ids.MAX
    return _id(word)


def _since(word: str) -> Id:
    """Return the place in front of the first entry from this moment on, or behind this id."""
    if not _IS_SINCE.fullmatch(word):
        raise ValueError("A start is ms since 1970, an ISO 8601 time, an age such as 10m, an id, beginning or end.")
    start = start_of(word, int(time.time() * 1000))
    assert start is not None
    if start in (BEGINNING, END):
        return entry_ids.MIN if start == BEGINNING else entry_ids.MAX
    if "-" in start:
        ms, seq = map(int, start.split("-"))
        return (ms, seq) if max(ms, seq) <= entry_ids.PART_MAX else entry_ids.MAX
    ms = int(start)
    return entry_ids.MAX if ms > entry_ids.PART_MAX else entry_ids.before((ms, 0)) or entry_ids.MIN


_SINCE = f"{PLACE}|{MOMENT}|{START_NAMES}"
_IS_SINCE = re.compile(_SINCE)
SEARCHED = 2000
"""Entries that one request looks at."""
_PLACE = {"type": "string", "pattern": f"^(?:{PLACE}|{MOMENT}|latest)$"}
AFTER_ID = Parameter(
    "after",
    "The id after which to begin, or a time: ms since 1970, ISO 8601, or an age such as `10m`.",
    {**_PLACE, "default": "0-0"},
    _place,
    entry_ids.MIN,
)
BEFORE_ID = Parameter(
    "before",
    "Instead of `after`: the entries before this id or time, or with `latest` the last ones.",
    _PLACE,
    _place,
    None,
)
FIELD = Parameter("field", "Search: only entries that have this field.", TEXT, str, "")
CONTAINS = Parameter(
    "contains",
    "Search: only entries in which this text is in the value of `field`, or of any field; capital letters or not.",
    TEXT,
    str,
    "",
)
LAST_EVENT_ID = Parameter(
    "last_event_id",
    "The same as the header `Last-Event-ID`, which takes precedence; also `earliest` (the default) and `latest`, for "
    "new ones only.",
    TEXT,
    str,
    "",
)
SINCE = Parameter(
    "since",
    "Begin with what was added from then on: ms since 1970, an ISO 8601 date or time from 1970 on (in UTC where it "
    "names no zone), or an age such as `10m`, `2h` or `7d`; or behind an id, at `beginning` or at `end`. A stream "
    "whose moment lies ahead begins with what is added next. A stream that comes back with a `Last-Event-ID` goes on "
    "after that instead.",
    {
        "type": "string",
        "pattern": f"^(?:{_SINCE})$",
        "examples": ["10m", "2026-11-18T10:00:00Z", "1700000000000"],
    },
    _since,
    None,
)
RESUMES = {
    "Last-Event-ID": "The stream begins after this id; without one, with the oldest retained. For an id "
    "that is unknown or not retained any more it begins there too, and a `gap` event says so."
}
_GROUP_IN_TOPIC = {"type": "object", "required": ["name"], "properties": {"name": NAME}}
_TOPIC = {
    **record(
        name=NAME,
        length=NUMBER,
        bytes=NUMBER,
        groups=NUMBER,
        paused=SWITCH,
        ephemeral=SWITCH,
        deferred=NUMBER,
        earliest_id=TEXT,
        last_id=TEXT,
        entries_added=NUMBER,
        group_list=array(_GROUP_IN_TOPIC),
    ),
    "description": "As TOPIC.INFO.",
}
_OF_GROUP = {
    **record(
        name=NAME,
        consumers=NUMBER,
        pending=NUMBER,
        lag=maybe(NUMBER),
        last_delivered_id=TEXT,
        entries_read=maybe(NUMBER),
    ),
    "description": "As XINFO GROUPS.",
}
_FIELDS = {"type": "object", "additionalProperties": BYTES}


class _Search(NamedTuple):
    """What is searched for in entries."""

    field: str
    text: str

    @property
    def is_any(self) -> bool:
        return not self.field and not self.text

    def matches(self, found: bytes) -> bool:
        if self.is_any:
            return True
        return any(
            (not self.field or event.text_of(name) == self.field)
            and (not self.text or self.text in value.decode(errors="replace").lower())
            for name, value in event.fields_of(found)
        )


class TopicsResource:
    """All topics of one server."""

    def __init__(
        self,
        posting: Posting,
        asking: Asking,
        streams: TopicStreams,
    ) -> None:
        self._posting = posting
        self._asking = asking
        self._streams = streams

    # -- entries

    @serves(
        "POST",
        "/api/topics/{name}",
        "Append an entry",
        about=f"A JSON object is an entry's fields; anything else is the field `message`. {entry.ENCODED}",
        body={"application/json": entry.SCHEMA, **entry.BODIES},
        answers=as_json(record(id=ENTRY_ID)),
        refusals=(409, 413, 507),
        undeclared=(ENCODING.name,),
    )
    async def _post(self, request: Request) -> object:
        is_base64 = ENCODING.of(request.query) == "base64"
        words = entry.words(request.content_type, await request.body(), is_base64=is_base64)
        (entry_id,) = await self._append(request, [words])
        return {"id": entry_id}

    @serves(
        "POST",
        "/api/topics/{name}/batch",
        "Append entries",
        about="One JSON object a line, or an array of them as `application/json`; all are stored in one commit, or "
        "none.",
        body={
            "application/x-ndjson": {**TEXT, "description": "Each line as the body of a post of one entry."},
            "application/json": {**array(entry.SCHEMA), "minItems": 1},
        },
        needs_body=True,
        answers=as_json(record(ids=array(ENTRY_ID))),
        refusals=(409, 413, 507),
    )
    async def _post_batch(self, request: Request) -> object:
        entries = entry.batch(request.content_type, await request.body())
        return {"ids": await self._append(request, entries)}

    async def _append(self, request: Request, entries: list[tuple[bytes, ...]]) -> list[str]:
        """All in one turn, and so in one commit."""
        posts = [self._posting.post(request.target.name, words, request.client) for words in entries]
        found = await asyncio.gather(*posts, return_exceptions=True)
        for each in found:
            if isinstance(each, PostRefused):
                raise Problem(each.status, "Not stored", str(each)) from each
            if isinstance(each, BaseException):
                raise each
        return [entry_ids.text(each).decode() for each in found if not isinstance(each, BaseException)]

    @serves(
        "GET",
        "/api/topics/{name}",
        "Entries of a topic, a page at a time or as a stream",
        about="Oldest first, even with `before`. `next` is the `after` of the following page, `previous` the "
        "`before` of the preceding one; null where there is none. A search looks at a few thousand entries "
        "in a request, so a page may be empty and yet have a `next`. With `Accept: text/event-stream` it is a stream "
        "that replays what comes after an id, and goes on with what is appended. Each event's data is a JSON object of "
        "an entry's fields.",
        parameters=(AFTER_ID, BEFORE_ID, COUNT, FIELD, CONTAINS, ENCODING, SINCE, LAST_EVENT_ID),
        headers=RESUMES,
        answers={
            "application/json": page("entries", record(id=ENTRY_ID, fields=_FIELDS), previous=maybe(TEXT)),
            STREAM: SENT,
        },
    )
    async def _get(self, request: Request) -> object:
        query = request.query
        after, count, encoding = AFTER_ID.of(query), COUNT.of(query), ENCODING.of(query)
        last_id, since = LAST_EVENT_ID.of(query), SINCE.of(query)
        before, wanted = BEFORE_ID.of(query), _Search(FIELD.of(query), CONTAINS.of(query).lower())
        if _STREAM_TYPE in (header(request.scope, b"accept") or b""):
            await self._stream(request, encoding, last_id, since)
            return None
        looked_at = count if wanted.is_any else max(count, SEARCHED)
        after = max(after, since or entry_ids.MIN)
        seen = await self._some(request, after, before, looked_at)
        is_backward = before is not None
        found = [each for each in (reversed(seen) if is_backward else seen) if wanted.matches(each[1])][:count]
        is_whole = len(seen) < looked_at and len(found) < count
        last = found[-1] if len(found) == count else seen[-1 if not is_backward else 0] if seen else None
        following = None if is_whole or last is None else entry_ids.text(last[0]).decode()
        told = [
            {"id": entry_ids.text(entry_id).decode(), "fields": entry.fields(each, is_binary=encoding == "base64")}
            for entry_id, each in (reversed(found) if is_backward else found)
        ]
        if is_backward:
            return {"entries": told, "next": told[-1]["id"] if told else None, "previous": following}
        first = told[0]["id"] if told and after > entry_ids.MIN else None
        return {"entries": told, "next": following, "previous": first}

    async def _some(self, request: Request, after: Id, before: Id | None, count: int) -> list[tuple[Id, bytes]]:
        """Yield at most this many entries after an id, or before one, in order, as XRANGE sends them; none if there is
        no topic."""
        words: tuple[bytes, ...]
        if before is None:
            start = entry_ids.after(after)
            if start is None:
                return []
            words = (b"xrange", request.target.name, entry_ids.text(start), b"+", b"COUNT", b"%d" % count)
        else:
            end = before if before == entry_ids.MAX else entry_ids.before(before)
            if end is None:
                return []
            words = (b"xrevrange", request.target.name, entry_ids.text(end), b"-", b"COUNT", b"%d" % count)
        try:
            reply = await self._asking.asked(request, *words)
        except Problem as problem:
            if problem.status == 409:
                return []
            raise
        entries = frames.frames(reply[reply.index(b"\n") + 1 :])
        found = [(_id(frames.elements(each, 1)[0].decode()), each) for each in entries]
        return found if before is None else found[::-1]

    async def _stream(self, request: Request, encoding: str, last_id: str, since: Id | None) -> None:
        if request.is_head:
            return await request.send_head(HEADERS)
        form = Form(request.target.name, _DECODE[encoding], entry.name)
        await self._streams.serve(request, form, last_event_id(request, last_id), since)

    # -- what is known of them

    @serves(
        "GET",
        "/api/topics",
        "Topics",
        about="A page of those of database 0, sorted by name.",
        parameters=(MATCH, AFTER, COUNT),
        answers=as_json(page("topics", _TOPIC)),
    )
    async def _list(self, request: Request) -> object:
        span = list_span_of(request.query)
        names, following = listing.page(await self._asking.ask(request, b"topic.list"), span)
        found = []
        for each in await self._asking.ask_each(request, [(b"topic.info", name) for name in names]):
            if not isinstance(each, Problem):
                found.append(plain(each))
            elif each.status not in (404, 409):  # it is gone meanwhile, or something else
                raise each
        return {"topics": found, "next": following}

    @serves(
        "GET", "/api/topics/{name}/info", "Show a topic", answers=as_json(_TOPIC), refusals=(404, 409)
    )
    async def _info(self, request: Request) -> object:
        return plain(await self._asking.ask(request, b"topic.info", request.target.name))

    @serves(
        "GET",
        "/api/topics/{name}/blocks",
        "What of a topic is in the cold store",
        about="What TOPIC.BLOCKS tells of the files of its oldest entries.",
        answers=as_json(record(sealed_to=TEXT, blocks=array({"type": "object"}))),
        refusals=(404, 409),
    )
    async def _blocks(self, request: Request) -> object:
        told = plain(await self._asking.ask(request, b"topic.blocks", request.target.name))
        return {name: told[name] for name in ("cold", "sealed_to", "floor", "blocks")}

    @serves(
        "GET",
        "/api/topics/{name}/groups",
        "The groups of a topic",
        about="`/api/groups` has the details.",
        answers=as_json(array(_OF_GROUP)),
        refusals=(404, 409),
    )
    async def _groups(self, request: Request) -> object:
        return plain(await self._asking.ask(request, b"xinfo", b"groups", request.target.name))
