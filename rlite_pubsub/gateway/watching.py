"""What those who watch a server ask for: its probes, its metrics, and samples of what goes on, which the page draws.

Promise: what can't be read is null in a sample: nobody knows is not none. Counters count since the start or CONFIG
RESETSTAT, of this server. Backlogs are the whole store's.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST

from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.http import sse
from rlite_pubsub.gateway.http.operation import STREAM, Request, as_json, serves
from rlite_pubsub.gateway.http.request import JSON, answer, header
from rlite_pubsub.gateway.http.schema import SENT, TEXT, record
from rlite_pubsub.gateway.streams.streams import HEADERS, gone, more
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.keys.key_records import TOPIC
from rlite_pubsub.version import __version__

if TYPE_CHECKING:
    from rlite_pubsub.gateway.figures import ServerFigures
    from rlite_pubsub.gateway.metrics import Metrics
    from rlite_pubsub.keyspace.keyspace import Keyspace

log = logging.getLogger("rlite_pubsub")

KEPT = 120
"""Samples that a page is given when it comes."""
SECONDS = 1.0
MEASURE_SECONDS = 0.1
"""How often the loop's lag is measured, while there is a sampler."""
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
    "data_live_bytes": "storeLiveBytes",
    "data_free_bytes": "storeFreeBytes",
    "data_held_bytes": "storeHeldBytes",
    "data_disk_bytes": "storeDiskBytes",
    "old_readers": "oldReaders",
    "oldest_reader_age_ms": "oldestReaderAgeMs",
}
_STATUS = {"type": "object", "required": ["status"], "properties": {"status": TEXT, "detail": TEXT}}
_METRICS_HEADERS = [(b"content-type", CONTENT_TYPE_LATEST.encode()), (b"cache-control", b"no-store")]


class LiveSamples:
    """All open pages share one sampler, and where no page is open there is none.

    A stream begins with what the sampler has kept, so that a page that comes back has no hole, and goes on with each
    new sample once. A page that does not read holds nothing back and gets the samples that are still kept.
    """

    def __init__(
        self, figures: ServerFigures, keyspace: Keyspace, retry_ms: Callable[[], int], turn_soon: Callable[[], None]
    ) -> None:
        self._figures = figures
        self._keyspace = keyspace
        self._retry_ms = retry_ms
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

    def close(self) -> None:
        """Every stream ends."""
        self._is_over = True
        self._rest()
        for woken in self._pages:
            woken.set()

    # -- one sample

    def sample(self, lag_seconds: float) -> Sample:
        """What there is to know now."""
        figures = self._figures
        self._turn_soon()  # for what is read is read in a turn
        now_ms = figures.now_ms
        stats, holders = figures.stats, figures.hub.holders
        found: Sample = {
            "ms": now_ms,
            "version": __version__,
            "uptimeMs": max(0, now_ms - int(figures.started_at * 1000)),
            "commands": stats.commands_processed,
            "entriesPosted": figures.entries_added,
            "inputBytes": stats.input_bytes,
            "outputBytes": stats.outboxes.output_bytes,
            "sessions": len(figures.sessions),
            "channels": len(holders[CHANNELS.index]),
            "patterns": len(holders[PATTERNS.index]),
            "shards": len(holders[SHARDS.index]),
            "topics": self._count_topics(),
            "loopLagMs": round(lag_seconds * 1000, 2),
            "warnings": figures.warnings(),
        }
        found.update(dict.fromkeys(_OF_INFO.values()))
        for name, value in figures.subscriber_fields():
            if name in _OF_INFO and isinstance(value, int):
                found[_OF_INFO[name]] = value
        return found

    def _count_topics(self) -> int | None:
        keyspace = self._keyspace
        began = perf_counter()
        try:
            commit = keyspace.last_commit()
            if commit != self._topics_commit and began >= self._count_again_at:
                self._topics = sum(type == TOPIC for _, type in keyspace.databases.walk(event.DATABASE))
                self._topics_commit = commit
                self._count_again_at = began + (perf_counter() - began) / COUNTING_SHARE
        except StoreError as failure:
            log.warning("Topics can't be counted: %s", failure)
            self._topics = self._topics_commit = None
        return self._topics

    # -- one each second

    async def stream(self, request: Request) -> None:
        """Until the peer is gone, or the server goes."""
        send, receive = request.send, request.receive
        await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *request.headers]})
        peer = asyncio.ensure_future(gone(receive))
        woken = asyncio.Event()
        peer.add_done_callback(lambda _: woken.set())
        self._pages.add(woken)
        try:
            self._begin()
            await more(send, sse.retry(self._retry_ms()))
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
            self._measure_later(asyncio.get_running_loop())

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._kept.clear()

    def _measure_later(self, loop: asyncio.AbstractEventLoop, measured: int = 1) -> None:
        wanted = loop.time() + MEASURE_SECONDS

        def measure() -> None:
            self._lag = max(self._lag, loop.time() - wanted)
            is_due = measured * MEASURE_SECONDS >= SECONDS
            self._measure_later(loop, 1 if is_due else measured + 1)
            if is_due:
                lag, self._lag = self._lag, 0.0
                self._take(lag)

        self._timer = loop.call_at(wanted, measure)

    def _take(self, lag_seconds: float) -> None:
        """The longest lag within the second counts: a mean hides what a client has felt."""
        self._number += 1
        self._kept.append((self._number, sse.event(b"", b"", json.dumps(self.sample(lag_seconds)).encode())))
        for woken in self._pages:
            woken.set()


