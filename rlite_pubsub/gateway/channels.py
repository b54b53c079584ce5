"""Channels over HTTP, and who subscribes: published to, listed, and followed live.

A stream has no ids: what was published before it is nowhere, unless the channel is retained: then it is in the topic.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING

from rlite_pubsub.gateway import entry
from rlite_pubsub.gateway.asking import Asking, plain
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.http import listing
from rlite_pubsub.gateway.http.operation import STREAM, Request, as_json, serves
from rlite_pubsub.gateway.http.parameter import AFTER, COUNT, ENCODING, MATCH, ListSpan, Several, list_span_of
from rlite_pubsub.gateway.http.request import Problem
from rlite_pubsub.gateway.http.schema import NAME, NUMBER, SENT, TEXT, TRUTH, array, maybe, page, record
from rlite_pubsub.gateway.streams.channel_streams import ChannelStreams
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, Kind

if TYPE_CHECKING:
    from rlite_pubsub.pubsub.hub import Hub

MAX_NAMES = 100
"""In one stream."""
PATTERN = Several(
    "pattern",
    "Patterns, as PSUBSCRIBE has them, to follow in one stream.",
    {"type": "array", "items": TEXT, "maxItems": MAX_NAMES},
)
_HELD = record(name=NAME, subscribers=NUMBER)
_SEVERAL_STREAMED = "Each event is a message: `data` is JSON with `pattern`, `channel` and `data`."
_TRUTHS = ("alive", "attached", "expired")
_SUBSCRIBER = record(
    id=TEXT,
    kind={"type": "string", "enum": ["server", "embedded", "durable"]},
    name=maybe(NAME),
    pid=NUMBER,
    state={"type": "string", "enum": ["alive", "dead", "unknown", "away"]},
    alive=TRUTH,
    names=NUMBER,
    channelCount=NUMBER,
    patternCount=NUMBER,
    shardCount=NUMBER,
    channels=array(NAME),
    patterns=array(NAME),
    shards=array(NAME),
    backlogMessages=NUMBER,
    backlogBytes=NUMBER,
    oldestAgeMs=NUMBER,
    lastBellAgeMs=maybe(NUMBER),
)


class ChannelsResource:
    """All channels of one server."""

    def __init__(self, hub: Hub, asking: Asking, streams: ChannelStreams, turn_soon: Callable[[], None]) -> None:
        self._hub = hub
        self._asking = asking
        self._streams = streams
        self._turn_soon = turn_soon

    # -- lists

    @serves(
        "GET",
        "/api/channels",
        "Channels that somebody holds, or a stream of patterns",
        about="Without `pattern` a page of the channels that any session of any process of the store holds, sorted by "
        f"name, and how many patterns are held. With it a stream of all that is published to them. {_SEVERAL_STREAMED}",
        parameters=(MATCH, AFTER, COUNT, PATTERN, ENCODING),
        answers={"application/json": page("channels", _HELD, patterns=NUMBER), STREAM: SENT},
    )
    async def _list(self, request: Request) -> object:
        patterns = PATTERN.of(request.query)
        if len(patterns) > MAX_NAMES:
            raise Problem(400, "Too many patterns", f"A stream has at most {MAX_NAMES}.")
        span, encoding = list_span_of(request.query), ENCODING.of(request.query)
        if patterns:
            await self._streams.serve(PATTERNS, [pattern.encode() for pattern in patterns], encoding, request)
            return None
        patterns_held = await self._asking.ask(request, b"pubsub", b"numpat")
        return {**self._held(CHANNELS, "channels", span), "patterns": patterns_held}

    @serves(
        "GET",
        "/api/patterns",
        "Patterns that somebody holds",
        about="A page of them, sorted, over all processes of the store.",
        tag="channels",
        parameters=(MATCH, AFTER, COUNT),
        answers=as_json(page("patterns", _HELD)),
    )
    async def _list_patterns(self, request: Request) -> object:
        return self._held(PATTERNS, "patterns", list_span_of(request.query))

    def _held(self, kind: Kind, what: str, span: ListSpan) -> dict[str, object]:
        self._turn_soon()
        hub = self._hub
        found, following = listing.page(hub.held_everywhere(kind), span)
        held = [
            {"name": event.text_of(name), "subscribers": hub.session_count_everywhere(kind, name)} for name in found
        ]
        return {what: held, "next": following}

    # -- one channel

    @serves(
        "POST",
        "/api/channels/{name}",
        "Publish the body",
        about=f"Answers how many have received it. {entry.ENCODED}",
        body=entry.BODIES,
        answers=as_json(record(receivers=NUMBER)),
        refusals=(413, 507),
    )
    async def _publish(self, request: Request) -> object:
        is_base64 = ENCODING.of(request.query) == "base64"
        body = await request.body()
        if is_base64:
            body = entry.decoded(body, "The body")
        return {"receivers": await self._asking.ask(request, b"publish", request.target.name, body)}

    @serves(
        "GET",
        "/api/channels/{name}",
        "Follow a channel",
        about="A stream of what is published to it from now on; each event's data is a message.",
        parameters=(ENCODING,),
        answers={STREAM: SENT},
    )
    async def _follow_one(self, request: Request) -> None:
        await self._streams.serve(CHANNELS, [request.target.name], ENCODING.of(request.query), request)


class SubscribersResource:
    """Those of the store."""

    def __init__(self, asking: Asking, now_ms: Callable[[], int]) -> None:
        self._asking = asking
        self._now_ms = now_ms

    @serves(
        "GET",
        "/api/subscribers",
        "Subscribers of the store",
        about="A page of the servers, programs and durable subscribers that share it, sorted by id: what they hold (at "
        "most 100 names of each kind), what waits for them, and for how long the oldest of that has waited (0: nothing "
        "waits, -1: not known). `lastBellAgeMs` is null where there is no bell. Of durable ones also what they were "
        "promised, and what was taken from them.",
        parameters=(AFTER, COUNT),
        answers=as_json(page("subscribers", _SUBSCRIBER)),
    )
    async def _list(self, request: Request) -> object:
        after, count = AFTER.of(request.query), COUNT.of(request.query)
        found = [_told(each, self._now_ms()) for each in await self._asking.ask(request, b"subscriber.list")]
        found.sort(key=_id)
        start = bisect_right(found, after, key=_id) if after else 0
        following = found[start : start + count]
        is_all = start + count >= len(found)
        return {"subscribers": following, "next": None if is_all else _id(following[-1])}


def _id(told: dict[str, object]) -> str:
    return str(told["id"])


def _told(entry: Reply, now_ms: int) -> dict[str, object]:
    fields = plain(entry)
    assert isinstance(fields, dict)
    told = {_camel(field): value for field, value in fields.items()}
    last_bell_ms = told.pop("lastBellMs")
    told["lastBellAgeMs"] = max(0, now_ms - last_bell_ms) if last_bell_ms else None
    told["name"] = told.get("name")
    for field in _TRUTHS:
        if field in told:
            told[field] = bool(told[field])
    return told


def _camel(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(map(str.capitalize, rest))
