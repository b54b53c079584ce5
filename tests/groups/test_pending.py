"""Pending entries: whatever is done to them, each id has one fate, runs do not overlap, and the counters are right."""

from __future__ import annotations

import random

import pytest

from rlite_pubsub.groups import pending
from rlite_pubsub.groups.group import Group
from rlite_pubsub.groups.pending import Amendment
from rlite_pubsub.storage.groups import pending as runs
from rlite_pubsub.storage.topics import entry_ids
from tests.keyspace.topic_house import TopicHouse, held, packed


@pytest.fixture
def house(house: TopicHouse) -> TopicHouse:
    group = house.create_group()
    group.create_consumer(b"a")
    group.create_consumer(b"b")
    return house


def deliver(group: Group, name: bytes, *ids: int, at: int = 10) -> None:
    consumer = group.consumer(name)
    assert consumer is not None
    pending.deliver(group, consumer, packed(*ids), at)


def run_count(group: Group) -> int:
    return len(list(runs.walk(group.topic.keyspace.reading(), group.of_group)))


def test_a_read_is_one_run_and_its_acknowledgement_removes_it(house: TopicHouse) -> None:
    group = house.group()
    deliver(group, b"a", *range(1, 101))
    assert run_count(group) == 1
    assert held(group) == {number: (b"a", 10, 1) for number in range(1, 101)}
    assert pending.acknowledge(group, packed(*range(1, 101))) == 100
    assert run_count(group) == 0
    assert held(group) == {}


def test_reads_of_one_consumer_at_one_time_share_a_run(house: TopicHouse) -> None:
    group = house.group()
    for number in range(1, 11):
        deliver(group, b"a", number)
    assert run_count(group) == 1
    deliver(group, b"a", 11, at=11)
    deliver(group, b"b", 12, at=11)
    assert run_count(group) == 3
    assert held(group)[11] == (b"a", 11, 1)


@pytest.mark.parametrize(
    "acknowledged", [[1], [50], [100], [1, 100], [3, 2, 1], [50, 50, 0, 101], list(range(100, 0, -1))]
)
def test_single_ids_are_acknowledged_once_each(house: TopicHouse, acknowledged: list[int]) -> None:
    group = house.group()
    deliver(group, b"a", *range(1, 101))
    there = set(range(1, 101)) & set(acknowledged)
    assert pending.acknowledge(group, packed(*acknowledged)) == len(there)
    assert pending.acknowledge(group, packed(*acknowledged)) == 0
    assert set(held(group)) == set(range(1, 101)) - there


def test_an_id_is_not_found_across_two_others(house: TopicHouse) -> None:
    group = house.group()
    consumer = group.consumer(b"a")
    assert consumer is not None
    ids = entry_ids.pack((1, 3)) + entry_ids.pack((5, 9))
    pending.deliver(group, consumer, ids, 10)
    assert entry_ids.pack((3, 5)) in ids
    assert pending.acknowledge(group, entry_ids.pack((3, 5))) == 0
    assert pending.acknowledge(group, ids) == 2


def test_a_run_does_not_outgrow_its_page(house: TopicHouse) -> None:
    group = house.group()
    for number in range(1, 301):
        deliver(group, b"a", number)
    assert len(held(group)) == 300
    assert run_count(group) == 3


def test_a_group_that_was_set_back_delivers_the_same_ids_anew(house: TopicHouse) -> None:
    group = house.group()
    deliver(group, b"a", 1, 2, 3, 4)
    deliver(group, b"b", 2, 3, 9, at=20)
    assert held(group) == {
        1: (b"a", 10, 1),
        2: (b"b", 20, 1),
        3: (b"b", 20, 1),
        4: (b"a", 10, 1),
        9: (b"b", 20, 1),
    }


def test_counters_are_read_back_from_the_store(house: TopicHouse) -> None:
    deliver(house.group(), b"a", 1, 2, 3)
    pending.acknowledge(house.group(), packed(2))
    house.forget()
    group = house.group()
    assert group.pending_count == 2
    assert [(consumer.name, consumer.pending_count) for consumer in group.consumers()] == [(b"a", 2), (b"b", 0)]


@pytest.mark.parametrize("seed", range(8))
def test_random_changes_leave_what_a_plain_dictionary_has(house: TopicHouse, seed: int) -> None:
    random_ = random.Random(seed)
    model: dict[int, tuple[bytes, int, int]] = {}
    highest = 0
    for step in range(250):
        group = house.group()
        name = random_.choice([b"a", b"b"])
        consumer = group.consumer(name)
        assert consumer is not None
        kind = random_.random()
        if kind < 0.3:
            ids = range(highest + 1, highest + 1 + random_.choice([1, 2, 5, 40, 300]), random_.choice([1, 2]))
            highest = ids[-1]
            pending.deliver(group, consumer, packed(*ids), step)
            model |= {number: (name, step, 1) for number in ids}
        elif kind < 0.6:
            start = random_.randint(0, highest)
            wanted = [*range(start, start + random_.choice([1, 3, 100]))]
            if random_.random() < 0.3:
                random_.shuffle(wanted)
            gone = [model.pop(number) for number in set(wanted) if number in model]
            assert pending.acknowledge(group, packed(*wanted)) == len(gone)
        elif kind < 0.9:
            amendment = Amendment(group)
            at = random_.randint(0, highest)
            for _ in range(random_.choice([1, 4, 60])):
                at = random_.choice([at + 1, at + 1, at + 2, random_.randint(0, highest + 3)])
                if random_.random() < 0.3:
                    assert amendment.remove(packed(at)) == (model.pop(at, None) is not None)
                else:
                    before = amendment.fate(packed(at))
                    assert (before is None) == (at not in model)
                    amendment.put(packed(at), (consumer.number, step, 2))
                    model[at] = (name, step, 2)
            amendment.close()
            highest = max(highest, at)
        else:
            house.forget()
        if step % 10 == 0:
            assert held(house.group()) == model
    assert held(house.group()) == model
