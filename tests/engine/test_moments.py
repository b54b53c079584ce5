"""Moments: the grammar that others are told is what is read, no more and no less."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlite_pubsub.engine.settings.moments import MOMENT, moment_of

NOW_MS = 1_800_000_000_000


def test_a_date_is_one_of_the_calendar() -> None:
    for year in (1900, 1969, *range(1970, 2110), 2400, 2500, 9996, 9999):
        for month in range(14):
            for day in range(33):
                word = f"{year}-{month:02}-{day:02}"
                try:
                    expected = int(datetime(year, month, day, tzinfo=UTC).timestamp() * 1000) if year >= 1970 else None
                except ValueError:
                    expected = None
                assert moment_of(word, NOW_MS, UTC) == expected, word


@given(st.from_regex(MOMENT, fullmatch=True))
def test_whatever_the_grammar_has_is_read(word: str) -> None:
    found = moment_of(word, NOW_MS, UTC)
    assert found is not None and found >= 0


@pytest.mark.parametrize(
    "word",
    ["", "5\f", " 5m", "5m\n", "٣m", "0m", "10M", "10", "2026-11-18T", "2026-11-18T24:00", "2026-11-18 10:00 ",
     "2026-11-18T10:00+24:00", "20261118", "2026-W47-3", "1969-12-31", "2026-11-18T10:00:00,5"],
)  # fmt: skip
def test_what_it_does_not_have_is_not(word: str) -> None:
    assert re.fullmatch(MOMENT, word) is None and moment_of(word, NOW_MS) is None


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("10m", NOW_MS - 600_000),
        ("10min", NOW_MS - 600_000),
        ("500ms", NOW_MS - 500),
        ("2w", NOW_MS - 14 * 86_400_000),
        ("9999999999999999999w", 0),
        ("1970-01-01T00:00+14:00", 0),
        ("1970-01-02T00:00:00.5Z", 86_400_500),
        ("1970-01-02T02:00+02:00", 86_400_000),
        ("9999-12-31T23:59-23:59", 253_402_387_080_000),
    ],
)
def test_a_moment_is_that_one(word: str, expected: int) -> None:
    assert moment_of(word, NOW_MS, UTC) == expected
