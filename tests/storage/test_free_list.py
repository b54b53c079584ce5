"""Pages that are free: how many of them are side by side."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from rlite_pubsub.storage.pages import free_list


def test_runs_that_are_long_enough_are_counted_whole_and_shorter_ones_not_at_all() -> None:
    numbers = [9, 3, 4, 5, 20, 21, 8, 30]
    assert free_list.in_runs(list(numbers), 1) == len(numbers)
    assert free_list.in_runs(list(numbers), 2) == 7
    assert free_list.in_runs(list(numbers), 3) == 3
    assert free_list.in_runs(list(numbers), 4) == 0
    assert free_list.in_runs([], 1) == 0


@given(st.sets(st.integers(2, 60)), st.integers(1, 8))
def test_runs_are_those_of_neighbouring_numbers(numbers: set[int], least: int) -> None:
    runs = [
        len(list(run)) for _, run in groupby(enumerate(sorted(numbers)), key=lambda each: each[1] - each[0])
    ]
    assert free_list.in_runs(list(numbers), least) == sum(length for length in runs if length >= least)
