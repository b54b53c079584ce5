"""`/metrics`: what INFO knows, as Prometheus reads it, and histograms that only a running gateway keeps.

Counts are read when somebody asks, and cost nothing until then. What belongs to the whole store (backlogs, subscribers,
topics) is reported by every server that shares it: take the maximum over servers, not the sum.

Promises: there are at most this many lines, however many names clients make up, and the number of those without one is
shown; if the
store can't be read, the rest is shown all the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from rlite_pubsub.engine.stats.info_subscribers import totals
from rlite_pubsub.engine.stats.warnings import CODES, NOTE
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.link_metrics import of_links
from rlite_pubsub.groups.group import all_groups
from rlite_pubsub.keyspace.topic.cold_shelf import if_here
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.pubsub.kinds import KINDS
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.keys.key_records import TOPIC

if TYPE_CHECKING:
    from rlite_pubsub.gateway.events.posting import Posting
    from rlite_pubsub.gateway.figures import ServerFigures
    from rlite_pubsub.gateway.streams.streams import Streams
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.pubsub.census import CensusEntry

log = logging.getLogger("rlite_pubsub")

LAG_SECONDS = 0.1
MAX_TOPICS = 250
MAX_GROUPS = 250
MAX_DURABLES = 250
"""A line costs the event loop 6 us whenever somebody asks, and everybody else waits for as long."""
_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_SYNC_SECONDS = (*_SECONDS[3:], 5.0, 10.0)


class Exposed(NamedTuple):
    """A field of INFO, as a metric."""

    name: str
    meaning: str
    is_counter: bool = False
    per_unit: float = 1.0


_OF_INFO = {
    "subscribed_sessions": Exposed("subscribed_sessions", "Sessions of this server with subscriptions."),
    "messages_published": Exposed("messages_published", "Messages accepted by this server.", True),
    "messages_delivered": Exposed("messages_delivered", "Copies handed to this server's sessions.", True),
    "spilled_sessions": Exposed("spilled_sessions", "Sessions of this server with messages on disk."),
    "spilled_bytes": Exposed("spilled_bytes", "Bytes on disk for slow sessions of this server."),
    "slow_subscribers_disconnected": Exposed("slow_subscribers_disconnected", "Disconnected at their limit.", True),
    "gaps": Exposed("gaps", "Gap messages sent, which tell subscribers of dropped messages.", True),
    "dropped_messages": Exposed("dropped_messages", "Messages dropped at a limit.", True),
    "mailboxes_cut_off": Exposed("mailboxes_cut_off", "Processes cut off for not reading their mailboxes.", True),
    "durable_subscribers_attached": Exposed("durable_subscribers_attached", "Durable subscribers served here."),
    "durable_subscribers_expired": Exposed("durable_subscribers_expired", "Durable subscribers that expired.", True),
    "writer_waiting_clients": Exposed("writer_waiting_clients", "Clients that wait for a process which is writing."),
    "writer_waits": Exposed("writer_waits", "Requests that had to wait for it.", True),
    "writer_refusals": Exposed("writer_refusals", "Requests refused because it took too long.", True),
    "subscribers_reaped": Exposed(
        "subscribers_reaped", "Dead subscribers that this server has cleaned up after.", True
    ),
    "subscribers_durable_away": Exposed("store_subscribers_away", "Durable subscribers that are away."),
    "processes_dead_unreaped": Exposed("store_processes_dead", "Processes that died and are not reaped yet."),
    "backlog_messages": Exposed("store_backlog_messages", "Messages that wait in mailboxes of the store."),
    "backlog_bytes": Exposed("store_backlog_bytes", "Bytes that wait in mailboxes of the store."),
    "backlog_spilled_bytes": Exposed("store_spilled_bytes", "Bytes on disk for slow sessions of any server."),
    "oldest_age_ms": Exposed("store_oldest_age_seconds", "Age of the oldest message that waits.", per_unit=0.001),
    "data_used_bytes": Exposed("store_used_bytes", "Largest extent of data.mdb so far."),
    "data_live_bytes": Exposed("store_live_bytes", "Bytes of that in use."),
    "data_free_bytes": Exposed("store_free_bytes", "Free pages of it, which are reused before the file grows."),
    "data_held_bytes": Exposed("store_held_bytes", "Free pages that a reader or a checkpoint still holds."),
    "data_disk_bytes": Exposed("store_disk_bytes", "Disk space of data.mdb."),
    "live_used_bytes": Exposed("store_messages_used_bytes", "Largest extent of live.mdb so far."),
    "live_live_bytes": Exposed("store_messages_live_bytes", "Bytes of that in use."),
    "store_full": Exposed("store_full", "Whether the store is full."),
    "old_readers": Exposed("store_old_readers", "Readers that have held pages for more than ten seconds."),
    "oldest_reader_age_ms": Exposed(
        "store_oldest_reader_seconds", "For how long the oldest of them has done so.", per_unit=0.001
    ),
    "backup_lag_ms": Exposed(
        "backup_lag_seconds",
        "For how long something has been committed that no backup has; below 0: none has.",
        per_unit=0.001,
    ),
    "backup_as_of_ms": Exposed("backup_as_of_seconds", "All before this time can be restored.", per_unit=0.001),
    "backup_last_piece_ms": Exposed("backup_last_piece_seconds", "When a piece was written last.", per_unit=0.001),
    "backup_last_snapshot_ms": Exposed("backup_last_snapshot_seconds", "When one was made last.", per_unit=0.001),
    "backup_pieces": Exposed("backup_pieces", "Changes that the backup process has written.", True),
    "backup_snapshots": Exposed("backup_snapshots", "Snapshots that the backup process has made.", True),
    "backup_bytes": Exposed("backup_bytes", "Bytes that the backup process has written.", True),
    "backup_waiting_bytes": Exposed("backup_waiting_bytes", "Bytes that the target of the backup has not taken yet."),
    "backup_failures": Exposed("backup_failures", "Failures of the backup process.", True),
    "retention_removed_entries": Exposed("retention_removed_entries", "Entries that retention has removed.", True),
    "retention_removed_bytes": Exposed("retention_removed_bytes", "Bytes that retention has removed.", True),
    "retained_messages": Exposed("retained_messages", "Messages to retained channels that were kept.", True),
}


class Metrics:
    """The metrics of one server."""

    def __init__(
        self,
        figures: ServerFigures,
        keyspace: Keyspace,
        posting: Posting,
        streams: Streams,
        durability: Callable[[], bytes],
    ) -> None:
        self._figures = figures
        self._keyspace = keyspace
        self._posting = posting
        self._streams = streams
        self._durability = durability
        self._lag_timer: asyncio.TimerHandle | None = None
        self._worst_lag = 0.0
        registry = self._registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._commits = Histogram(
            "rlite_commit_seconds", "The end of a turn that writes.", buckets=_SECONDS, registry=registry
        )
        self._syncs = Histogram(
            "rlite_sync_seconds",
            "An fsync of what was committed: what acknowledgements wait for under always, in the background otherwise.",
            ["durability"],
            buckets=_SYNC_SECONDS,
            registry=registry,
        )
        self._lags = Histogram(
            "rlite_loop_lag_seconds", "How late the event loop is.", buckets=_SECONDS, registry=registry
        )
        registry.register(self)

    # -- what is measured

    def committed(self, seconds: float) -> None:
        """Observe how long a commit of something to acknowledge took."""
        self._commits.observe(seconds)

    def synced(self, seconds: float) -> None:
        """Observe how long a sync took that succeeded. Called in its thread."""
        self._syncs.labels(self._durability().decode()).observe(seconds)

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Measure the loop's lag from now on."""
        wanted = loop.time() + LAG_SECONDS

        def measure() -> None:
            lag = max(0.0, loop.time() - wanted)
            self._worst_lag = max(self._worst_lag, lag)
            self._lags.observe(lag)
            self.watch(loop)

        self._lag_timer = loop.call_at(wanted, measure)

    def take_worst_lag(self) -> float:
        """Return the longest lag, in seconds, since this was asked last."""
        worst, self._worst_lag = self._worst_lag, 0.0
        return worst

    def close(self) -> None:
        """Measure nothing more."""
        if self._lag_timer is not None:
            self._lag_timer.cancel()

    # -- the figures

    def text(self) -> bytes:
        """Return all of it."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Describe a metric: nothing is read before somebody asks."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Called by the registry."""
        yield from self._of_this_server()
        found: list[Metric] = []
        is_up = True
        try:
            found += (*self._of_the_store(), *of_topics(self._keyspace))
        except StoreError as failure:
            is_up = False
            log.warning("Metrics lack the store's figures, since it can't be read: %s", failure)
        yield _gauge("store_up", "Whether the store can be read.", is_up)
        yield from found

    def _of_this_server(self) -> Iterator[Metric]:
        figures = self._figures
        stats = figures.stats
        yield _counter("commands", "Commands executed.", stats.commands_processed)
        yield _counter("errors", "Error replies.", stats.total_errors)
        yield _counter("input_bytes", "Bytes read from Redis clients.", stats.input_bytes)
        yield _counter("output_bytes", "Bytes written to Redis clients.", stats.outboxes.output_bytes)
        yield _counter("entries_added", "Entries added to topics by this server.", figures.entries_added)
        yield _counter("connections", "Connections of Redis clients.", stats.connections_received)
        yield from self._sessions()
        for field, value in figures.process_fields():
            yield from _told(field, value)
        yield _counter("http_posted", "Entries posted over HTTP.", self._posting.posted)
        yield _counter("http_posted_bytes", "Bytes of entries posted over HTTP.", self._posting.posted_bytes)
        yield _gauge("http_event_streams", "Open streams of events.", self._streams.open)
        yield _counter("http_event_stream_bytes", "Bytes sent to streams of events.", self._streams.sent_bytes)
        yield _counter("http_event_gaps", "Gap events sent.", self._streams.gaps)

    def _sessions(self) -> Iterator[Metric]:
        figures = self._figures
        yield _gauge("sessions", "Sessions of this server.", len(figures.sessions))
        yield _by_kind(
            "subscriptions",
            "Names held by this server's sessions.",
            {kind.database: sum(map(len, figures.hub.holders[kind.index].values())) for kind in KINDS},
        )
        holding = {kind.database: 0 for kind in KINDS} | {"topics": 0}
        for session in figures.sessions.values():
            if session.holds_names:
                for kind in KINDS:
                    holding[kind.database] += bool(session.names[kind.index])
                holding["topics"] += bool(session.follows)
        yield _by_kind("subscribers", "Sessions of this server that hold a name of a kind.", holding)

    def _of_the_store(self) -> Iterator[Metric]:
        figures = self._figures
        for field, value in figures.store_fields():
            yield from _told(field, value)
        codes = Counter(warning.code for warning in figures.warnings() if warning.severity != NOTE)
        family = GaugeMetricFamily("rlite_warnings", "Warnings, by what they are about.", labels=["code"])
        for code in CODES:
            family.add_metric([code], codes[code])
        yield family
        yield from of_links(figures.links())
        disk = figures.disk()
        if disk is not None:
            yield _gauge("store_filesystem_bytes", "Size of the file system of the store.", disk[0])
            yield _gauge("store_filesystem_free_bytes", "What is free of that.", disk[1])
        if figures.census is None:
            return
        entries = figures.census()
        for field, value in totals(entries, figures.now_ms):
            yield from _told(field, value)
        kinds = {"server": 0, "embedded": 0, "durable": 0} | Counter(entry.kind for entry in entries)
        yield _by_kind("store_subscribers", "Owners of mailboxes of the store.", kinds)
        yield from of_durables(entries, figures.now_ms)


