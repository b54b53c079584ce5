"""Monitoring: the probes of a server, its metrics, and the samples that the page draws.

Promise: what can't be read is null in a sample: nobody knows is not none. Counters count since the start or CONFIG
RESETSTAT, of this server. Backlogs are the whole store's.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST

from rlite_pubsub.engine.stats.process import private_bytes
from rlite_pubsub.engine.stats.warnings import ADVICE, CODES
from rlite_pubsub.gateway.budget import UNWATCHED, WATCHED, Budgeted
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.history import SECONDS as HISTORY_SECONDS
from rlite_pubsub.gateway.http import sse
from rlite_pubsub.gateway.http.operation import STREAM, Request, as_json, serves
from rlite_pubsub.gateway.http.request import JSON, answer, header
from rlite_pubsub.gateway.http.schema import NAME, NUMBER, SENT, TEXT, array, record
from rlite_pubsub.gateway.streams.streams import HEADERS, gone, more
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS, Kind
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.keys.key_records import TOPIC
from rlite_pubsub.version import __version__

if TYPE_CHECKING:
    from rlite_pubsub.engine.stats.warnings import Warning
    from rlite_pubsub.gateway.figures import ServerFigures
    from rlite_pubsub.gateway.history import History
    from rlite_pubsub.gateway.metrics import Metrics
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.storage.commons.link_state import LinkState

log = logging.getLogger("rlite_pubsub")

KEPT = 120
"""Samples that a page is given when it comes."""
SECONDS = 1.0
MEASURE_SECONDS = 0.1
"""How often the loop's lag is measured, while there is a sampler."""

Sample = dict[str, object]

_OF_INFO = {
    "messages_published": "messages_published",
    "messages_delivered": "messages_delivered",
    "gaps": "gaps",
    "dropped_messages": "dropped_messages",
    "subscribed_sessions": "subscribed_sessions",
    "spilled_sessions": "spilled_sessions",
    "spilled_bytes": "spilled_bytes",
    "subscribers": "subscribers",
    "backlog_messages": "backlog_messages",
    "backlog_bytes": "backlog_bytes",
    "oldest_age_ms": "oldest_age_ms",
    "data_live_bytes": "store_live_bytes",
    "data_free_bytes": "store_free_bytes",
    "data_held_bytes": "store_held_bytes",
    "store_disk_bytes": "store_disk_bytes",
    "old_readers": "old_readers",
    "oldest_reader_age_ms": "oldest_reader_age_ms",
}
_STATUS = {"type": "object", "required": ["status"], "properties": {"status": TEXT, "detail": TEXT}}
_WARNING = record(
    code={"type": "string", "enum": list(CODES)},
    severity={"type": "string", "enum": ["critical", "warning", "note"]},
    subject=array(NAME),
    text=TEXT,
    meaning=TEXT,
    advice=TEXT,
)
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
        self._topics_count: int | None = None
        self._topics_commit: int | None = None  # at which they were counted
        self._topics = Budgeted(self._count_topics)
        self._names = {kind: Budgeted(partial(self._count_names, kind)) for kind in (CHANNELS, PATTERNS, SHARDS)}
        self._fields = Budgeted(self._of_info)
        self._warnings = Budgeted(figures.warnings)
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=KEPT)
        self._number = 0
        self._pages: set[asyncio.Event] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._lag = 0.0
        self._is_over = False

    def close(self) -> None:
        """End every stream."""
        self._is_over = True
        self._rest()
        for woken in self._pages:
            woken.set()

    # -- one sample

    def sample(self, lag_seconds: float) -> Sample:
        """Return a sample of the present, for somebody who is watching."""
        found = {**self._sampled(lag_seconds, WATCHED), **self._of_info()}
        found["connections"] = self._figures.connections(True)
        found["version"] = __version__
        found["warnings"] = [told_warning(each) for each in self._warnings()]
        found["links"] = [told_link(each) for each in self._figures.links()]
        return found

    def unwatched(self, lag_seconds: float) -> Sample:
        """Return what is known without asking other processes, or looking for long; for later."""
        found = {**self._sampled(lag_seconds, UNWATCHED), **self._fields(UNWATCHED)}
        found["connections"] = self._figures.connections(False)
        return found

    def _sampled(self, lag_seconds: float, share: float) -> Sample:
        figures = self._figures
        self._turn_soon()  # for what is read is read in a turn
        now_ms = figures.now_ms
        stats, disk = figures.stats, figures.disk()
        return {
            "ms": now_ms,
            "uptime_ms": max(0, now_ms - int(figures.started_at * 1000)),
            "commands": stats.commands_processed,
            "entries_posted": figures.entries_added,
            "input_bytes": stats.input_bytes,
            "output_bytes": stats.outboxes.output_bytes,
            "sessions": len(figures.sessions),
            "channels": self._names[CHANNELS](share)[0],
            "patterns": self._names[PATTERNS](share)[0],
            "shards": self._names[SHARDS](share)[0],
            "topics": self._topics(share)[0],
            "memory_bytes": private_bytes(),
            "disk_bytes": disk[0] if disk is not None else None,
            "disk_free_bytes": disk[1] if disk is not None else None,
            "loop_lag_ms": round(lag_seconds * 1000, 2),
        }

    def _of_info(self) -> Sample:
        found: Sample = dict.fromkeys(_OF_INFO.values())
        for name, value in self._figures.subscriber_fields():
            if name in _OF_INFO and isinstance(value, int):
                found[_OF_INFO[name]] = value
        return found

    def _count_names(self, kind: Kind) -> tuple[int | None]:
        """Count names over all processes, as the lists do."""
        hub = self._figures.hub
        if hub.neighbours is None or not hub.neighbours.any:
            return (len(hub.holders[kind.index]),)
        try:
            return (sum(1 for _ in hub.held_everywhere(kind)),)
        except StoreError:
            return (None,)

    def _count_topics(self) -> tuple[int | None]:
        keyspace = self._keyspace
        try:
            commit = keyspace.last_commit()
            if commit != self._topics_commit:
                self._topics_count = sum(type == TOPIC for _, type in keyspace.databases.walk(event.DATABASE))
                self._topics_commit = commit
        except StoreError as failure:
            log.warning("Topics can't be counted: %s", failure)
            self._topics_count = self._topics_commit = None
        return (self._topics_count,)

    # -- one each second

    async def stream(self, request: Request) -> None:
        """Send samples until the peer is gone, or the server stops."""
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


