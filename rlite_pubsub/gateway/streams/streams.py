"""Open streams of events: each has a place in the topic, and goes on from it whenever it can.

Laws kept here:
 6. replay then live: a stream reads the page that comes after its place, and waits only where there is none; what is
    appended after it has looked wakes it, for a commit between look and wait has moved `_version`.
 7. publishers never wait: a stream whose peer takes nothing keeps its place, and holds a page or two.
 8. what is lost is said: a `gap` event, where the peer's place is not there any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from rlite_pubsub.gateway.events.event_log import EventLog, LogPage, LostPlace
from rlite_pubsub.gateway.events.matcher import Matcher
from rlite_pubsub.gateway.http import sse
from rlite_pubsub.gateway.http.request import Headers, Receive, Send
from rlite_pubsub.gateway.streams.waves import Waves
from rlite_pubsub.keyspace.topic.cold_shelf import ColdUnreadable
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.topics import entry_ids, uuid6
from rlite_pubsub.storage.topics.entry_ids import Id

log = logging.getLogger("rlite_pubsub")

HEADERS: Headers = [
    (b"content-type", sse.CONTENT_TYPE),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
EARLIEST, LATEST = ("earliest", "0", "0-0"), ("latest", "$")
"""Places that have a word."""
PIECE_BYTES = 256 * 1024
_SILENCE_CHECK_SECONDS = 1.0


class StreamStart(NamedTuple):
    """Where a stream begins, and the first thing it is sent."""

    after: Id
    header: str | None
    """Last-Event-ID, as it was granted."""
    preface: bytes


class StreamSleep:
    """One stream's sleep."""

    __slots__ = ("peer", "until", "waiting")

    def __init__(self, peer: asyncio.Future[None]) -> None:
        self.peer = peer
        self.until = 0.0  # at most
        self.waiting: asyncio.Future[None] | None = None
        peer.add_done_callback(self._end)

    def begin(self, until: float) -> asyncio.Future[None]:
        """Note that it sleeps, until this time at most; return what it waits for."""
        self.until = until
        self.waiting = asyncio.get_running_loop().create_future()
        return self.waiting

    def end(self) -> None:
        """Note that it is awake."""
        self.waiting = None

    def _end(self, peer: asyncio.Future[None]) -> None:
        """The peer is gone, and waits for no wave."""
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(None)


