"""A command with twice as many arguments costs twice as much, not four times: nobody else is served meanwhile.

What is compared is the processor time of this thread, of the best of several tries; the bound is generous."""

from __future__ import annotations

import time

import pytest
from growth import FORMS, MANY_REQUESTS, SETUP, Words, requests_of
from recorded_session import House

FEW, FACTOR, TRIES = 1000, 8, 3
BOUND = 3.5
"""So much more than in proportion: FACTOR squared is far beyond it."""
LEAST_S = 0.002
"""What costs less grows by chance."""
NOT_ALONE = frozenset(("MIGRATE", "BLPOP", "XREAD BLOCK"))
"""They wait, for a peer or for a time."""


def cost(name: str, count: int) -> float:
    house = House()
    requests = [encoded(words) for words in requests_of(name, count)]
    best = float("inf")
    for _ in range(TRIES):
        session = house.session()
        for words in SETUP:
            session.do(*encoded(words))
        begun = time.thread_time()
        for words in requests:
            session.do(*words)
        best = min(best, time.thread_time() - begun)
        session.close_now()
    house.demolish()
    return best


def encoded(words: Words) -> list[bytes]:
    return [word if isinstance(word, bytes) else str(word).encode() for word in words]


@pytest.mark.parametrize("name", [name for name in (*FORMS, *MANY_REQUESTS) if name not in NOT_ALONE])
def test_cost_grows_in_proportion_to_the_arguments(name: str) -> None:
    few, many = cost(name, FEW), cost(name, FEW * FACTOR)
    assert many <= BOUND * FACTOR * max(few, LEAST_S), f"{few * 1000:.1f} ms, {many * 1000:.1f} ms"