def told_warning(warning: Warning) -> dict[str, object]:
    """Return a warning as JSON."""
    return {
        "code": warning.code,
        "severity": warning.severity,
        "subject": [event.text_of(part) for part in warning.subject],
        "text": warning.text,
        "meaning": CODES[warning.code],
        "advice": ADVICE[warning.code],
    }


def told_link(link: LinkState) -> dict[str, object]:
    """Return a link as JSON, without its topics: LINK INFO has them."""
    return {field: value for field, value in vars(link).items() if field != "topics"}


class WatchingResource:
    """Probes, metrics and samples."""

    def __init__(
        self,
        write_failure: Callable[[], Exception | None],
        last_commit: Callable[[], int],
        metrics: Metrics,
        samples: LiveSamples,
        history: History,
        warnings: Callable[[], list[Warning]],
        turn_soon: Callable[[], None],
    ) -> None:
        """`write_failure` tells why the last turn that wrote could not be committed, or the last sync not reach the
        disk. `last_commit` reads the store, and raises StoreError."""
        self._write_failure = write_failure
        self._last_commit = last_commit
        self._all_metrics = metrics
        self._samples = samples
        self._history = history
        self._warnings = warnings
        self._turn_soon = turn_soon

    @serves(
        "GET",
        "/healthz",
        "Whether the last write was committed and the last sync reached the disk",
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
        "Readiness: whether the store can be read",
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

    @serves("GET", "/metrics", "Metrics for Prometheus", tag="watching", answers={"text/plain": TEXT})
    async def _metrics(self, request: Request) -> None:
        self._turn_soon()  # for what is read is read in a turn
        headers = [*_METRICS_HEADERS, *request.headers]
        await answer(request.send, 200, headers, self._all_metrics.text())

    @serves(
        "GET",
        "/api/stats",
        "The current figures",
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

    @serves(
        "GET",
        "/api/stats/history",
        "Samples of the last hour",
        about="One each `interval_ms`: for each field a list, the oldest first, with null where it was not known.",
        tag="watching",
        answers=as_json(record(interval_ms=NUMBER, samples={"type": "object", "additionalProperties": array({})})),
    )
    async def _stats_history(self, request: Request) -> object:
        return {"interval_ms": int(HISTORY_SECONDS * 1000), "samples": self._history.told()}

    @serves(
        "GET",
        "/api/warnings",
        "What is wrong",
        about="By the thresholds of the directives `warn-...`. `subject` is what a warning is about: a subscriber, a "
        "topic and its group, a file and a process, a connection's id and name. What has happened (a subscriber that "
        "was cut off, a full disk, dead letters) stays for an hour. A `note` is nothing wrong, such as a restart.",
        tag="watching",
        answers=as_json(record(warnings=array(_WARNING))),
    )
    async def _list_warnings(self, request: Request) -> object:
        self._turn_soon()
        return {"warnings": [told_warning(each) for each in self._warnings()]}


async def _say_status(request: Request, status: int, said: Mapping[str, str]) -> None:
    body = json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()
    await answer(request.send, status, [JSON, *request.headers], body)
