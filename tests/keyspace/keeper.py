"""One process's keys with their retention, on a store of their own or a shared one, and a clock that is set."""

from __future__ import annotations

from pathlib import Path

from engines import open_data

from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.keyspace.topic.retained import Retained
from rlite_pubsub.keyspace.topic.rules import Rules
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.topics import entry_ids, topic_settings
from rlite_pubsub.storage.topics.entry_ids import Id
from rlite_pubsub.storage.topics.topic_settings import NOTHING_SAID, RetentionLimits, Rule, TopicSettings

START_MS = 1_700_000_000_000


class Clock:
    """Stands still until it is set."""

    def __init__(self, ms: int = START_MS) -> None:
        self.ms = ms

    def __call__(self) -> int:
        return self.ms


class Keeper:
    """A second one `beside` the first has the same store and clock, as another process has."""

    def __init__(self, folder: Path, beside: Keeper | None = None) -> None:
        self.clock = beside.clock if beside is not None else Clock()
        self.data = (
            beside.data if beside is not None else open_data(folder / "data.mdb", 1 << 30)
        )
        self.rules = Rules(self.data)
        self.rules.refresh()
        self.keyspace = Keyspace(self.data, self.clock, rules=self.rules)
        assert self.keyspace.stored.retention is not None
        self.retention = self.keyspace.stored.retention
        self.retained = Retained(self.keyspace)

    def end_turn(self) -> None:
        failure = self.keyspace.end_turn()
        assert failure is None, failure

    def topic(self, name: bytes = b"t", **limits: int) -> Topic:
        """Make a topic, with limits of its own where these say any."""
        topic = self.keyspace.create_topic(0, name)
        if limits:
            self.retention.set_own(topic, NOTHING_SAID._replace(**limits))
        self.end_turn()
        return self.to_change(name)

    def to_change(self, name: bytes = b"t") -> Topic:
        topic = self.keyspace.for_change(0, name)
        assert isinstance(topic, Topic)
        return topic

    def append(self, *ids: Id, name: bytes = b"t", payload: bytes = b"x") -> None:
        """Entries of these ids, in one turn."""
        topic = self.to_change(name)
        for entry_id in ids:
            topic.append(entry_id, encode_entry(entry_id, [b"f", payload]))
        self.end_turn()

    def fill(self, count: int, name: bytes = b"t", payload: bytes = b"x") -> None:
        """So many entries of now."""
        start = self.to_change(name).length
        self.append(*[(self.clock.ms, start + number) for number in range(count)], name=name, payload=payload)

    def ids(self, name: bytes = b"t") -> list[Id]:
        topic = self.keyspace.find(0, name)
        assert isinstance(topic, Topic)
        found = [entry_id for part in topic.between() for entry_id in entry_ids.unpack_all(part.ids)]
        self.end_turn()
        return found

    def settings(self, name: bytes = b"t") -> TopicSettings | None:
        topic = self.to_change(name)
        stored = topic_settings.get(self.keyspace.settle(), topic.number)
        self.end_turn()
        return stored

    def step(self) -> bool:
        has_more = self.retention.step()
        self.end_turn()
        return has_more

    def work(self) -> int:
        """Do all that is due; how many steps it took."""
        steps = 0
        while self.step():
            steps += 1
            assert steps < 10_000, "it never ends"
        return steps

    def due(self) -> tuple[int, int] | None:
        found = topic_settings.first_due(self.keyspace.settle())
        self.end_turn()
        return found

    def rule(self, *rules: tuple[bytes, RetentionLimits]) -> None:
        self.rules.put([Rule(*rule) for rule in rules])
