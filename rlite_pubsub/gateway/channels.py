"""Channels over HTTP, and who subscribes: published to, listed, and followed live.

A stream of a retained channel has ids, and resumes behind one (streams/retained_streams.py). Other streams have none.
What was published before them is nowhere, or, for patterns, in many topics, whose ids have no order among each other. A
stream of patterns therefore begins with a position that is a time: a reader that comes back with it is told (law 8).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from heapq import nsmallest
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.gateway import entry
from rlite_pubsub.gateway.asking import Asking, plain
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.http import listing, sse
from rlite_pubsub.gateway.http.operation import STREAM, Request, as_json, serves
from rlite_pubsub.gateway.http.parameter import (
    AFTER,
    COUNT,
    ENCODING,
    MATCH,
    ListSpan,
    Parameter,
    Query,
    Several,
    list_span_of,
)
from rlite_pubsub.gateway.http.request import Problem
from rlite_pubsub.gateway.http.schema import NAME, NUMBER, SENT, TEXT, TRUTH, array, maybe, page, record
from rlite_pubsub.gateway.streams.channel_streams import ChannelStreams
from rlite_pubsub.gateway.streams.retained_streams import RetainedStreams
from rlite_pubsub.gateway.streams.streams import LATEST
from rlite_pubsub.gateway.topics import LAST_EVENT_ID, SINCE, last_event_id
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, Kind
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.engine.stats.channel_rates import ChannelRates
    from rlite_pubsub.pubsub.hub import Hub

MAX_NAMES = 100
"""In one stream."""
PATTERN = Several(
    "pattern",
    "Glob patterns, as in PSUBSCRIBE, to follow in one stream.",
    {"type": "array", "items": TEXT, "maxItems": MAX_NAMES},
)
SORT = Parameter(
    "sort",
    "What to sort by. By anything but `name` the answer is the first `count`, the highest first, and no page follows.",
    {"type": "string", "enum": ["name", "subscribers", "rate"], "default": "name"},
    lambda word: _sort(word),
    "name",
)
RATES = Parameter(
    "rates",
    "`1`: with `rate`, messages a second that this process hands to its own subscribers, over the last two seconds; "
    "null: it is not known yet. Messages are counted while somebody asks for this.",
    {"type": "string", "enum": ["0", "1"], "default": "0"},
    lambda word: _switch(word),
    False,
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
    channel_count=NUMBER,
    pattern_count=NUMBER,
    shard_count=NUMBER,
    channels=array(NAME),
    patterns=array(NAME),
    shards=array(NAME),
    backlog_messages=NUMBER,
    backlog_bytes=NUMBER,
    oldest_age_ms=NUMBER,
    last_bell_age_ms=maybe(NUMBER),
)


def _sort(word: str) -> str:
    if word not in ("name", "subscribers", "rate"):
        raise ValueError("sort is name, subscribers or rate.")
    return word


def _switch(word: str) -> bool:
    if word not in ("0", "1"):
        raise ValueError("rates is 0 or 1.")
    return word == "1"


class _Asked(NamedTuple):
    """What a list of names must contain."""

    span: ListSpan
    sort: str
    has_rates: bool


def _asked(query: Query) -> _Asked:
    """Raises Problem."""
    return _Asked(list_span_of(query), SORT.of(query), RATES.of(query))


class ChannelsResource:
    """All channels of one server."""

    def __init__(
        self,
        hub: Hub,
        channel_rates: ChannelRates,
        asking: Asking,
        streams: ChannelStreams,
        retained_streams: RetainedStreams,
        turn_soon: Callable[[], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._hub = hub
        self._channel_rates = channel_rates
        self._asking = asking
        self._streams = streams
        self._retained_streams = retained_streams
        self._turn_soon = turn_soon
        self._now_ms = now_ms

    # -- lists

    @serves(
        "GET",
        "/api/channels",
        "Channels with subscribers, or a stream of patterns",
        about="Without `pattern` a page of the channels that any connection to any process of the store subscribes "
        "to, sorted by "
        f"name, and how many patterns have subscribers. With it a stream of everything published to matching "
        f"channels. {_SEVERAL_STREAMED} It has no place that a reader could come back to: one that does, or asks for "
        "what was published before, gets a `gap` event first.",
        parameters=(MATCH, AFTER, COUNT, SORT, RATES, PATTERN, ENCODING, SINCE, LAST_EVENT_ID),
        answers={"application/json": page("channels", _HELD, patterns=NUMBER, total=NUMBER), STREAM: SENT},
    )
    async def _list(self, request: Request) -> object:
        patterns = PATTERN.of(request.query)
        if len(patterns) > MAX_NAMES:
            raise Problem(400, "Too many patterns", f"A stream may have at most {MAX_NAMES} patterns.")
        wanted, encoding, since = _asked(request.query), ENCODING.of(request.query), SINCE.of(request.query)
        if patterns:
            asked = last_event_id(request, LAST_EVENT_ID.of(request.query))
            preface = _said_to_late(asked, since) + sse.position(b"%d-0" % self._now_ms())
            names = [pattern.encode() for pattern in patterns]
            await self._streams.serve(PATTERNS, names, encoding, request, preface)
            return None
        patterns_held = await self._asking.ask(request, b"pubsub", b"numpat")
        return {**self._held(CHANNELS, "channels", wanted), "patterns": patterns_held}

    @serves(
        "GET",
        "/api/patterns",
        "Patterns with subscribers",
        about="A page of them, sorted, for all processes of the store.",
        tag="channels",
        parameters=(MATCH, AFTER, COUNT, SORT, RATES),
        answers=as_json(page("patterns", _HELD, total=NUMBER)),
    )
    async def _list_patterns(self, request: Request) -> object:
        return self._held(PATTERNS, "patterns", _asked(request.query))

    def _held(self, kind: Kind, what: str, asked: _Asked) -> dict[str, object]:
        self._turn_soon()
        span, sort, has_rates = asked
        rates = self._rates(kind) if has_rates or sort == "rate" else None
        count = self._hub.session_count_everywhere
        every = list(listing.matching(self._hub.held_everywhere(kind), span.match))
        following = None
        if sort == "name":
            found, following = listing.page(every, span._replace(match="*"))
        elif sort == "rate":
            found = nsmallest(span.at_most, every, key=lambda name: (-(rates or {}).get(name, 0.0), name))
        else:
            found = nsmallest(span.at_most, every, key=lambda name: (-count(kind, name), name))
        held: list[dict[str, object]] = [
            {"name": event.text_of(name), "subscribers": count(kind, name)} for name in found
        ]
        if has_rates:
            for told, name in zip(held, found, strict=True):
                told["rate"] = round(rates.get(name, 0.0), 1) if rates is not None else None
        return {what: held, "total": len(every), "next": following}

    def _rates(self, kind: Kind) -> dict[bytes, float] | None:
        """Return, for a pattern, the rates of the channels that it matches."""
        by_channel = self._channel_rates.look()
        if by_channel is None or kind is CHANNELS:
            return by_channel
        found: dict[bytes, float] = {}
        for channel, rate in by_channel.items():
            for pattern in self._hub.patterns.matching(channel):
                found[pattern] = found.get(pattern, 0.0) + rate
        return found

    # -- one channel

    @serves(
        "POST",
        "/api/channels/{name}",
        "Publish the body",
        about=f"Answers how many subscribers received it. {entry.ENCODED}",
        body=entry.BODIES,
        answers=as_json(record(receivers=NUMBER)),
        refusals=(413, 507),
        undeclared=(ENCODING.name,),
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
        about="A stream of what is published to it from now on; each event's data is a message. The line ends of a "
        "message (CR LF, CR, LF) all arrive as LF, unless `encoding` is `base64`. Where the channel is "
        "retained (directive `retain`), and the caller may read its topic, events have ids, and a reader that comes "
        "back with the last of them misses nothing and gets nothing twice. Otherwise a reader that asks for what was "
        "published before gets a `gap` event first.",
        parameters=(ENCODING, SINCE, LAST_EVENT_ID),
        headers={
            "Last-Event-ID": "The stream of a retained channel begins after this id. For an id that is unknown or not "
            "retained any more it begins with the oldest retained, and a `gap` event says so."
        },
        answers={STREAM: SENT},
    )
    async def _follow_one(self, request: Request) -> None:
        query = request.query
        encoding, since = ENCODING.of(query), SINCE.of(query)
        asked = last_event_id(request, LAST_EVENT_ID.of(query))
        if not request.is_head and await self._retained_streams.can_serve(request):
            return await self._retained_streams.serve(request, encoding, asked, since)
        await self._streams.serve(CHANNELS, [request.target.name], encoding, request, _said_to_late(asked, since))


def _said_to_late(asked: str | None, since: Id | None) -> bytes:
    """Return a gap event for a reader that asks for what was published before, where nothing of it can be told."""
    is_past = since is not None if asked is None else asked not in LATEST
    return sse.gap({"reason": "not retained", "last_event_id": asked}) if is_past else b""


class SubscribersResource:
    """The subscribers of the store."""

    def __init__(self, asking: Asking, now_ms: Callable[[], int]) -> None:
        self._asking = asking
        self._now_ms = now_ms

    @serves(
        "GET",
        "/api/subscribers",
        "Subscribers of the store",
        about="A page of the servers, programs and durable subscribers that share the store, sorted by id: their "
        "subscriptions (at "
        "most 100 names of each kind), the messages that wait for them, and for how long the oldest has waited (0: "
        "nothing waits, -1: unknown). `last_bell_age_ms` is since the process was last notified of a message. Durable "
        "subscribers also have their limits, and how much those removed.",
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
    told: dict[str, object] = dict(fields)
    last_bell_ms = fields["last_bell_ms"]
    del told["last_bell_ms"]
    told["last_bell_age_ms"] = max(0, now_ms - last_bell_ms) if last_bell_ms else None
    told["name"] = told.get("name")
    for field in _TRUTHS:
        if field in told:
            told[field] = bool(told[field])
    return told
