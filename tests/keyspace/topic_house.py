"""A keyspace of its own, with a topic, for the tests of what groups do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from engines import open_data

from rlite_pubsub.groups import group as groups
from rlite_pubsub.groups.group import Group
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.groups import pending
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import BYTES, MIN, Id

NAME = b"topic"


class TopicHouse:
    """The topic is looked up anew, as commands do."""

    def __init__(self, folder: Path, quota_bytes: int = 1 << 26) -> None:
        path = folder / "data.mdb"
        self.environment = open_data(path, quota_bytes, quota_bytes)
        self.now_ms = 1_000_000
        self.keyspace = Keyspace(self.environment, lambda: self.now_ms)
        self.keyspace.create_topic(0, NAME)
        self.end_turn()

    @property
    def topic(self) -> Topic:
        topic = self.keyspace.for_change(0, NAME)
        assert isinstance(topic, Topic)
        return topic

    def append(self, *numbers: int) -> None:
        for number in numbers:
            self.topic.append((number, 0), encode_entry((number, 0), [b"n", b"%d" % number]))

    def create_group(self, name: bytes = b"g", last_id: Id = MIN, entries_read: int | None = None) -> Group:
        return groups.create(self.topic, name, last_id, entries_read)

    def group(self, name: bytes = b"g") -> Group:
        group = groups.group_of(self.topic, name)
        assert group is not None
        return group

    def end_turn(self) -> None:
        assert self.keyspace.end_turn() is None

    def forget(self) -> None:
        """As when another process has committed: what follows is read from the store."""
        self.end_turn()
        self.keyspace.stored.forget()

    def close(self) -> None:
        self.end_turn()
        self.environment.close()


def packed(*numbers: int) -> bytes:
    return b"".join([entry_ids.pack((number, 0)) for number in numbers])


def numbers(packed_ids: bytes) -> list[int]:
    return [ms for ms, _ in entry_ids.unpack_all(packed_ids)]


def held(group: Group) -> dict[int, tuple[bytes, int, int]]:
    """What is pending: number -> (consumer, when, how often). Checks what holds for runs and counters."""
    found: dict[int, tuple[bytes, int, int]] = {}
    by_consumer: dict[bytes, int] = {consumer.name: 0 for consumer in group.consumers()}
    end = b""
    for run in pending.walk(group.topic.settle(), group.of_group):
        ids = [run.ids[at : at + BYTES] for at in range(0, len(run.ids), BYTES)]
        assert ids == sorted(set(ids))
        assert end < run.low <= ids[0]
        assert 0 < len(run.ids) <= pending.MAX_RUN_BYTES
        end = ids[-1]
        name = group.numbered(run.fate[0]).name
        by_consumer[name] += len(ids)
        found |= {number: (name, *run.fate[1:]) for number in numbers(run.ids)}
    assert group.pending_count == len(found)
    assert {consumer.name: consumer.pending_count for consumer in group.consumers()} == by_consumer
    return found


@pytest.fixture
def house(tmp_path: Path) -> Iterator[TopicHouse]:
    house = TopicHouse(tmp_path)
    yield house
    house.close()
