"""`/api/stats`: what the page draws. One sample as JSON, or with `Accept: text/event-stream` one each second.

Promises:
 - All open pages share one sampler, and where no page is open there is none.
 - A stream begins with what the sampler has kept, so that a page that comes back has no hole, and goes on with each
   new sample once. A page that does not read holds nothing back and gets the samples that are still kept.
 - What can't be read is null: nobody knows is not none.

Counters count since the start or CONFIG RESETSTAT, of this server. Backlogs are the whole store's.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING

from rlite_pubsub import __version__
from rlite_pubsub.engine.stats.info_subscribers import subscribers
from rlite_pubsub.engine.table import TABLE
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.http import sse
from rlite_pubsub.gateway.http.request import Receive, Scope, Send, header, say
from rlite_pubsub.gateway.streams.streams import HEADERS, gone, more
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.keys.key_records import TOPIC

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Instance
    from rlite_pubsub.keyspace.keyspace import Keyspace

log = logging.getLogger("rlite_pubsub")

KEPT = 120
"""Samples that a page is given when it comes."""
SECONDS = 1.0
LOOK_SECONDS = 0.1
"""How often the loop's lag is looked at, while there is a sampler."""
COUNTING_SHARE = 0.02
"""Counting topics is a walk over all keys. It may take so much of the time: where there are many, they are counted less
often."""

Sample = dict[str, object]

_OF_INFO = {
    "messages_published": "messagesPublished",
    "messages_delivered": "messagesDelivered",
    "gaps": "gaps",
    "dropped_messages": "droppedMessages",
    "subscribed_sessions": "subscribedSessions",
    "spilled_sessions": "spilledSessions",
    "spilled_bytes": "spilledBytes",
    "subscribers": "subscribers",
    "backlog_messages": "backlogMessages",
    "backlog_bytes": "backlogBytes",
    "oldest_age_ms": "oldestAgeMs",
}


class Stats:
    """One server's; an ASGI application."""

    def __init__(
        self, instance: Instance, keyspace: Keyspace, posted: Callable[[], int], turn_soon: Callable[[], None]
    ) -> None:
        self._instance = instance
        self._keyspace = keyspace
        self._posted = posted
        self._turn_soon = turn_soon
        self._topics: int | None = None
        self._topics_commit: int | None = None  # at which they were counted
        self._count_again_at = 0.0
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=KEPT)
        self._number = 0
        self._pages: set[asyncio.Event] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._lag = 0.0
        self._is_over = False

    @property
    def is_sampling(self) -> bool:
        """Whether anything is looked at without being asked for."""
        return self._timer is not None

    def close(self) -> None:
        """Every stream ends."""
        self._is_over = True
        self._rest()
        for woken in self._pages:
            woken.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if b"text/event-stream" in (header(scope, b"accept") or b"") and scope["method"] == "GET":
            return await self._stream(receive, send)
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        await asyncio.sleep(0)
        await say(send, [], self.sample(loop.time() - asked_at))

    # -- one sample

    def sample(self, lag_seconds: float) -> Sample:
        """What there is to know now."""
        instance = self._instance
        self._turn_soon()  # for what is read is read in a turn
        now_ms = int(instance.clock() * 1000)
        stats, holders = instance.stats, instance.hub.holders
        found: Sample = {
            "ms": now_ms,
            "version": __version__,
            "uptimeMs": max(0, now_ms - int(instance.started_at * 1000)),
            "commands": stats.commands_processed,
            "entriesPosted": self._entries(),
            "inputBytes": stats.input_bytes,
            "outputBytes": stats.outboxes.output_bytes,
            "sessions": len(instance.sessions),
            "channels": len(holders[CHANNELS.index]),
            "patterns": len(holders[PATTERNS.index]),
            "shards": len(holders[SHARDS.index]),
            "topics": self._count_topics(),
            "loopLagMs": round(lag_seconds * 1000, 2),
        }
        found.update(dict.fromkeys(_OF_INFO.values()))
        for name, value in subscribers(instance):
            if name in _OF_INFO and isinstance(value, int):
                found[_OF_INFO[name]] = value
        return found

    def _entries(self) -> int:
        """Appended to topics by this server: XADD's, those posted over HTTP, and messages to retained channels."""
        instance = self._instance
        appended = instance.stats.commands.get(TABLE.resolve([b"xadd"]))
        kept = instance.keeping.retained.entries if instance.keeping is not None else 0
        return self._posted() + kept + (appended.calls - appended.failed if appended is not None else 0)

    def _count_topics(self) -> int | None:
        keyspace = self._keyspace
        began = perf_counter()
        try:
            commit = keyspace.last_commit()
            if commit != self._topics_commit and began >= self._count_again_at:
                self._topics = sum(type == TOPIC for _, type in keyspace.walk(event.DATABASE))
                self._topics_commit = commit
                self._count_again_at = began + (perf_counter() - began) / COUNTING_SHARE
        except StoreError as failure:
            log.warning("Topics can't be counted: %s", failure)
            self._topics = self._topics_commit = None
        return self._topics

    # -- one each second

    async def _stream(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        peer = asyncio.ensure_future(gone(receive))
        woken = asyncio.Event()
        peer.add_done_callback(lambda _: woken.set())
        self._pages.add(woken)
        try:
            self._begin()
            await more(send, sse.retry(self._instance.settings["http-retry"]))
            last = 0
            while not (self._is_over or peer.done()):
                woken.clear()
                news = list(self._since(last))
                if news:
                    last = news[-1][0]
                    await more(send, b"".join([text for _, text in news]))
                else:
                    await woken.wait()
            await send({"type": "http.response.body", "body": b""})
        finally:
            peer.cancel()
            self._pages.discard(woken)
            if not self._pages:
                self._rest()

    def _since(self, number: int) -> Iterator[tuple[int, bytes]]:
        return (each for each in self._kept if each[0] > number)

    def _begin(self) -> None:
        if self._timer is None and not self._is_over:
            self._take(0.0)
            self._look_later(asyncio.get_running_loop())

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._kept.clear()

    def _look_later(self, loop: asyncio.AbstractEventLoop, looks: int = 1) -> None:
        wanted = loop.time() + LOOK_SECONDS

        def look() -> None:
            self._lag = max(self._lag, loop.time() - wanted)
            is_due = looks * LOOK_SECONDS >= SECONDS
            self._look_later(loop, 1 if is_due else looks + 1)
            if is_due:
                lag, self._lag = self._lag, 0.0
                self._take(lag)

        self._timer = loop.call_at(wanted, look)

    def _take(self, lag_seconds: float) -> None:
        """The longest lag within the second counts: a mean hides what a client has felt."""
        self._number += 1
        self._kept.append((self._number, sse.event(b"", b"", json.dumps(self.sample(lag_seconds)).encode())))
        for woken in self._pages:
            woken.set()