def _told(field: str, value: object) -> Iterator[Metric]:
    told = _OF_INFO.get(field)
    if told is not None and isinstance(value, int):
        make = _counter if told.is_counter else _gauge
        yield make(told.name, told.meaning, value * told.per_unit)


def _by_kind(name: str, meaning: str, counts: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(f"rlite_{name}", meaning, labels=["kind"])
    for kind, count in counts.items():
        family.add_metric([kind], count)
    return family


def _counter(name: str, meaning: str, value: float) -> Metric:
    return CounterMetricFamily(f"rlite_{name}", meaning, value)


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(f"rlite_{name}", meaning, value)


# -- metrics whose labels are names that clients make up: the first this many of each, by name, have lines of their own


class NamedLines:
    """Families that have the same labels, a line each for the same names."""

    def __init__(self, what: str, labels: Sequence[str], most: int, **meanings: str) -> None:
        self._what = what
        self._left = most
        self._seen: set[tuple[str, ...]] = set()
        self.untold = 0
        self.families = {
            name: GaugeMetricFamily(f"rlite_{what}_{name}", meaning, labels=labels)
            for name, meaning in meanings.items()
        }

    def add(self, names: Sequence[bytes], **values: float | None) -> bool:
        """Add a line; return False if there is none left, or if another line's names look the same as text."""
        labels = tuple(map(event.text_of, names))
        if not self._left or labels in self._seen:
            self.untold += 1
            return False
        self._left -= 1
        self._seen.add(labels)
        for name, value in values.items():
            if value is not None:
                self.families[name].add_metric(labels, value)
        return True

    def collect(self) -> Iterator[Metric]:
        """Yield all of them."""
        yield from self.families.values()
        about = f"How many have no rlite_{self._what}_* of their own."
        yield GaugeMetricFamily(f"rlite_{self._what}_untold", about, self.untold)


def of_topics(keyspace: Keyspace) -> Iterator[Metric]:
    """Topics of database 0, and their groups. Raises StoreError."""
    topics = NamedLines(
        "topic",
        ["topic"],
        MAX_TOPICS,
        entries="Entries of a topic of database 0.",
        bytes="Bytes of these.",
        oldest_seconds="Age of the first of these.",
    )
    groups = NamedLines(
        "group",
        ["topic", "group"],
        MAX_GROUPS,
        lag="Entries that a group has not been given.",
        pending="Entries that its consumers have not acknowledged.",
    )
    now_ms = keyspace.clock_ms()
    names = sorted(name for name, type in keyspace.databases.walk(event.DATABASE) if type == TOPIC)
    for name in names[:MAX_TOPICS]:
        topic = keyspace.find(event.DATABASE, name)
        if isinstance(topic, Topic):
            first = if_here(topic.keyspace.cold.shelf, lambda topic=topic: topic.first_id)  # type: ignore[misc]
            oldest = max(0, now_ms - first[0]) / 1000 if topic.length and first is not None else None
            if topics.add([name], entries=topic.length, bytes=topic.size_bytes, oldest_seconds=oldest):
                _add_groups(groups, topic)
    topics.untold += max(0, len(names) - MAX_TOPICS)
    yield from topics.collect()
    yield from groups.collect()


def of_durables(entries: Sequence[CensusEntry], now_ms: int) -> Iterator[Metric]:
    """Yield how much waits for each durable subscriber."""
    lines = NamedLines(
        "durable_subscriber",
        ["subscriber"],
        MAX_DURABLES,
        backlog_messages="Messages that wait for a durable subscriber.",
        backlog_bytes="Bytes of these.",
        oldest_age_seconds="Age of the oldest of these.",
    )
    for entry in entries:
        if entry.durable is not None:
            backlog = entry.waiting.backlog
            age_s = max(0, entry.waiting.age_ms(now_ms)) / 1000
            lines.add(
                [entry.durable.name],
                backlog_messages=backlog.messages,
                backlog_bytes=backlog.bytes,
                oldest_age_seconds=age_s,
            )
    yield from lines.collect()


def _add_groups(groups: NamedLines, topic: Topic) -> None:
    for group in all_groups(topic) if topic.group_count else ():
        lag = if_here(topic.keyspace.cold.shelf, lambda group=group: group.lag)  # type: ignore[misc]
        groups.add([topic.name, group.name], lag=lag, pending=group.pending_count)
