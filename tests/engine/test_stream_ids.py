"""Ids are read as redis-server 7.0.15 reads them."""

from __future__ import annotations

import pytest

from rlite_pubsub.engine.arguments.stream_ids import (
    INVALID_END,
    INVALID_ID,
    INVALID_START,
    bound_id,
    range_end,
    range_start,
    strict_id,
    wanted_id,
)
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.storage.topics.entry_ids import MAX, MIN, PART_MAX


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"5-7", (5, 7)),
        (b"5", (5, 9)),
        (b"18446744073709551615-18446744073709551615", MAX),
        (b"007-+3", (7, 3)),
        (b" 5-\t6", (5, 6)),
        (b"1--05", (1, PART_MAX - 4)),
        (b"1-2\x00-3", (1, 2)),
    ],
)
def test_what_strtoull_accepts_is_an_id(text: bytes, expected: tuple[int, int]) -> None:
    assert strict_id(text, 9) == expected


@pytest.mark.parametrize(
    "text",
    [
        b"", b"-", b"+", b"a", b"1-", b"-1", b"1-2-3", b"1--5", b"1-*", b"5 ", b"1- ", b"18446744073709551616-1",
        b"1-18446744073709551616", b"1" * 128, b"1_0-1", b"\xff",
    ],
)  # fmt: skip
def test_anything_else_is_no_id(text: bytes) -> None:
    with pytest.raises(CommandError) as refused:
        strict_id(text)
    assert refused.value.text == INVALID_ID


def test_minus_and_plus_are_bounds_and_take_no_parenthesis() -> None:
    assert (bound_id(b"-"), bound_id(b"+")) == (MIN, MAX)
    for text in (b"(-", b"(+"):
        with pytest.raises(CommandError):
            range_start(text)


def test_a_lacking_sequence_is_the_first_of_a_start_and_the_last_of_an_end() -> None:
    assert (range_start(b"5"), range_end(b"5")) == ((5, 0), (5, PART_MAX))
    assert (range_start(b"(5"), range_end(b"(5")) == ((5, 1), (5, PART_MAX - 1))


def test_an_exclusive_bound_has_nothing_beyond_the_last_and_before_the_first() -> None:
    with pytest.raises(CommandError) as refused:
        range_start(b"(%d-%d" % MAX)
    assert refused.value.text == INVALID_START
    with pytest.raises(CommandError) as refused:
        range_end(b"(0-0")
    assert refused.value.text == INVALID_END
    with pytest.raises(CommandError):
        range_start(b"(")


def test_a_star_leaves_the_sequence_open_for_xadd_alone() -> None:
    assert wanted_id(b"5-*") == (5, None)
    assert wanted_id(b"5") == (5, 0)
    with pytest.raises(CommandError):
        strict_id(b"5-*")
