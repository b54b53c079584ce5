"""Moments: the grammar that others are told is what is read, no more and no less."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlite_pubsub.measures import MOMENT, age_ms, moment_of, moment_or_ms, size_bytes, start_of, start_since

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


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (None, "$"),
        ("beginning", "-"), ("START", "-"), ("earliest", "-"), ("-", "-"), (b"-", "-"),
        ("end", "$"), ("latest", "$"), ("$", "$"), ("last", "+"), ("+", "+"),
        ("1700000000000-3", "1700000000000-3"), (b"5-1", "5-1"),
        (1_700_000_000_000, "1700000000000"), ("0", "0"), (0, "0"),
        ("24h", str(NOW_MS - 86_400_000)), (timedelta(hours=24), str(NOW_MS - 86_400_000)),
        (timedelta(microseconds=1500), str(NOW_MS - 1)), (timedelta(days=100_000), "0"),
        ("1970-01-02", "86400000"), ("1970-01-02T00:00+01:00", "82800000"),
        (datetime(1970, 1, 2, tzinfo=UTC), "86400000"), (datetime(1960, 1, 2, tzinfo=UTC), "0"),
    ],
)  # fmt: skip
def test_whatever_a_program_may_say_is_a_start(since: Any, expected: str) -> None:
    assert start_since(since, NOW_MS) == expected
    if isinstance(since, str):
        assert start_of(since, NOW_MS) == expected


@pytest.mark.parametrize(
    "since", ["", "yesterday", "1-2-3", "-5", -5, "24 h", "1.5h", b"\xff", datetime(2026, 1, 1)]  # noqa: DTZ001
)
def test_a_start_that_is_none_is_refused_with_what_would_be_one(since: Any) -> None:
    with pytest.raises(ValueError, match="since="):
        start_since(since, NOW_MS)


@pytest.mark.parametrize("since", [True, 1.5, [1], object()])
def test_a_start_of_another_type_is_refused(since: Any) -> None:
    with pytest.raises(TypeError, match="since="):
        start_since(since, NOW_MS)


def test_ages_and_sizes_have_redis_units() -> None:
    ages = {"1ms": 1, "2s": 2000, "3m": 180_000, "3min": 180_000, "1H": 3_600_000, "1d": 86_400_000, "1w": 604_800_000}
    assert {word: age_ms(word) for word in ages} == ages
    assert [age_ms(word) for word in ("0s", "1", "1y", "9" * 20 + "s")] == [None] * 4
    sizes = {"1b": 1, "1k": 1000, "1KB": 1024, "1m": 10**6, "1mb": 1 << 20, "1g": 10**9, "1gb": 1 << 30}
    sizes |= {"1t": 10**12, "1tb": 1 << 40}
    assert {word: size_bytes(word) for word in sizes} == sizes
    assert [size_bytes(word) for word in ("0b", "1", "1pb", "")] == [None] * 4
    assert moment_or_ms("7", NOW_MS) == 7 and moment_or_ms("x", NOW_MS) is None
