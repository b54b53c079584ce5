from __future__ import annotations

import pytest

from rlite_pubsub.gateway.matcher import MAX_PATTERN_CHARACTERS, MAX_PATTERNS, BadPattern, Matcher


def test_one_of_several_patterns_is_enough_and_is_found_anywhere() -> None:
    matcher = Matcher(["^order", "paid$", "é"])
    types = b"orders", b"unpaid", "café".encode(), b"border"
    assert [matcher.matches(type) for type in types] == [True, True, True, False]


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "a{1001}", "x" * (MAX_PATTERN_CHARACTERS + 1), "*"])
def test_a_pattern_that_linear_time_is_not_promised_for_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern):
        Matcher([pattern])


def test_too_many_patterns_are_refused() -> None:
    with pytest.raises(BadPattern):
        Matcher(["a"] * (MAX_PATTERNS + 1))


@pytest.mark.timeout(10)
def test_a_hostile_pattern_does_not_hang() -> None:
    matcher = Matcher(["(a*)*$", "(a|aa)+$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
    assert not Matcher(["^(a+)+$"]).matches(b"a" * 1000 + b"!")
    assert matcher.matches(b"a" * 1000)


def test_a_type_that_is_no_text_can_be_matched() -> None:
    assert Matcher(["^a"]).matches(b"a\xff")
