"""Entries read and lag, at the ends of a topic and around the holes in it."""

from __future__ import annotations

import pytest

from rlite_pubsub.groups import progress
from rlite_pubsub.storage.topics.entry_ids import MAX, MIN
from tests.keyspace.topic_house import TopicHouse, packed


def test_there_is_no_lag_where_nothing_was_ever_added(house: TopicHouse) -> None:
    assert progress.lag(house.topic, MIN, None) == 0
    assert progress.count_of(house.topic, (5, 0)) == 0


@pytest.mark.parametrize(
    ("number", "count"), [(5, 0), (10, 1), (11, None), (12, None), (13, 4), (14, None)], ids=lambda value: repr(value)
)
def test_counts_are_known_at_the_ends_only(house: TopicHouse, number: int, count: int | None) -> None:
    house.append(10, 11, 12, 13)
    assert progress.count_of(house.topic, (number, 0)) == count


def test_what_was_trimmed_counts_as_read(house: TopicHouse) -> None:
    house.append(10, 11, 12, 13)
    house.topic.trim(2)
    assert progress.count_of(house.topic, (9, 0)) == 2
    assert progress.count_of(house.topic, (12, 0)) == 3
    assert progress.lag(house.topic, (9, 0), None) == 2


def test_a_hole_ahead_makes_the_lag_unknown_until_it_is_passed(house: TopicHouse) -> None:
    house.append(10, 11, 12, 13)
    house.topic.delete([(12, 0)])
    assert progress.hole_ahead(house.topic, (10, 0))
    assert progress.lag(house.topic, (10, 0), 1) is None
    assert not progress.hole_ahead(house.topic, (13, 0))
    assert progress.lag(house.topic, (13, 0), 4) == 0


def test_a_hole_in_front_of_the_first_entry_is_none(house: TopicHouse) -> None:
    house.append(10, 11, 12)
    house.topic.delete([(10, 0)])
    assert not progress.hole_ahead(house.topic, MIN)
    assert progress.lag(house.topic, MIN, None) == 2


def test_an_emptied_topic_is_read_to_its_end(house: TopicHouse) -> None:
    house.append(10, 11)
    house.topic.delete([(10, 0), (11, 0)])
    assert progress.count_of(house.topic, (3, 0)) == 2
    assert progress.count_of(house.topic, MAX) is None


@pytest.mark.parametrize("before", [None, 0, 7])
@pytest.mark.parametrize("deleted", [[], [10], [12], [16], [11, 15]])
def test_many_at_once_count_as_one_by_one(house: TopicHouse, before: int | None, deleted: list[int]) -> None:
    house.append(*range(10, 17))
    house.topic.delete([(number, 0) for number in deleted])
    left = [number for number in range(10, 17) if number not in deleted]
    single = before
    for size, number in enumerate(left, 1):
        single = progress.read_on(house.topic, single, packed(number))
        assert progress.read_on(house.topic, before, packed(*left[:size])) == single


def test_a_count_is_found_at_the_first_entry_and_goes_on_from_there(house: TopicHouse) -> None:
    house.append(10, 11, 12, 13)
    assert progress.read_on(house.topic, None, packed(10)) == 1
    assert progress.read_on(house.topic, None, packed(10, 11)) == 2
    assert progress.read_on(house.topic, None, packed(11)) is None
    assert progress.read_on(house.topic, None, packed(11, 12, 13)) == 4


def test_a_count_is_lost_in_front_of_a_hole_and_found_at_the_end(house: TopicHouse) -> None:
    house.append(10, 11, 12, 13, 14)
    house.topic.delete([(12, 0)])
    assert progress.read_on(house.topic, 0, packed(10)) is None
    assert progress.read_on(house.topic, 2, packed(11, 13)) is None
    assert progress.read_on(house.topic, 2, packed(11, 13, 14)) == 5
    assert progress.read_on(house.topic, 2, packed(13)) == 3
