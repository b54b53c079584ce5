"""A topic over turns: what was appended and trimmed in memory is in the store when anybody looks."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.keyspace.topic.trimming import about_from_id, about_to_length, from_id, to_length
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import MIN, Id

NAME = b"orders"


class House:
    """Two processes' views of one store; here they take turns."""

    def __init__(self, environment: Environment) -> None:
        self.keyspace = Keyspace(environment, lambda: 1000)
        self.other = Keyspace(environment, lambda: 1000)

    def topic(self, keyspace: Keyspace | None = None) -> Topic:
        keyspace = keyspace or self.keyspace
        found = keyspace.for_change(0, NAME)
        topic = found if found is not None else keyspace.create_topic(0, NAME)
        assert isinstance(topic, Topic)
        return topic

    def append(self, *numbers: int, size: int = 10) -> Topic:
        topic = self.topic()
        for number in numbers:
            topic.append((number, 0), encode_entry((number, 0), (b"f", b"v" * size)))
        return topic

    def end(self) -> None:
        assert self.keyspace.end_turn() is None

    def seen_by_another(self) -> list[int]:
        """The ids' first halves, as the other process reads them."""
        found = self.other.find(0, NAME)
        ids = numbers_of(found) if isinstance(found, Topic) else []
        assert self.other.end_turn() is None
        return ids


def numbers_of(topic: Topic) -> list[int]:
    return [entry_id[0] for part in topic.between() for entry_id in entry_ids.unpack_all(part.ids)]


def ids_of(topic: Topic) -> list[Id]:
    return [entry_id for part in topic.between() for entry_id in entry_ids.unpack_all(part.ids)]


@pytest.fixture
def house(environment: Environment) -> House:
    return House(environment)


def test_what_a_turn_appends_is_read_in_the_same_turn_and_by_others_after_it(house: House) -> None:
    topic = house.append(1, 2, 3)
    assert numbers_of(topic) == [1, 2, 3]
    house.append(4)
    assert house.topic().first_id == (1, 0)
    house.end()
    assert house.seen_by_another() == [1, 2, 3, 4]


def test_entries_of_many_turns_share_a_page(house: House) -> None:
    for number in range(1, 31):
        house.append(number)
        house.end()
    topic = house.keyspace.find(0, NAME)
    assert isinstance(topic, Topic)
    assert len(list(topic.between())) == 1
    house.end()


def test_a_trim_of_what_this_turn_appended_leaves_nothing_of_it(house: House) -> None:
    house.append(1, 2)
    house.end()
    topic = house.append(3, 4, 5, size=100)
    assert to_length(topic, 1) == 4
    assert (topic.length, topic.entries_added) == (1, 5)
    house.end()
    assert house.seen_by_another() == [5]
    topic = house.topic()
    assert (topic.trimmed, topic.trimmed_id) == (4, (4, 0))
    assert topic.size_bytes == len(encode_entry((5, 0), (b"f", b"v" * 100)))
    house.end()


def test_a_topic_that_was_emptied_goes_on_at_its_last_id(house: House) -> None:
    house.append(1, 2, 3)
    house.end()
    assert to_length(house.topic(), 0) == 3
    house.end()
    topic = house.topic()
    assert (topic.length, topic.size_bytes, topic.last_id, topic.first_id) == (0, 0, (3, 0), MIN)
    house.append(4)
    house.end()
    assert house.seen_by_another() == [4]


def test_deleting_ids_that_are_not_there_changes_nothing(house: House) -> None:
    house.append(1, 3)
    house.end()
    topic = house.topic()
    assert topic.delete([(2, 0), (9, 0), (0, 0)]) == 0
    assert topic.max_deleted_id == MIN
    assert topic.delete([(3, 0), (3, 0), (2, 0)]) == 1
    assert topic.max_deleted_id == (3, 0)
    house.end()
    assert house.seen_by_another() == [1]


