from __future__ import annotations

from itertools import count

import pytest

from rlite_pubsub.gateway.events.matcher import MAX_PATTERN_CHARACTERS, MAX_PATTERNS, BadPattern, Matcher


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


def test_a_hostile_pattern_does_not_hang() -> None:
    matcher = Matcher(["(a*)*$", "(a|aa)+$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
    assert not Matcher(["^(a+)+$"]).matches(b"a" * 1000 + b"!")
    assert matcher.matches(b"a" * 1000)


@pytest.mark.parametrize("patterns", [["(a?b?c?){1000}d"], [f"(a|b)*a(a|b){{{number}00}}c" for number in range(1, 10)]])
def test_patterns_that_take_too_many_steps_for_each_letter_are_refused(patterns: list[str]) -> None:
    with pytest.raises(BadPattern):
        Matcher(patterns)


@pytest.mark.parametrize("pattern", [r"\p{L}+\d", r"\w{1,64}@\w{1,64}", "|".join(f"a{number}" for number in range(99))])
def test_patterns_that_people_write_are_not_refused(pattern: str) -> None:
    assert Matcher([pattern, r"^order\.(created|paid)$", "(?i)ÜBER"]).matches(b"order.paid")


def test_a_type_that_http_would_not_take_is_looked_at_as_far_as_it_would() -> None:
    assert not Matcher(["b"]).matches(b"a" * 1024 + b"b") and Matcher(["ab"]).matches(b"ab" + b"a" * 5000)


def test_who_has_matched_for_long_is_tired_until_others_had_a_turn() -> None:
    matcher = Matcher(["a"], count(0, 1).__next__)
    assert not matcher.is_tired
    assert matcher.matches(b"a") and matcher.is_tired
    matcher.rest()
    assert matcher.matches(b"a") and not matcher.is_tired  # that is known now


def test_a_type_that_is_no_text_can_be_matched() -> None:
    assert Matcher(["^a"]).matches(b"a\xff")
