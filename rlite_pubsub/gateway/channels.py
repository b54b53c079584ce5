"""Channels over HTTP: published to, listed, and followed live.

    GET  /api/channels?match=                  the channels that somebody holds, and by how many sessions
    GET  /api/channels?pattern=P&pattern=Q     a stream of what is published to any channel that matches
    GET  /api/channels/NAME                    a stream of what is published to this one
    POST /api/channels/NAME                    publish the body; how many have received it

Laws kept here:
 2. subscribe: a stream's answer begins once the records of its names are committed, so what is published after it has
    begun is in it.
 7, 8. What a slow reader leaves goes to its mailbox on disk, and comes back in order; at a limit it is as for any other
    subscriber: disconnected, or told what is lost by a `gap` event.

A stream has no ids: what was published before it is nowhere, unless the channel is retained: then it is in the topic.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections import deque
from typing import TYPE_CHECKING

from rlite_pubsub.commands.footprint import Footprint
from rlite_pubsub.commands.session import CommandSession
from rlite_pubsub.delivery.backlog import Backlog
from rlite_pubsub.delivery.kinds import CHANNELS, PATTERNS, Kind
from rlite_pubsub.gateway import event, sse
from rlite_pubsub.gateway.asking import Asking, plain
from rlite_pubsub.gateway.http import Headers, Problem, Receive, Scope, Send, only, parameters, say, whole_body
from rlite_pubsub.gateway.streams import HEADERS, gone, more
from rlite_pubsub.protocol.frames import elements, frames

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.commands.instance import Instance

PREFIX = "/api/channels"
MAX_NAMES = 100
"""In one stream."""
READY = b"*1\r\n$5\r\nready\r\n"
SESSION_BYTES = 14 * 1024
"""What an idle stream costs, by measurement; for CLIENT LIST's tot-mem."""


class Listener(CommandSession):
    """The session of one stream."""

    __slots__ = ("_peer", "_wake", "backlog", "inbox", "inbox_bytes", "is_open")

    def __init__(self, instance: Instance, peer: str) -> None:
        super().__init__(instance)
        self._peer = peer
        self._wake: asyncio.Future[None] | None = None
        self.backlog: Backlog | None = None
        self.inbox: deque[bytes] = deque()
        self.inbox_bytes = 0
        self.is_open = True
        self.authenticated = True  # by guard.py
        instance.sessions[self.id] = self

    def hold(self, kind: Kind, names: list[bytes]) -> None:
        """Subscribe; `READY` comes once that is committed, and something else where it can't be."""
        for name in names:
            self.hub.subscribe(self, kind, name)
        self.send(READY)
        self.hub.on_failed_commit(self._refuse)

    def _refuse(self, failure: Exception) -> None:
        self.outbox[:] = [part for part in self.outbox if part is not READY]
        self.close_now()

    def flush(self) -> None:
        self.dirty = False
        parts, self.outbox = self.outbox, []
        pressure = self.instance.pressure
        if not self.is_open:
            return
        if self.backlog is not None:
            pressure.pile_up(self, self.backlog, parts)
        else:
            self.inbox += parts
            self.inbox_bytes += sum(map(len, parts))
            if self.inbox_bytes > self.instance.settings["spill-threshold"]:
                self.backlog = pressure.begin(self)
        self._rouse()

    def take(self) -> bytes:
        """What has come, oldest first; empty if there is nothing."""
        if self.inbox:
            data = b"".join(self.inbox)
            self.inbox.clear()
            self.inbox_bytes = 0
            return data
        backlog, pressure = self.backlog, self.instance.pressure
        if backlog is None:
            return b""
        while backlog and not backlog.head:
            if not pressure.refill(self, backlog):
                return b""
        data = b"".join(backlog.head)
        backlog.written(len(data))
        if not backlog:
            self.backlog = None
            pressure.end(backlog)
        return data

    async def wait(self, seconds: float) -> None:
        """Until something has come, or the time is over."""
        if self.inbox or self.backlog is not None or not self.is_open:
            return
        loop = asyncio.get_running_loop()
        self._wake = loop.create_future()
        timer = loop.call_later(seconds, self._rouse)
        try:
            await self._wake
        finally:
            timer.cancel()
            self._wake = None

    def _rouse(self, _: object = None) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def rouse_when_done(self, peer: asyncio.Future[None]) -> None:
        """Wake once the peer is gone."""
        peer.add_done_callback(self._rouse)

    @property
    def takes_more(self) -> bool:
        return self.backlog is None and self.is_open

    @property
    def address(self) -> str:
        return self._peer

    def footprint(self) -> Footprint:
        backlog = self.backlog
        in_memory = self.inbox_bytes + (backlog.memory_bytes if backlog is not None else 0)
        return Footprint(outbox=in_memory, total=SESSION_BYTES + in_memory)

    def resume(self) -> None:
        """It asks for nothing."""

    def close_after_reply(self) -> None:
        self.close_now()

    def close_now(self) -> None:
        """Leave nothing behind."""
        if not self.is_open:
            return
        self.is_open = False
        self.closing = True
        self.outbox.clear()
        backlog, self.backlog = self.backlog, None
        if backlog is not None:
            self.instance.pressure.end(backlog)
        self.instance.forget(self)
        self.hub.forget(self)
        self._rouse()


