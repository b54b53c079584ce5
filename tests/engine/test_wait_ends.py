"""When waits end: each in its time, and nothing of one that is over stays."""

from __future__ import annotations

import gc
import heapq
import random
from collections.abc import Callable

import pytest
from recorded_session import House

from rlite_pubsub.engine.waits.alarm import MAX_TIMER_SECONDS
from rlite_pubsub.engine.waits.waiter import WaitEnds


class Loop:
    """A clock that moves when it is told to, and timers as a loop has them: none can be taken back."""

    def __init__(self) -> None:
        self.now = 1000.25
        self.timers: list[tuple[float, int, Callable[[], None]]] = []
        self.set = 0

    def call_later(self, seconds: float, callback: Callable[[], None]) -> object:
        self.set += 1
        heapq.heappush(self.timers, (self.now + seconds, self.set, callback))
        return None

    def run_until(self, time: float) -> None:
        while self.timers and self.timers[0][0] <= time:
            self.now, _, callback = heapq.heappop(self.timers)
            callback()
        self.now = time


class Wait:
    def __init__(self, loop: Loop) -> None:
        self.is_over = False
        self.ended_at: float | None = None
        self._loop = loop

    def time_out(self) -> None:
        self.is_over = True
        self.ended_at = self._loop.now


def ends_of(loop: Loop) -> WaitEnds:
    return WaitEnds(lambda: loop.now, loop.call_later)


def begin(ends: WaitEnds, loop: Loop, seconds: float) -> Wait:
    wait = Wait(loop)
    ends.add(loop.now + seconds, wait)
    return wait


def test_short_waits_beside_a_long_one_leave_no_timers_behind() -> None:
    loop = Loop()
    ends = ends_of(loop)
    long = begin(ends, loop, 3000)
    for _ in range(1000):
        short = begin(ends, loop, 0.001)
        loop.run_until(loop.now + 0.002)
        assert short.is_over
        ends.drop()
    assert len(loop.timers) <= 2
    loop.run_until(loop.now + 3000)
    assert long.is_over


def test_waits_that_are_served_leave_few_timers_behind_however_their_times_fall() -> None:
    loop = Loop()
    ends = ends_of(loop)
    for number in range(5000):
        served = begin(ends, loop, 3000 - number / 10)
        served.is_over = True
        ends.drop()
    assert len(loop.timers) <= 510  # one for each second between the first and the last


def test_each_wait_ends_in_its_time_and_none_before() -> None:
    dice = random.Random(24)
    loop = Loop()
    ends = ends_of(loop)
    begun: list[tuple[Wait, float]] = []
    for _ in range(2000):
        seconds = dice.choice([0.0, 0.001, 0.5, 1.0, 1.5, 30.0, 2 * MAX_TIMER_SECONDS]) * dice.random()
        wait = begin(ends, loop, seconds)
        begun.append((wait, loop.now + seconds))
        if dice.random() < 0.3:
            wait.is_over = True
            ends.drop()
        loop.run_until(loop.now + dice.choice([0.0, 0.001, 0.2]))
    loop.run_until(loop.now + 2 * MAX_TIMER_SECONDS + 1)
    assert loop.timers == [] and len(ends) == 0
    for wait, due in begun:
        assert wait.is_over
        assert wait.ended_at is None or due <= wait.ended_at <= due + 1e-6


@pytest.mark.parametrize("ends", ["in time", "with an element"])
@pytest.mark.parametrize(
    ("words", "serving"),
    [
        ("BLPOP k 1", "RPUSH k a"),
        ("BLMOVE k other LEFT LEFT 1", "RPUSH k a"),
        ("BZPOPMIN k 1", "ZADD k 1 a"),
        ("XREAD BLOCK 1000 STREAMS k $", "XADD k * f v"),
        ("XREADGROUP GROUP g c BLOCK 1000 STREAMS k >", "XADD k * f v"),
    ],
)
def test_a_wait_that_is_over_is_freed_though_python_does_not_look_for_cycles(
    house: House, words: str, serving: str, ends: str
) -> None:
    """Those of thousands of short waits took megabytes until it did."""
    session, writer = house.session(), house.session()
    if "GROUP" in words:
        writer.do("XGROUP", "CREATE", "k", "g", "0", "MKSTREAM")

    def wait() -> None:
        assert session.do(*words.split()) == b""
        if ends == "in time":
            house.timers.advance(2.0)
        else:
            writer.do(*serving.split())
        assert session.heard()

    wait()
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            wait()
        assert gc.collect() < 60
    finally:
        gc.enable()
