"""Streams of channels and patterns: each is a session, where what is published waits until the stream takes it.

Laws kept here:
 2. subscribe: a stream's answer begins once the records of its names are committed, so what is published after it has
    begun is in it.
 7, 8. It waits in the session's outbox (pubsub/outbox.py), on disk where it is much; at a limit it is as for any other
    subscriber: disconnected, or told what is lost by a `gap` event.

A run of messages is encoded once for all of a server's sessions (pubsub/route.py), and so it is sent once.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING

from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.stats.footprint import Footprint
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.http import sse
from rlite_pubsub.gateway.http.operation import Request
from rlite_pubsub.gateway.http.request import Problem
from rlite_pubsub.gateway.session import Client, address_of
from rlite_pubsub.gateway.streams.streams import HEADERS, gone, more
from rlite_pubsub.gateway.streams.waves import Waves
from rlite_pubsub.protocol.frames import elements, frames
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, Kind
from rlite_pubsub.pubsub.outbox import TakenOutbox

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.engine.settings.settings import Settings

READY = b"*1\r\n$5\r\nready\r\n"
SESSION_BYTES = 14 * 1024
"""What an idle stream costs, by measurement; for CLIENT LIST's tot-mem."""
KEPT_BYTES = 1 << 20
"""Of what is remembered as events: those who are handed the same bytes take them within a few rounds of the loop."""
_LOSS = b"gap"


class ChannelStreams:
    """All of one server."""

    def __init__(
        self,
        listener: Callable[[Client, bytes], ChannelListener],
        settings: Settings,
        waves: Waves,
        turn_soon: Callable[[], None],
    ) -> None:
        self._listener = listener
        self._settings = settings
        self._waves = waves
        self._turn_soon = turn_soon
        self._told = ToldMessages()
        self._listeners: set[ChannelListener] = set()

    def close(self) -> None:
        """End every stream."""
        for listener in list(self._listeners):
            listener.close_now()

    async def serve(
        self, kind: Kind, names: list[bytes], encoding: str, request: Request, preface: bytes = b""
    ) -> None:
        """Stream what is published to these names, behind a preface, until the peer is gone, or the server goes. Raises
        Problem."""
        if request.is_head:
            return await request.send_head(HEADERS)
        listener = self._listener(request.client, request.scope["user"])
        self._listeners.add(listener)
        peer = asyncio.ensure_future(gone(request.receive))
        listener.rouse_when_done(peer)
        try:
            listener.hold(kind, names)
            self._turn_soon()
            await self._follow(listener, encoding == "base64", peer, request, preface)
        finally:
            peer.cancel()
            self._listeners.discard(listener)
            listener.close_now()
            self._turn_soon()

    async def _follow(
        self,
        listener: ChannelListener,
        is_binary: bool,
        peer: asyncio.Future[None],
        request: Request,
        preface: bytes,
    ) -> None:
        send, settings = request.send, self._settings
        clock = asyncio.get_running_loop().time
        while not (parts := listener.take()):
            if not listener.is_open or peer.done():
                raise not_subscribed()
            await listener.wait(clock() + settings["http-heartbeat"])
        await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *request.headers]})
        await more(send, sse.retry(settings["http-retry"]) + preface)
        said_at = clock()
        while True:
            told = b"".join([self._told.events(part, is_binary=is_binary) for part in parts])
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


