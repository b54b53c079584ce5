"""Channels over HTTP: published to, listed, and followed live.

Laws kept here:
 2. subscribe: a stream's answer begins once the records of its names are committed, so what is published after it has
    begun is in it.
 7, 8. What a slow reader leaves goes to its mailbox on disk, and comes back in order; at a limit it is as for any other
    subscriber: disconnected, or told what is lost by a `gap` event.

A stream has no ids: what was published before it is nowhere, unless the channel is retained: then it is in the topic.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rlite_pubsub.gateway import entry
from rlite_pubsub.gateway.asking import Asking, plain
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.http import listing, sse
from rlite_pubsub.gateway.http.operation import STREAM, Request, as_json, serves
from rlite_pubsub.gateway.http.parameter import AFTER, COUNT, ENCODING, MATCH, Several, Span, span_of
from rlite_pubsub.gateway.http.request import Problem
from rlite_pubsub.gateway.http.schema import NAME, NUMBER, SENT, TEXT, page, record
from rlite_pubsub.gateway.streams.listener import Listener
from rlite_pubsub.gateway.streams.streams import HEADERS, gone, more
from rlite_pubsub.gateway.streams.telling import Telling
from rlite_pubsub.gateway.streams.waves import Waves
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.engine.engine import Engine

MAX_NAMES = 100
"""In one stream."""
PATTERN = Several(
    "pattern",
    "Patterns, as PSUBSCRIBE has them, to follow in one stream.",
    {"type": "array", "items": TEXT, "maxItems": MAX_NAMES},
)
_HELD = record(name=NAME, subscribers=NUMBER)
_SEVERAL_STREAMED = "Each event is a message: `data` is JSON with `pattern`, `channel` and `data`."


class Channels:
    """All channels of one server."""

    def __init__(self, engine: Engine, asking: Asking, waves: Waves, turn_soon: Callable[[], None]) -> None:
        self._engine = engine
        self._asking = asking
        self._waves = waves
        self._telling = Telling()
        self._turn_soon = turn_soon
        self._listeners: set[Listener] = set()

    def close(self) -> None:
        """Every stream ends."""
        for listener in list(self._listeners):
            listener.close_now()

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
        span, encoding = span_of(request.query), ENCODING.of(request.query)
        if patterns:
            await self._stream(PATTERNS, [pattern.encode() for pattern in patterns], encoding, request)
            return None
        return {**self._held(CHANNELS, "channels", span), "patterns": await self._asking.ask(b"pubsub", b"numpat")}

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
        return self._held(PATTERNS, "patterns", span_of(request.query))

    def _held(self, kind: Kind, what: str, span: Span) -> dict[str, object]:
        self._turn_soon()
        hub = self._engine.hub
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
        return {"receivers": plain(await self._asking.ask(b"publish", request.target.name, body))}

    @serves(
        "GET",
        "/api/channels/{name}",
        "Follow a channel",
        about="A stream of what is published to it from now on; each event's data is a message.",
        parameters=(ENCODING,),
        answers={STREAM: SENT},
    )
    async def _follow_one(self, request: Request) -> None:
        await self._stream(CHANNELS, [request.target.name], ENCODING.of(request.query), request)

    # -- streams

    async def _stream(self, kind: Kind, names: list[bytes], encoding: str, request: Request) -> None:
        if request.is_head:
            return await request.send_head(HEADERS)
        host, port = request.scope.get("client") or ("?", 0)
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        listener = Listener(self._engine, address, request.scope["user"], self._waves)
        self._listeners.add(listener)
        peer = asyncio.ensure_future(gone(request.receive))
        listener.rouse_when_done(peer)
        try:
            listener.hold(kind, names)
            self._turn_soon()
            await self._follow(listener, encoding == "base64", peer, request)
        finally:
            peer.cancel()
            self._listeners.discard(listener)
            listener.close_now()
            self._turn_soon()

    async def _follow(self, listener: Listener, is_binary: bool, peer: asyncio.Future[None], request: Request) -> None:
        send, settings = request.send, self._engine.settings
        clock = asyncio.get_running_loop().time
        while not (parts := listener.take()):
            if not listener.is_open or peer.done():
                raise Problem(503, "Not subscribed", "The store could not record the subscription.")
            await listener.wait(clock() + settings["http-heartbeat"])
        await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *request.headers]})
        await more(send, sse.retry(settings["http-retry"]))
        said_at = clock()
        while True:
            told = b"".join([self._telling.events(part, is_binary=is_binary) for part in parts])
            if told:
                await more(send, told)
                said_at = clock()
            parts = listener.take()
            if parts:
                await self._waves.turn()  # `send` lets nobody else have a turn unless the peer is slow
                continue
            if not listener.is_open or peer.done():
                break
            await listener.wait(said_at + settings["http-heartbeat"])
            parts = listener.take()
            if not parts and listener.is_open and not peer.done() and clock() >= said_at + settings["http-heartbeat"]:
                await more(send, sse.HEARTBEAT)
                said_at = clock()
        await send({"type": "http.response.body", "body": b""})
