"""Histogram: HDR steps of two significant digits, as LATENCY HISTOGRAM and INFO latencystats show them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlite_pubsub.engine.counters import Histogram

DURATIONS = st.lists(st.integers(0, 2_000_000), min_size=1, max_size=50)


def recorded(*durations_us: int) -> Histogram:
    histogram = Histogram()
    for duration_us in durations_us:
        histogram.record(duration_us)
    return histogram


def test_levels_are_those_of_redis() -> None:
    """Each doubling of 1024 ns, reported by the end of the step in which it falls."""
    levels = [level for level, _ in recorded(*(1 << power for power in range(21))).cumulative()]
    ends_ns = [(1 << power) + (1 << power) // 128 - 1 for power in range(10, 30)]
    assert levels == [end_ns // 1000 for end_ns in ends_ns] + [((1 << 30) - 1) // 1000]
    assert levels[:8] == [1, 2, 4, 8, 16, 33, 66, 132]


def test_a_level_in_which_nothing_was_added_is_left_out() -> None:
    assert recorded(1, 1, 100).cumulative() == [(1, 2), (132, 3)]


def test_percentile_is_the_end_of_the_step_that_holds_it() -> None:
    histogram = recorded(*range(1, 101))
    assert histogram.percentile(50) == 50.175
    assert histogram.percentile(100) == 100.351
    assert histogram.percentile(0) == 1.0
    assert recorded(1, 100, 1000).percentile(50) == recorded(100).percentile(50)


def test_what_took_no_time_counts_as_a_nanosecond() -> None:
    assert recorded(0).percentile(50) == 0.001


def test_what_takes_longer_than_a_second_counts_as_a_second() -> None:
    assert recorded(5_000_000).percentile(50) == recorded(1_000_000).percentile(50) == 1002438.655


def test_nothing_recorded_is_all_zero() -> None:
    assert Histogram().percentile(99) == 0.0
    assert Histogram().cumulative() == []


def test_many_calls_at_once_count_as_many_calls() -> None:
    histogram = Histogram()
    histogram.record(10, 1000)
    assert histogram.total == 1000
    assert histogram.cumulative() == [(16, 1000)]


@given(DURATIONS)
def test_every_call_is_within_the_last_level(durations_us: list[int]) -> None:
    assert recorded(*durations_us).cumulative()[-1][1] == len(durations_us)


@given(DURATIONS)
def test_the_highest_percentile_is_the_longest_call_within_two_digits(durations_us: list[int]) -> None:
    longest_us = min(max(*durations_us, 0), 1_000_000)
    assert longest_us <= recorded(*durations_us).percentile(100) <= longest_us * 1.01 + 0.002