class WatchingResource:
    """What those who watch a server ask for."""

    def __init__(
        self,
        write_failure: Callable[[], Exception | None],
        last_commit: Callable[[], int],
        metrics: Metrics,
        samples: LiveSamples,
        turn_soon: Callable[[], None],
    ) -> None:
        """`write_failure` tells why the last turn that wrote could not be committed, or the last sync not reach the
        disk. `last_commit` reads the store, and raises StoreError."""
        self._write_failure = write_failure
        self._last_commit = last_commit
        self._all_metrics = metrics
        self._samples = samples
        self._turn_soon = turn_soon

    @serves(
        "GET",
        "/healthz",
        "Whether the last write could be committed, and the last sync reach the disk",
        tag="watching",
        answers=as_json(_STATUS),
        failing=as_json(_STATUS),
        is_open=True,
    )
    async def _healthz(self, request: Request) -> None:
        failure = self._write_failure()
        if failure is not None:
            await _say_status(request, 503, {"status": "failing", "detail": str(failure)})
        else:
            await _say_status(request, 200, {"status": "ok"})

    @serves(
        "GET",
        "/readyz",
        "Whether the store can be read",
        tag="watching",
        answers=as_json(_STATUS),
        failing=as_json(_STATUS),
        is_open=True,
    )
    async def _readyz(self, request: Request) -> None:
        try:
            self._last_commit()
        except StoreError as failure:
            await _say_status(request, 503, {"status": "unready", "detail": str(failure)})
        else:
            await _say_status(request, 200, {"status": "ready"})

    @serves("GET", "/metrics", "Metrics, as Prometheus reads them", tag="watching", answers={"text/plain": TEXT})
    async def _metrics(self, request: Request) -> None:
        self._turn_soon()  # for what is read is read in a turn
        headers = [*_METRICS_HEADERS, *request.headers]
        await answer(request.send, 200, headers, self._all_metrics.text())

    @serves(
        "GET",
        "/api/stats",
        "A sample of what goes on",
        about="With `Accept: text/event-stream` a stream of one sample a second, which begins with the last of them.",
        tag="watching",
        answers={"application/json": record(ms={"type": "integer"}), STREAM: SENT},
    )
    async def _stats(self, request: Request) -> object:
        if STREAM.encode() in (header(request.scope, b"accept") or b"") and not request.is_head:
            await self._samples.stream(request)
            return None
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        await asyncio.sleep(0)
        return self._samples.sample(loop.time() - asked_at)


async def _say_status(request: Request, status: int, said: Mapping[str, str]) -> None:
    body = json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()
    await answer(request.send, status, [JSON, *request.headers], body)
