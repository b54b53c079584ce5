"""A stretch becomes the entries that single commands would have made, and nobody sees it half."""

from __future__ import annotations

import pytest
from topic_house import NAME, TopicHouse

from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.keyspace.topic.stretch import Stretch
from rlite_pubsub.keyspace.topic.topic import Topic

HEAD = [b"XADD", NAME, b"*", b"100%", b"%d", b"field"]


def begun(house: TopicHouse, ms: int, seq: int) -> Stretch:
    stretch = house.keyspace.stretches.open[NAME] = Stretch(house.topic, (ms, seq), HEAD)
    return stretch


def tails(*values: bytes) -> list[bytes]:
    return [b"%d\r\n%b" % (len(value), value) for value in values]


def wire(topic: Topic) -> bytes:
    return b"".join([part.wire for part in topic.between()])


@pytest.mark.parametrize("first", [0, 7, 95, 999, 10**17 - 3])
@pytest.mark.parametrize("sizes", [[1] * 12, [12], [3, 1, 8]])
def test_ids_answers_and_entries_are_those_of_single_commands(house: TopicHouse, first: int, sizes: list[int]) -> None:
    stretch = begun(house, 5_000_000, first)
    values = [b"%d %%s" % number * number for number in range(12)]
    replies, rest = b"", list(values)
    for size in sizes:
        replies += stretch.add(tails(*rest[:size]))
        del rest[:size]
    ids = [(5_000_000, first + number) for number in range(12)]
    texts = [b"%d-%d" % each for each in ids]
    assert replies == b"".join([b"$%d\r\n%b\r\n" % (len(text), text) for text in texts])
    fields = [b"100%", b"%d", b"field"]
    expected = [encode_entry(each, [*fields, value]) for each, value in zip(ids, values, strict=True)]
    topic = house.topic
    assert wire(topic) == b"".join(expected)
    assert (topic.length, topic.entries_added, topic.last_id) == (12, 12, ids[-1])
    assert topic.size_bytes == len(b"".join(expected))


def test_whoever_looks_up_its_key_ends_it_and_another_key_is_no_matter(house: TopicHouse) -> None:
    begun(house, 5, 0).add(tails(b"a"))
    assert house.keyspace.find(0, b"another") is None
    assert house.keyspace.stretches.open
    assert house.keyspace.find(0, NAME) is not None
    assert not house.keyspace.stretches.open
    assert house.topic.length == 1


def test_the_turn_s_end_commits_it(house: TopicHouse) -> None:
    begun(house, 5, 0).add(tails(b"a", b"b"))
    house.forget()
    assert house.topic.length == 2
    assert (0, NAME) in house.keyspace.touched


def test_nothing_of_it_is_left_of_a_turn_that_failed(house: TopicHouse) -> None:
    begun(house, 5, 0).add(tails(b"a"))
    house.keyspace.fail(RuntimeError("of a command"))
    assert not house.keyspace.stretches.open
    assert house.keyspace.end_turn() is not None
    assert house.topic.length == 0
