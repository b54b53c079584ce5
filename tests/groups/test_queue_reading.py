"""A queue's subscribers: what a pop and a peek cost does not depend on how long the history is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rlite_pubsub.groups import group as groups
from rlite_pubsub.groups import queue_reading
from rlite_pubsub.groups.group import Group
from rlite_pubsub.storage.topics import chunks, entry_ids
from rlite_pubsub.storage.topics.chunks import Chunk
from rlite_pubsub.storage.topics.entry_ids import MIN, Id
from tests.keyspace.topic_house import TopicHouse

LONG = 1_000_000
MS = 1000
BATCH = 100_000


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TopicHouse]:
    """A queue of a million values."""
    house = TopicHouse(tmp_path_factory.mktemp("long"), quota_bytes=1 << 30)
    for start in range(0, LONG, BATCH):
        entries = [b"*2\r\n$1\r\nx\r\n*2\r\n$5\r\nvalue\r\n$1\r\nx\r\n"] * BATCH
        house.topic.append_all((MS, start), entries)
        house.end_turn()
    yield house
    house.close()


class Counter:
    """Counts the chunks that are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read = 0
        made = Chunk.__init__

        def count(chunk: Chunk, key: bytes, value: bytes) -> None:
            self.read += 1
            made(chunk, key, value)

        monkeypatch.setattr(chunks.Chunk, "__init__", count)


def subscriber(house: TopicHouse, after: Id) -> Group:
    name = b"%d-%d" % after
    found: Group = groups.group_of(house.topic, name) or queue_reading.create(house.topic, name, after)
    return found


@pytest.mark.sources("counts the calls of a compiled method")
@pytest.mark.parametrize("place", [0, 1, LONG // 2, LONG - 2])
def test_pop_and_peek_read_one_chunk_wherever_the_place_is(
    house: TopicHouse, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = (MS, place - 1) if place else MIN
    subscriber(house, after)
    house.forget()
    counter = Counter(monkeypatch)
    [part] = queue_reading.peek(house.group(b"%d-%d" % after), 1)
    assert entry_ids.unpack(part.ids) == (MS, place)
    assert counter.read == 1
    for number in range(place, min(place + 50, LONG)):
        house.forget()
        counter.read = 0
        [part] = queue_reading.pop(house.group(b"%d-%d" % after), 1)
        assert entry_ids.unpack(part.ids) == (MS, number)
        assert counter.read <= 2  # at the border of a chunk the one before it is looked at, too


def test_many_subscribers_have_a_place_each_and_none_is_kept_in_memory(house: TopicHouse) -> None:
    places = [(MS, number * 777 + 5) for number in range(500)]
    for after in places:
        subscriber(house, after)
    house.forget()
    for after in places:
        [part] = queue_reading.pop(house.group(b"%d-%d" % after), 1)
        assert entry_ids.unpack(part.ids) == (MS, after[1] + 1)
    house.forget()
    topic = house.topic
    assert topic.attached is None
    for group in groups.all_groups(topic):
        groups.destroy(group)
    house.end_turn()
