"""Integers among a command's arguments: what is one, and what is refused."""

from __future__ import annotations

import random

import pytest

from rlite_pubsub.engine.arguments.integers import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, integer
from rlite_pubsub.protocol.errors import CommandError


def test_what_an_integer_spells_is_read_back() -> None:
    chance = random.Random(1)
    numbers = [0, 1, 9, 10, -1, 10**17, 10**18 - 1, 10**18, LONG_MAX - 1, LONG_MAX, LONG_MIN, LONG_MIN + 1]
    for number in numbers + [chance.randrange(10 ** chance.randrange(1, 19)) for _ in range(1000)]:
        assert integer(b"%d" % number) == number


@pytest.mark.parametrize(
    "text",
    [b"", b"-", b"+1", b"01", b"00", b"-0", b" 1", b"1 ", b"1.0", b"1e3", b"12a4", b"1/", b"1:", b"\xb21", b"1\x00"]
    + [b"%d" % (LONG_MAX + 1), b"%d" % (LONG_MIN - 1), b"9" * 30, b"1" * 17 + b"x"],
)
def test_what_redis_does_not_take_for_an_integer_is_refused(text: bytes) -> None:
    with pytest.raises(CommandError):
        integer(text)


def test_an_integer_beyond_its_bounds_is_refused_in_the_words_given() -> None:
    assert integer(b"%d" % INT_MAX, INT_MIN, INT_MAX) == INT_MAX
    for text in (b"%d" % (INT_MAX + 1), b"%d" % (INT_MIN - 1)):
        with pytest.raises(CommandError, match="too far"):
            integer(text, INT_MIN, INT_MAX, b"ERR too far")