class Channels:
    """All channels of one server."""

    def __init__(self, instance: Instance, asking: Asking, turn_soon: Callable[[], None]) -> None:
        self._instance = instance
        self._asking = asking
        self._turn_soon = turn_soon
        self._listeners: set[Listener] = set()

    def close(self) -> None:
        """Every stream ends."""
        for listener in list(self._listeners):
            listener.close_now()

    async def serve(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        """A request below `PREFIX`. Raises Problem and StoreError."""
        name = scope["path"].removeprefix(PREFIX)[1:]
        query = parameters(scope["query_string"])
        encoding = next((value for key, value in query if key == "encoding"), "text")
        if encoding not in ("text", "base64"):
            raise Problem(400, "Bad encoding", "encoding is text or base64.")
        is_binary = encoding == "base64"
        patterns = [value.encode() for key, value in query if key == "pattern"]
        if not name:
            only(scope["method"], "GET")
            if not patterns:
                match = next((value.encode() for key, value in query if key == "match"), b"*")
                return await say(send, headers, await self._list(match))
            if len(patterns) > MAX_NAMES:
                raise Problem(400, "Too many patterns", f"A stream has at most {MAX_NAMES}.")
            return await self._stream(PATTERNS, patterns, is_binary, scope, receive, send, headers)
        only(scope["method"], "GET", "POST")
        if scope["method"] == "GET":
            return await self._stream(CHANNELS, [name.encode()], is_binary, scope, receive, send, headers)
        body = await whole_body(scope, receive, self._instance.settings["http-max-body"])
        if is_binary:
            try:
                body = b64decode(body, validate=True)
            except Base64Error as failure:
                raise Problem(400, "Bad base64", f"The body is no base64: {failure}") from failure
        await say(send, headers, {"receivers": plain(await self._asking.ask(b"publish", name.encode(), body))})

    async def _list(self, match: bytes) -> object:
        names = sorted(await self._asking.ask(b"pubsub", b"channels", match))
        counts = await self._asking.ask(b"pubsub", b"numsub", *names)
        found = [
            {"name": event.text_of(name), "subscribers": count}
            for name, count in zip(counts[::2], counts[1::2], strict=True)
        ]
        return {"channels": found, "patterns": await self._asking.ask(b"pubsub", b"numpat")}

    async def _stream(
        self,
        kind: Kind,
        names: list[bytes],
        is_binary: bool,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: Headers,
    ) -> None:
        host, port = scope.get("client") or ("?", 0)
        listener = Listener(self._instance, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        self._listeners.add(listener)
        peer = asyncio.ensure_future(gone(receive))
        listener.rouse_when_done(peer)
        try:
            listener.hold(kind, names)
            self._turn_soon()
            await self._follow(listener, is_binary, peer, send, headers)
        finally:
            peer.cancel()
            self._listeners.discard(listener)
            listener.close_now()
            self._turn_soon()

    async def _follow(
        self, listener: Listener, is_binary: bool, peer: asyncio.Future[None], send: Send, headers: Headers
    ) -> None:
        settings = self._instance.settings
        while not (data := listener.take()):
            if not listener.is_open or peer.done():
                raise Problem(503, "Not subscribed", "The store could not record the subscription.")
            await listener.wait(settings["http-heartbeat"])
        await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *headers]})
        await more(send, sse.retry(settings["http-retry"]))
        while True:
            told = b"".join([_told(frame, is_binary) for frame in frames(data)])
            if told:
                await more(send, told)
                await asyncio.sleep(0)
            data = listener.take()
            if data:
                continue
            if not listener.is_open or peer.done():
                break
            await listener.wait(settings["http-heartbeat"])
            data = listener.take()
            if not data and listener.is_open and not peer.done():
                await more(send, sse.HEARTBEAT)
        await send({"type": "http.response.body", "body": b""})


def _told(frame: bytes, is_binary: bool) -> bytes:
    """One message as an event."""
    words = elements(frame, 4)
    if words[0] == CHANNELS.message:
        return sse.event(b"", b"", b64encode(words[2]) if is_binary else event.as_text(words[2]))
    if words[0] == PATTERNS.message:
        data = b64encode(words[3]).decode() if is_binary else event.value_of(words[3])
        about = {"pattern": event.text_of(words[1]), "channel": event.text_of(words[2]), "data": data}
        return sse.event(b"", b"", json.dumps(about, ensure_ascii=False).encode())
    if words[0] == b"gap":
        about = {"reason": "slow", "channel": event.text_of(words[1]), "lost": int(words[2]), "sinceMs": int(words[3])}
        return sse.gap(about)
    return b""
