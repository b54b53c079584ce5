"""Topics over HTTP: their entries as JSON and as streams, posted one by one or in batches, and lists of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.gateway import entry
from rlite_pubsub.gateway.asking import Asking, plain
from rlite_pubsub.gateway.events import event, uuid6
from rlite_pubsub.gateway.events.event_log import EventLog, Form
from rlite_pubsub.gateway.events.posting import Posting, PostRefused, WrongType
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
from rlite_pubsub.gateway.streams.streams import HEADERS, Streams
from rlite_pubsub.gateway.streams.waves import Waves
from rlite_pubsub.protocol import frames
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.keyspace.topic.followers import Followers

_DECODE = {"text": entry.decode, "base64": entry.decode_binary}
_STREAM_TYPE = STREAM.encode()


def _id(word: str) -> Id:
    found = uuid6.parse(word)
    if found is None:
        if not entry.IS_ID.fullmatch(word):
            raise ValueError("An id is `ms-seq`.")
        return entry_ids.MAX  # it is behind all that there can be
    return found


AFTER_ID = Parameter(
    "after",
    "The id behind which to begin.",
    {**ENTRY_ID, "default": "0-0"},
    _id,
    entry_ids.MIN,
)
LAST_EVENT_ID = Parameter(
    "last_event_id",
    "The same as the header `Last-Event-ID`, which goes before it; also `earliest`, as where neither is said, and "
    "`latest` for none of the past.",
    TEXT,
    str,
    "",
)
RESUMES = {
    "Last-Event-ID": "The id behind which a stream begins; without one it begins with the earliest there is. What is "
    "not known, or not there any more, begins there, too, and a `gap` event says so."
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
        **{"earliest-id": TEXT, "last-id": TEXT, "entries-added": NUMBER, "group-list": array(_GROUP_IN_TOPIC)},
    ),
    "description": "What TOPIC.INFO tells.",
}
_OF_GROUP = {
    **record(
        name=NAME,
        consumers=NUMBER,
        pending=NUMBER,
        lag=maybe(NUMBER),
        **{"last-delivered-id": TEXT, "entries-read": maybe(NUMBER)},
    ),
    "description": "What XINFO GROUPS tells.",
}
_FIELDS = {"type": "object", "additionalProperties": BYTES}


class _Open(NamedTuple):
    """Streams of one topic in one form, and how they hear of it."""

    streams: Streams
    listener: Callable[[], None]


class TopicsResource:
    """All topics of one server."""

    def __init__(
        self,
        settings: Settings,
        followers: Followers,
        keyspace: Keyspace,
        posting: Posting,
        asking: Asking,
        waves: Waves,
    ) -> None:
        self._settings = settings
        self._followers = followers
        self._keyspace = keyspace
        self._posting = posting
        self._asking = asking
        self._waves = waves
        self._open: dict[tuple[bytes, str], _Open] = {}

    def close(self) -> None:
        """Every stream ends."""
        for each in self._open.values():
            each.streams.close()

    # -- entries

    @serves(
        "POST",
        "/api/topics/{name}",
        "Append an entry",
        about=f"A JSON object is an entry's fields; anything else is the field `message`. {entry.ENCODED}",
        body={"application/json": entry.SCHEMA, **entry.BODIES},
        answers=as_json(record(id=ENTRY_ID)),
        refusals=(409, 413, 507),
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
        about="A JSON object in each line, or as `application/json` an array of them; all are stored in one commit, or "
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
                status = 409 if isinstance(each, WrongType) else 507 if each.is_full else 503
                raise Problem(status, "Not stored", str(each)) from each
            if isinstance(each, BaseException):
                raise each
        return [entry_ids.text(each).decode() for each in found if not isinstance(each, BaseException)]

    @serves(
        "GET",
        "/api/topics/{name}",
        "Entries of a topic, a page at a time or as a stream",
        about="With `Accept: text/event-stream` a stream that replays what comes after an id, and goes on with what is "
        "appended. Each event's data is a JSON object of an entry's fields.",
        parameters=(AFTER_ID, COUNT, ENCODING, LAST_EVENT_ID),
        headers=RESUMES,
        answers={
            "application/json": page("entries", record(id=ENTRY_ID, fields=_FIELDS)),
            STREAM: SENT,
        },
    )
    async def _get(self, request: Request) -> object:
        query = request.query
        after, count, encoding = AFTER_ID.of(query), COUNT.of(query), ENCODING.of(query)
        last_id = LAST_EVENT_ID.of(query)
        if _STREAM_TYPE in (header(request.scope, b"accept") or b""):
            await self._stream(request, encoding, last_id)
            return None
        found = [
            {"id": entry_ids.text(entry_id).decode(), "fields": entry.fields(each, is_binary=encoding == "base64")}
            for entry_id, each in await self._some(request, after, count)
        ]
        return {"entries": found, "next": found[-1]["id"] if len(found) == count else None}

    async def _some(self, request: Request, after: Id, count: int) -> list[tuple[Id, bytes]]:
        """At most so many entries that come after an id, as XRANGE sends them; none where there is no topic."""
        start = entry_ids.after(after)
        if start is None:
            return []
        words = (b"xrange", request.target.name, entry_ids.text(start), b"+", b"COUNT", b"%d" % count)
        try:
            reply = await self._asking.asked(request, *words)
        except Problem as problem:
            if problem.status == 409:
                return []
            raise
        entries = frames.frames(reply[reply.index(b"\n") + 1 :])
        return [(_id(frames.elements(each, 1)[0].decode()), each) for each in entries]

    def _log(self, name: bytes, encoding: str) -> EventLog:
        return EventLog(self._keyspace, Form(name, _DECODE[encoding], entry.name))

    async def _stream(self, request: Request, encoding: str, last_id: str) -> None:
        if request.is_head:
            return await request.send_head(HEADERS)
        name = request.target.name
        form = name, encoding
        key = event.DATABASE, name
        there = self._open.get(form)
        if there is None:
            settings = self._settings
            streams = Streams(
                self._log(name, encoding),
                lambda: float(settings["http-heartbeat"]),
                lambda: int(settings["http-retry"]),
                self._waves,
            )
            there = self._open[form] = _Open(streams, streams.note)
            self._followers.listen(key, there.listener)
        said = header(request.scope, b"last-event-id")
        asked = said.decode(errors="replace") if said else last_id or None
        try:
            there.streams.expected += 1
            start = there.streams.start(asked)
            await there.streams.serve(start, None, request.headers, request.receive, request.send)
        finally:
            there.streams.expected -= 1
            if not there.streams.expected and self._open.get(form) is there:
                del self._open[form]
                self._followers.unlisten(key, there.listener)

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
        "GET", "/api/topics/{name}/info", "What is known of a topic", answers=as_json(_TOPIC), refusals=(404, 409)
    )
    async def _info(self, request: Request) -> object:
        return plain(await self._asking.ask(request, b"topic.info", request.target.name))

    @serves(
        "GET",
        "/api/topics/{name}/groups",
        "The groups of a topic",
        about="`/api/groups` tells more of them.",
        answers=as_json(array(_OF_GROUP)),
        refusals=(404, 409),
    )
    async def _groups(self, request: Request) -> object:
        return plain(await self._asking.ask(request, b"xinfo", b"groups", request.target.name))
