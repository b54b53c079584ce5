"""Pending entries that change hands: which, in which order, and what becomes of those that are gone."""

from __future__ import annotations

import pytest

from rlite_pubsub.groups import claims, pending
from rlite_pubsub.groups.consumer import Consumer
from rlite_pubsub.groups.group import Group
from rlite_pubsub.storage.topics.entry_ids import MIN
from tests.keyspace.topic_house import TopicHouse, held, numbers, packed


@pytest.fixture
def house(house: TopicHouse) -> TopicHouse:
    house.append(*range(1, 401))
    group = house.create_group()
    group.create_consumer(b"a")
    group.create_consumer(b"b")
    return house


def consumer_of(group: Group, name: bytes) -> Consumer:
    consumer = group.consumer(name)
    assert consumer is not None
    return consumer


def deliver(house: TopicHouse, name: bytes, ids: range, at: int) -> None:
    pending.deliver(house.group(), consumer_of(house.group(), name), packed(*ids), at)


def claimed(found: list[claims.Pending]) -> list[int]:
    return [numbers(item.id)[0] for item in found]


def test_history_is_one_consumers_own(house: TopicHouse) -> None:
    for start in range(1, 101, 10):
        deliver(house, b"ab"[start // 10 % 2 :][:1], range(start, start + 10), 5)
    group = house.group()
    found = claims.deliver_again(group, consumer_of(group, b"b"), (35, 0), 12, 99)
    assert claimed(found) == [*range(35, 41), *range(51, 57)]
    assert {held(group)[number] for number in claimed(found)} == {(b"b", 99, 2)}
    assert held(group)[34] == (b"b", 5, 1)
    assert held(group)[57] == (b"b", 5, 1)


def test_history_of_what_is_gone_stays_as_it_was(house: TopicHouse) -> None:
    deliver(house, b"a", range(1, 6), 5)
    house.topic.delete([(2, 0), (5, 0)])
    group = house.group()
    found = claims.deliver_again(group, consumer_of(group, b"a"), MIN, 0, 99)
    assert [item.entry is None for item in found] == [False, True, False, False, True]
    assert [held(group)[number][1:] for number in range(1, 6)] == [(99, 2), (5, 1), (99, 2), (99, 2), (5, 1)]


def test_what_is_idle_is_looked_for_no_further_than_the_attempts_go(house: TopicHouse) -> None:
    deliver(house, b"a", range(1, 11), 90)
    deliver(house, b"a", range(11, 301), 10)
    sweep = claims.idle_from(house.group(), MIN, 50, 3, 12, 100)
    assert (claimed(sweep.claimed), sweep.next_id) == ([11, 12], (13, 0))
    sweep = claims.idle_from(house.group(), (200, 0), 50, 3, 30, 100)
    assert (claimed(sweep.claimed), sweep.next_id) == ([200, 201, 202], (203, 0))
    sweep = claims.idle_from(house.group(), (300, 0), 50, 3, 30, 100)
    assert (claimed(sweep.claimed), sweep.next_id) == ([300], (0, 0))


def test_a_sweep_that_ends_with_a_run_goes_on_at_the_next_one(house: TopicHouse) -> None:
    deliver(house, b"a", range(1, 4), 10)
    deliver(house, b"b", range(4, 7), 10)
    assert claims.idle_from(house.group(), MIN, 0, 3, 30, 100).next_id == (4, 0)
    assert claims.idle_from(house.group(), MIN, 0, 30, 3, 100).next_id == (4, 0)
    assert claims.idle_from(house.group(), MIN, 0, 6, 30, 100).next_id == (0, 0)


def test_what_is_gone_is_told_and_counts_against_the_limit(house: TopicHouse) -> None:
    deliver(house, b"a", range(1, 7), 99)
    house.topic.delete([(1, 0), (3, 0)])
    group = house.group()
    sweep = claims.idle_from(group, MIN, 0, 3, 30, 100)
    assert (claimed(sweep.claimed), numbers(b"".join(sweep.deleted)), sweep.next_id) == ([2], [1, 3], (4, 0))
    claims.forget(group, sweep.deleted)
    assert sorted(held(group)) == [2, 4, 5, 6]


def test_the_most_idle_comes_first(house: TopicHouse) -> None:
    deliver(house, b"a", range(1, 4), 30)
    deliver(house, b"b", range(4, 6), 10)
    deliver(house, b"a", range(6, 8), 20)
    deliver(house, b"a", range(8, 9), 60)
    assert claimed(claims.most_idle(house.group(), 50, 0, 100)) == [4, 5, 6, 7, 1, 2, 3]
    assert claimed(claims.most_idle(house.group(), 50, 3, 100)) == [4, 5, 6]
    assert claims.most_idle(house.group(), 91, 0, 100) == []


def test_the_oldest_is_known_though_others_have_come_and_gone(house: TopicHouse) -> None:
    group = house.group()
    deliver(house, b"a", range(1, 4), 50)
    assert group.oldest_ms() == 50
    claims.take_over(group, consumer_of(group, b"b"), claims.most_idle(group, 0, 1, 60), 20, counts=True)
    assert group.oldest_ms() == 20
    assert claimed(claims.most_idle(group, 40, 0, 60)) == [1]
    pending.acknowledge(group, packed(1))
    assert claims.most_idle(group, 11, 0, 60) == []
    assert claimed(claims.most_idle(group, 10, 0, 60)) == [2, 3]


def test_what_is_taken_over_was_delivered_once_more(house: TopicHouse) -> None:
    group = house.group()
    deliver(house, b"a", range(1, 301), 5)
    found = claims.most_idle(group, 0, 0, 50)
    claims.take_over(group, consumer_of(group, b"b"), found[100:200], 50, counts=True)
    claims.take_over(group, consumer_of(group, b"b"), found[250:], 60, counts=False)
    now = held(group)
    assert [now[number] for number in (100, 101, 200, 201, 251)] == [
        (b"a", 5, 1),
        (b"b", 50, 2),
        (b"b", 50, 2),
        (b"a", 5, 1),
        (b"b", 60, 1),
    ]
