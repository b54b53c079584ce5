"""Streams of retained channels: what is published is an entry of the channel's topic, and a stream reads it there. So
its events have ids, and a reader that comes back goes on behind the last it was given.

Laws kept here:
 2. subscribe: the answer begins once the subscription is committed, and its place is noted behind that.
 6. replay then live without a gap or a duplicate: a place in the topic is all that a stream has (`Streams`).
 8. what is lost is said: where a message is no entry of the topic (the key of that name has become something else, the
    rule is gone), the stream ends, and its reader comes back to one without ids, which says so.

A stream also subscribes (`Presence`): publishers count it, and CLIENT KILL and lost rights end it, as any other.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from rlite_pubsub.gateway import entry
from rlite_pubsub.gateway.asking import Asking
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.events.event_log import Form
from rlite_pubsub.gateway.http.operation import Request
from rlite_pubsub.gateway.session import Client
from rlite_pubsub.gateway.streams.channel_streams import ChannelListener, not_subscribed
from rlite_pubsub.gateway.streams.streams import LATEST
from rlite_pubsub.gateway.streams.topic_streams import TopicStreams
from rlite_pubsub.gateway.streams.waves import Waves
from rlite_pubsub.keyspace.topic.retained import FIELD
from rlite_pubsub.pubsub.kinds import CHANNELS
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.memory import EPHEMERAL
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.pubsub.hub import Hub

_EVENTS_OF_KEYS = (b"__keyspace@", b"__keyevent@")
"""Nobody retains these, whatever rule matches their names."""
_UNTIL_KEPT_SECONDS = 1.0
"""Another process's message is in our mailbox a moment before its entry is committed. Who looks too early ends a stream
whose reader comes back and has lost nothing."""


class RetainedStreams:
    """All of one server."""

    def __init__(
        self,
        presence: Callable[[Client, bytes, Callable[[], bool]], Presence],
        hub: Hub,
        keyspace: Keyspace,
        asking: Asking,
        streams: TopicStreams,
        turn_soon: Callable[[], None],
    ) -> None:
        self._presence = presence
        self._hub = hub
        self._keyspace = keyspace
        self._asking = asking
        self._streams = streams
        self._turn_soon = turn_soon

    async def can_serve(self, request: Request) -> bool:
        """Return whether the channel is retained, in a topic that the caller may read. Raises StoreError."""
        name = request.target.name
        if name.startswith(_EVENTS_OF_KEYS) or name.endswith(EPHEMERAL):
            return False
        self._turn_soon()
        self._hub.look_around()
        if not self._is_ruled(name) or not request.scope["caller"].may(b"xrange", name, b"-", b"+"):
            return False
        return await self._asking.ask(request, b"type", name) in (b"none", b"stream")

    async def serve(self, request: Request, encoding: str, asked: str | None, since: Id | None) -> None:
        """Stream a channel behind a place in it, by default behind all that there is. It ends when the peer is gone,
        the server goes, or the channel is not retained any more. Raises Problem, and StoreError."""
        name = request.target.name
        form = Form(name, _told_binary if encoding == "base64" else _told, entry.name)
        presence = self._presence(request.client, request.scope["user"], lambda: self._is_kept(name))
        try:
            presence.hold(CHANNELS, [name])
            self._turn_soon()
            if not await presence.begun:
                raise not_subscribed()
            start = LATEST[0] if asked is None and since is None else asked
            await self._streams.serve(request, form, start, since, lambda: _received(request, presence))
        finally:
            presence.close_now()
            self._turn_soon()

    def _is_ruled(self, name: bytes) -> bool:
        return self._hub.route(CHANNELS, name).topic is not None

    def _is_kept(self, name: bytes) -> bool:
        """Return whether what was just published there is in the topic."""
        try:
            return self._is_ruled(name) and self._keyspace.read_topic(
                event.DATABASE, name, lambda _, topic: topic is not None
            )
        except StoreError:
            return True  # nobody knows; a stream that can't read its topic ends by itself


class Presence(ChannelListener):
    """The subscription of one stream: what it is handed is in the topic, too, and is passed over here."""

    __slots__ = ("_check", "_is_kept", "_loop", "begun", "ended")

    def __init__(
        self, engine: Engine, client: Client, user: bytes, waves: Waves, is_kept: Callable[[], bool]
    ) -> None:
        """`is_kept` is asked a while after something was published."""
        super().__init__(engine, client, user, waves)
        self._is_kept = is_kept
        self._loop = loop = asyncio.get_running_loop()
        self._check: asyncio.TimerHandle | None = None
        self.begun: asyncio.Future[bool] = loop.create_future()
        """Whether the subscription is committed."""
        self.ended: asyncio.Future[None] = loop.create_future()

    def rouse(self) -> None:
        has_come = False
        while self.is_open and self.take():
            has_come = True
        if not self.is_open:
            if self._check is not None:
                self._check.cancel()
            if not self.begun.done():
                self.begun.set_result(False)
            if not self.ended.done():
                self.ended.set_result(None)
        elif has_come and not self.begun.done():
            self.begun.set_result(True)
        elif has_come and self._check is None:
            self._check = self._loop.call_later(_UNTIL_KEPT_SECONDS, self._look)

    def _look(self) -> None:
        self._check = None
        if not self._is_kept():
            self.close_now()


async def _received(request: Request, presence: Presence) -> MutableMapping[str, Any]:
    """Return the peer's next message; or that it is gone, if its subscription has ended."""
    receiving = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((receiving, presence.ended), return_when=asyncio.FIRST_COMPLETED)
        return {"type": "http.disconnect"} if presence.ended.done() else receiving.result()
    finally:
        receiving.cancel()


def _told(found: bytes) -> tuple[bytes, bytes]:
    """Return a message; what somebody else has put into the topic is told as the topic's streams do."""
    payload = _payload(found)
    return entry.decode(found) if payload is None else (b"", event.as_text(payload))


def _told_binary(found: bytes) -> tuple[bytes, bytes]:
    payload = _payload(found)
    return entry.decode_binary(found) if payload is None else (b"", b64encode(payload))


def _payload(found: bytes) -> bytes | None:
    fields = list(event.fields_of(found))
    return fields[0][1] if len(fields) == 1 and fields[0][0] == FIELD else None
