"""`/metrics`: what INFO knows, as Prometheus reads it, and two histograms that only a running gateway keeps.

Counts are read when somebody asks, and cost nothing until then. What belongs to the whole store (backlogs, subscribers)
is told by every server that shares it: take the maximum over servers, not the sum.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from rlite_pubsub.commands.info_subscribers import subscribers
from rlite_pubsub.commands.info_topics import topics
from rlite_pubsub.delivery.group import all_groups
from rlite_pubsub.delivery.kinds import KINDS
from rlite_pubsub.delivery.topic import Topic
from rlite_pubsub.gateway import event
from rlite_pubsub.storage.key_records import TOPIC

if TYPE_CHECKING:
    from rlite_pubsub.commands.instance import Instance
    from rlite_pubsub.delivery.keyspace import Keyspace
    from rlite_pubsub.gateway.posting import Posting
    from rlite_pubsub.gateway.streams import Streams

MAX_TOPICS = 1000
"""The first so many, by name, have lines of their own."""
LAG_SECONDS = 0.1
_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Told(NamedTuple):
    """A field of INFO, as a metric."""

    name: str
    meaning: str
    is_counter: bool = False
    per_unit: float = 1.0


_OF_INFO = {
    "subscribed_sessions": Told("subscribed_sessions", "Sessions of this server that hold any name."),
    "messages_published": Told("messages_published", "Messages accepted by this server.", True),
    "messages_delivered": Told("messages_delivered", "Copies handed to this server's sessions.", True),
    "spilled_sessions": Told("spilled_sessions", "Sessions of this server with messages on disk."),
    "spilled_bytes": Told("spilled_bytes", "Bytes on disk for slow sessions of this server."),
    "slow_subscribers_disconnected": Told("slow_subscribers_disconnected", "Disconnected at their limit.", True),
    "gaps": Told("gaps", "Gap messages sent: law 8.", True),
    "dropped_messages": Told("dropped_messages", "Messages that limits forced away.", True),
    "durable_subscribers_attached": Told("durable_subscribers_attached", "Durable subscribers served here."),
    "durable_subscribers_expired": Told("durable_subscribers_expired", "Durable subscribers that expired.", True),
    "subscribers_server": Told("store_subscribers_server", "Servers that share the store."),
    "subscribers_embedded": Told("store_subscribers_embedded", "Embedded programs that share the store."),
    "subscribers_durable": Told("store_subscribers_durable", "Durable subscribers of the store."),
    "subscribers_durable_away": Told("store_subscribers_durable_away", "Durable subscribers that are away."),
    "processes_dead_unreaped": Told("store_processes_dead", "Processes that died and are not reaped yet."),
    "backlog_messages": Told("store_backlog_messages", "Messages that wait in mailboxes of the store."),
    "backlog_bytes": Told("store_backlog_bytes", "Bytes that wait in mailboxes of the store."),
    "oldest_age_ms": Told("store_oldest_age_seconds", "Age of the oldest message that waits.", per_unit=0.001),
    "retention_removed_entries": Told("retention_removed_entries", "Entries that retention has removed.", True),
    "retention_removed_bytes": Told("retention_removed_bytes", "Bytes that retention has removed.", True),
    "retained_messages": Told("retained_messages", "Messages to retained channels that were kept.", True),
}


class Metrics:
    """One server's."""

    def __init__(self, instance: Instance, keyspace: Keyspace, posting: Posting, streams: Streams) -> None:
        self._instance = instance
        self._keyspace = keyspace
        self._posting = posting
        self._streams = streams
        self._began = 0.0
        self._lag_timer: asyncio.TimerHandle | None = None
        registry = self._registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._commits = Histogram(
            "rlite_commit_seconds", "The end of a turn that writes.", buckets=_SECONDS, registry=registry
        )
        self._lags = Histogram(
            "rlite_loop_lag_seconds", "How late the event loop is.", buckets=_SECONDS, registry=registry
        )
        registry.register(self)

    # -- what is measured

    def begin_commit(self) -> None:
        """A turn ends."""
        self._began = perf_counter()

    def end_commit(self) -> None:
        """It had something to commit, and that is done."""
        self._commits.observe(perf_counter() - self._began)

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Measure the loop's lag from now on."""
        wanted = loop.time() + LAG_SECONDS

        def look() -> None:
            self._lags.observe(max(0.0, loop.time() - wanted))
            self.watch(loop)

        self._lag_timer = loop.call_at(wanted, look)

    def close(self) -> None:
        """Measure nothing more."""
        if self._lag_timer is not None:
            self._lag_timer.cancel()

    # -- what is told

    def text(self) -> bytes:
        """All of it."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing is read before somebody asks."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Called by the registry."""
        instance = self._instance
        stats = instance.stats
        yield _counter("commands", "Commands executed.", stats.commands_processed)
        yield _counter("errors", "Error replies.", stats.total_errors)
        yield _counter("input_bytes", "Bytes read from Redis clients.", stats.input_bytes)
        yield _counter("output_bytes", "Bytes written to Redis clients.", stats.output_bytes)
        yield _gauge("sessions", "Sessions of this server.", len(instance.sessions))
        held = GaugeMetricFamily("rlite_subscriptions", "Names held by this server's sessions.", labels=["kind"])
        for kind in KINDS:
            held.add_metric([kind.database], sum(map(len, instance.hub.holders[kind.index].values())))
        yield held
        for fields in (subscribers(instance), topics(instance)):
            for field, value in fields:
                told = _OF_INFO.get(field)
                if told is not None and isinstance(value, int):
                    make = _counter if told.is_counter else _gauge
                    yield make(told.name, told.meaning, value * told.per_unit)
        yield _counter("http_posted", "Entries posted over HTTP.", self._posting.posted)
        yield _counter("http_posted_bytes", "Bytes of entries posted over HTTP.", self._posting.posted_bytes)
        yield _gauge("http_event_streams", "Open streams of events.", self._streams.open)
        yield _counter("http_event_stream_bytes", "Bytes sent to streams of events.", self._streams.sent_bytes)
        yield _counter("http_event_gaps", "Gap events sent.", self._streams.gaps)
        yield from self._topics()

    def _topics(self) -> Iterator[Metric]:
        keyspace = self._keyspace
        names = sorted(name for name, type in keyspace.walk(event.DATABASE) if type == TOPIC)[:MAX_TOPICS]
        entries = GaugeMetricFamily("rlite_topic_entries", "Entries of a topic of database 0.", labels=["topic"])
        size = GaugeMetricFamily("rlite_topic_bytes", "Bytes of these.", labels=["topic"])
        oldest = GaugeMetricFamily("rlite_topic_oldest_seconds", "Age of the first of these.", labels=["topic"])
        of_group = ["topic", "group"]
        lag = GaugeMetricFamily("rlite_group_lag", "Entries that a group has not been given.", labels=of_group)
        pending = GaugeMetricFamily("rlite_group_pending", "Entries in flight.", labels=of_group)
        now_ms = keyspace.clock_ms()
        for name in names:
            topic = keyspace.find(event.DATABASE, name)
            if not isinstance(topic, Topic):
                continue
            label = event.text_of(name)
            entries.add_metric([label], topic.length)
            size.add_metric([label], topic.size_bytes)
            if topic.length:
                oldest.add_metric([label], max(0, now_ms - topic.first_id[0]) / 1000)
            for group in all_groups(topic) if topic.group_count else ():
                labels = [label, event.text_of(group.name)]
                pending.add_metric(labels, group.pending_count)
                if group.lag is not None:
                    lag.add_metric(labels, group.lag)
        yield from (entries, size, oldest, lag, pending)


def _counter(name: str, meaning: str, value: float) -> Metric:
    return CounterMetricFamily(f"rlite_{name}", meaning, value)


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(f"rlite_{name}", meaning, value)