class ChannelListener(CommandSession):
    """The session of one stream."""

    __slots__ = ("_client", "_timer", "_wake", "_waves", "is_open")

    outbox: TakenOutbox

    def __init__(self, engine: Engine, client: Client, user: bytes, waves: Waves) -> None:
        super().__init__(engine, TakenOutbox(engine.pressure))
        self.user = user
        self._client = client
        self._waves = waves
        self._timer: asyncio.TimerHandle | None = None
        self._wake: asyncio.Future[None] | None = None
        self.is_open = True
        self.authenticated = True  # by guard.py
        engine.sessions[self.id] = self

    def hold(self, kind: Kind, names: list[bytes]) -> None:
        """Subscribe; `READY` comes once that is committed, and something else where it can't be."""
        for name in names:
            self.hub.subscribe(self, kind, name)
        self.send(READY)
        self.hub.on_failed_commit(self, self._refuse)

    def _refuse(self, failure: Exception) -> None:
        self.said[:] = [part for part in self.said if part is not READY]
        self.close_now()

    def take(self) -> list[bytes]:
        """Return what has come, oldest first, in parts of whole messages; empty if there is nothing."""
        return self.outbox.take(self)

    async def wait(self, until: float) -> None:
        """Wait for something to come, until then at most; it may be less."""
        if self.outbox.inbox or self.outbox.backlog is not None or not self.is_open:
            return
        loop = asyncio.get_running_loop()
        self._wake = loop.create_future()
        if self._timer is None:
            self._timer = loop.call_at(until, self._ring)
        await self._wake

    def _ring(self) -> None:
        self._timer = None
        self.rouse()

    def rouse(self) -> None:
        """Thousands may have been told something in this turn: each is woken when it is its turn."""
        waiting, self._wake = self._wake, None
        if waiting is not None:
            self._waves.wake((waiting,))

    def rouse_when_done(self, peer: asyncio.Future[None]) -> None:
        """Wake once the peer is gone."""
        peer.add_done_callback(lambda _: self.rouse())

    @property
    def takes_more(self) -> bool:
        return self.outbox.backlog is None and self.is_open

    @property
    def transport(self) -> bytes:
        return b"http"

    @property
    def address(self) -> str:
        return address_of(self._client)

    def footprint(self) -> Footprint:
        in_memory = self.outbox.memory_bytes
        return Footprint(outbox=in_memory, total=SESSION_BYTES + in_memory)

    def resume(self) -> None:
        """Do nothing: it asks for nothing."""

    def close_after_reply(self) -> None:
        self.close_now()

    def close_now(self) -> None:
        """Leave nothing behind."""
        if not self.is_open:
            return
        self.is_open = False
        self.closing = True
        if self._timer is not None:
            self._timer.cancel()
        self.outbox.end()
        self.engine.forget(self)
        self.hub.forget(self)
        self.rouse()


def not_subscribed() -> Problem:
    """Return the problem of a stream whose subscription could not be committed."""
    return Problem(503, "Not subscribed", "The store could not record the subscription.")


class ToldMessages:
    """Published messages, as events: a run of messages is encoded once for all that were given the same bytes."""

    def __init__(self) -> None:
        self._told: dict[tuple[bytes, bool], bytes] = {}
        self._kept_bytes = 0

    def events(self, part: bytes, *, is_binary: bool) -> bytes:
        """Whole messages, as a session is handed them, as events. With `is_binary` their payloads are base64."""
        key = part, is_binary
        told = self._told.get(key)
        if told is None:
            told = b"".join([_told(frame, is_binary) for frame in frames(part)])
            size = len(part) + len(told)
            if self._kept_bytes + size > KEPT_BYTES:
                self._told.clear()
                self._kept_bytes = 0
            if size <= KEPT_BYTES:
                self._told[key] = told
                self._kept_bytes += size
        return told


def _told(frame: bytes, is_binary: bool) -> bytes:
    """One message as an event; other pushes of a session give none."""
    words = elements(frame, 4)
    if words[0] == CHANNELS.message:
        return sse.event(b"", b"", b64encode(words[2]) if is_binary else event.as_text(words[2]))
    if words[0] == PATTERNS.message:
        data = b64encode(words[3]).decode() if is_binary else event.value_of(words[3])
        about = {"pattern": event.text_of(words[1]), "channel": event.text_of(words[2]), "data": data}
        return sse.event(b"", b"", json.dumps(about, ensure_ascii=False).encode())
    if words[0] == _LOSS:
        about = {"reason": "slow", "channel": event.text_of(words[1]), "lost": int(words[2]), "since_ms": int(words[3])}
        return sse.gap(about)
    return b""
