"""Metrics whose labels are names that clients make up: topics, groups, durable subscribers.

Promise: the first so many of each, by name, have lines of their own; how many have none is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily, Metric

from rlite_pubsub.gateway.events import event
from rlite_pubsub.groups.group import all_groups
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.pubsub.census import CensusEntry
from rlite_pubsub.storage.keys.key_records import TOPIC

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.keyspace import Keyspace

MAX_TOPICS = 250
MAX_GROUPS = 250
MAX_DURABLES = 250
"""A line costs the event loop 6 us whenever somebody asks, and everybody else waits for as long."""


class Lines:
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
        """False where there is no line left, or where another one's names look the same as text."""
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
        """All of them."""
        yield from self.families.values()
        about = f"Of these so many have no line of their own: rlite_{self._what}_*."
        yield GaugeMetricFamily(f"rlite_{self._what}_untold", about, self.untold)


def of_topics(keyspace: Keyspace) -> Iterator[Metric]:
    """Topics of database 0, and their groups. Raises StoreError."""
    topics = Lines(
        "topic",
        ["topic"],
        MAX_TOPICS,
        entries="Entries of a topic of database 0.",
        bytes="Bytes of these.",
        oldest_seconds="Age of the first of these.",
    )
    groups = Lines(
        "group",
        ["topic", "group"],
        MAX_GROUPS,
        lag="Entries that a group has not been given.",
        pending="Entries that its consumers have and have not acknowledged.",
    )
    now_ms = keyspace.clock_ms()
    names = sorted(name for name, type in keyspace.walk(event.DATABASE) if type == TOPIC)
    for name in names[:MAX_TOPICS]:
        topic = keyspace.find(event.DATABASE, name)
        if isinstance(topic, Topic):
            oldest = max(0, now_ms - topic.first_id[0]) / 1000 if topic.length else None
            if topics.add([name], entries=topic.length, bytes=topic.size_bytes, oldest_seconds=oldest):
                _add_groups(groups, topic)
    topics.untold += max(0, len(names) - MAX_TOPICS)
    yield from topics.collect()
    yield from groups.collect()


def of_durables(entries: Sequence[CensusEntry], now_ms: int) -> Iterator[Metric]:
    """What waits for each durable subscriber."""
    lines = Lines(
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


def _add_groups(groups: Lines, topic: Topic) -> None:
    for group in all_groups(topic) if topic.group_count else ():
        groups.add([topic.name, group.name], lag=group.lag, pending=group.pending_count)