def test_a_deletion_that_another_process_reads_of_still_counts_in_its_node(house: House) -> None:
    """Five entries fill a node, though one is deleted: the sixth begins another, and the first goes as a whole."""
    topic = house.append(1, 2, 3)
    topic.node_limits = type(topic.node_limits)(5, 4096)
    topic.delete([(2, 0)])
    house.end()
    other = house.topic(house.other)
    for number in (4, 5, 6):
        other.append((number, 0), encode_entry((number, 0), (b"f", b"v")))
    assert house.other.end_turn() is None
    topic = house.topic()
    assert about_to_length(topic, 2, 0) == 0
    assert about_to_length(topic, 1, 3) == 0
    assert about_to_length(topic, 1, 4) == 4
    house.end()
    assert house.seen_by_another() == [6]


def test_an_approximate_trim_looks_at_no_entry_where_none_may_go(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """XADD … MAXLEN ~ of a busy topic: the first node is known, as far as it matters, and all else is a comparison."""
    topic = house.append(*range(1, 51))
    assert about_to_length(topic, 20, 0) == 0
    with monkeypatch.context() as patch:
        patch.setattr(topic.nodes, "_after", None)
        house.append(*range(51, 61))
        assert about_to_length(topic, 20, 0) == 0
    assert to_length(topic, 0) == 60
    topic = house.append(*range(61, 311))
    assert about_to_length(topic, 250, 0) == 0
    assert about_to_length(topic, 200, 0) == 0
    assert len(topic.nodes.known) == 2

    def look(entry_id: Id) -> Iterator[tuple[bytes, bytes]]:
        raise AssertionError("entries were looked at")

    monkeypatch.setattr(topic.nodes, "_after", look)
    for number in range(311, 360):
        house.append(number)
        assert about_to_length(topic, 200, 0) == 0
    house.append(360)
    assert about_to_length(topic, 200, 0) == 100
    house.end()


@pytest.mark.parametrize("seed", range(6))
def test_a_topic_and_a_list_agree_whatever_happens_in_whichever_turn(house: House, seed: int) -> None:
    rng = random.Random(seed)
    model: dict[Id, bytes] = {}
    last = 0
    for _ in range(300):
        topic = house.topic()
        deed = rng.random()
        removed = len(model)
        if deed < 0.45:
            for _ in range(rng.choice((1, 2, 50))):
                last += 1
                entry = encode_entry((last, 0), (b"f", b"v" * rng.choice((1, 100, 5000))))
                model[last, 0] = entry
                topic.append((last, 0), entry)
            assert topic.length == len(model)
        elif deed < 0.55:
            length = rng.randint(0, 120)
            keep = sorted(model)[max(len(model) - length, 0) :]
            model = {key: model[key] for key in keep}
            assert to_length(topic, length) == removed - len(model)
        elif deed < 0.65:
            low = (rng.randint(max(last - 100, 0), last + 1), rng.randint(0, 1))
            model = {key: entry for key, entry in model.items() if key >= low}
            assert from_id(topic, low) == removed - len(model)
        elif deed < 0.75:
            count = about_to_length(topic, rng.randint(0, 200), rng.choice((0, 150)))
            model = {key: model[key] for key in sorted(model)[count:]}
        elif deed < 0.8:
            low = (rng.randint(max(last - 100, 0), last + 1), 0)
            count = about_from_id(topic, low, 0)
            assert all(key < low for key in sorted(model)[:count])
            model = {key: model[key] for key in sorted(model)[count:]}
        elif model:
            wanted = [rng.choice(list(model)) for _ in range(rng.choice((1, 5, 40)))] + [(last + 1, 0)]
            assert topic.delete(wanted) == len(set(wanted)) - 1
            model = {key: entry for key, entry in model.items() if key not in wanted}
        if rng.random() < 0.3:
            house.end()
            assert house.seen_by_another() == [key[0] for key in model]
            topic = house.topic()
        if rng.random() < 0.3:
            assert ids_of(topic) == sorted(model)
            assert topic.size_bytes == sum(map(len, model.values()))
            assert b"".join([part.wire for part in topic.between()]) == b"".join(model.values())
        assert topic.length == len(model)
    house.end()