class Streams:
    """All of one topic in one form."""

    def __init__(
        self,
        events: EventLog,
        heartbeat_seconds: Callable[[], float],
        retry_ms: Callable[[], int],
        waves: Waves | None = None,
    ) -> None:
        self._events = events
        self._heartbeat_seconds = heartbeat_seconds
        self._retry_ms = retry_ms
        self._waves = waves or Waves()
        self._asleep: dict[StreamSleep, None] = {}
        self._version = 0
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False
        self.open = 0
        self.expected = 0  # those that are about to be open, too
        self.gaps = 0
        self.sent_bytes = 0

    def note(self) -> None:
        """Note that the topic has changed, and that the change is committed."""
        self._version += 1
        self._events.changed()
        self._wake()

    def close(self) -> None:
        """End every stream as soon as its peer lets it; readers come back to the next server."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self._wake()

    def start(self, asked: str | None, since: Id | None = None) -> StreamStart:
        """Return where a reader begins that names its last id, or else the place in front of a moment (None: all there
        is). Nothing was appended between the last id and a moment behind it: both are one place, which is told to the
        reader, so that it finds it again whenever it comes back. Raises StoreError."""
        retry = sse.retry(self._retry_ms())
        if asked is None and since is None:
            return StreamStart(entry_ids.MIN, None, retry)
        if asked in EARLIEST:
            return StreamStart(entry_ids.MIN, "earliest", retry)
        if asked is None or asked in LATEST:
            end = self._events.end()
            place = end if since is None or asked is not None else min(since, end)
            name = self._events.form.name(place)
            return StreamStart(place, name.decode(), retry + sse.position(name))
        after = uuid6.parse(asked)
        if after is None:
            lost: LostPlace | None = LostPlace("unknown", None, self._events.earliest(), None)
        else:
            lost = self._events.loss(after)
        if lost is None:
            assert after is not None
            return StreamStart(after, asked, retry)
        self.gaps += 1
        return StreamStart(entry_ids.MIN, "earliest", retry + self._gap(lost, asked))

    async def serve(
        self, start: StreamStart, matcher: Matcher | None, headers: Headers, receive: Receive, send: Send
    ) -> None:
        """Stream until the peer is gone, or the server goes."""
        granted = [] if start.header is None else [(b"last-event-id", start.header.encode("ascii", "replace"))]
        await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *granted, *headers]})
        peer = asyncio.ensure_future(gone(receive))
        self.open += 1
        try:
            await more(send, start.preface)
            await self._stream(start.after, matcher, StreamSleep(peer), send)
            await send({"type": "http.response.body", "body": b""})
        finally:
            self.open -= 1
            peer.cancel()

    async def _stream(self, after: Id, matcher: Matcher | None, sleep: StreamSleep, send: Send) -> None:
        clock, peer = asyncio.get_running_loop().time, sleep.peer
        said_at = clock()
        await self._waves.turn()
        while not (self._is_over or peer.done()):
            version = self._version
            try:
                page = await self._events.next_page(after, matcher)
            except (StoreError, ColdUnreadable) as failure:
                log.warning("A stream of events ends, since they can't be read: %s", failure)
                return
            data = page.data if page.lost is None else self._told(page, page.lost)
            if data:
                await more(send, data)
                self.sent_bytes += len(data)
                said_at = clock()
            after = page.after
            if not page.is_end:
                await self._waves.turn()  # `send` lets nobody else have a turn unless the peer is slow
            elif version == self._version:
                await self._sleep(sleep, said_at + self._heartbeat_seconds())
                if clock() >= said_at + self._heartbeat_seconds():
                    await more(send, sse.HEARTBEAT)
                    said_at = clock()

    def _told(self, page: LogPage, lost: LostPlace) -> bytes:
        self.gaps += 1
        asked = None if lost.after is None else self._events.form.name(lost.after).decode()
        return self._gap(lost, asked) + page.data

    def _gap(self, lost: LostPlace, asked: str | None) -> bytes:
        first = None if lost.first == entry_ids.MIN else self._events.form.name(lost.first).decode()
        return sse.gap({"reason": lost.reason, "last_event_id": asked, "earliest": first, "lost_at_most": lost.at_most})

    # -- waiting

    async def _sleep(self, sleep: StreamSleep, until: float) -> None:
        """Sleep until something has changed, the peer is gone or the time has come."""
        if self._is_over or sleep.peer.done():
            return
        if self._timer is None:
            self._check_silence_later()
        waiting = sleep.begin(until)
        self._asleep[sleep] = None
        try:
            await waiting
        finally:
            sleep.end()
            self._asleep.pop(sleep, None)

    def _wake(self) -> None:
        asleep, self._asleep = self._asleep, {}
        self._waves.wake([each.waiting for each in asleep if each.waiting is not None])

    def _check_silence_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_SILENCE_CHECK_SECONDS, self._check_silence)

    def _check_silence(self) -> None:
        """Wake those who have been silent for long. One timer is for all of them."""
        self._timer = None
        if self._is_over or not self._asleep:
            return
        now = asyncio.get_running_loop().time()
        silent = [each for each in self._asleep if each.until <= now]
        for each in silent:
            del self._asleep[each]
        self._waves.wake([each.waiting for each in silent if each.waiting is not None])
        self._check_silence_later()


async def more(send: Send, data: bytes) -> None:
    """Send this, too, by pieces of which a peer that is slow is given one at a time: each is copied."""
    if len(data) <= PIECE_BYTES:
        await send({"type": "http.response.body", "body": data, "more_body": True})
        return
    whole = memoryview(data)
    for at in range(0, len(data), PIECE_BYTES):
        await send({"type": "http.response.body", "body": whole[at : at + PIECE_BYTES], "more_body": True})


async def gone(receive: Receive) -> None:
    """Returns once the peer is not there any more."""
    with suppress(asyncio.CancelledError):
        while (await receive())["type"] != "http.disconnect":
            pass
