"""Background work: short slices on an idle server, and a share of the time that grows until it keeps up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rlite_pubsub.engine.pace import HURRIES_MS, LEAST_SHARE, LONG_TURN_S, MOST_SHARE, MOST_SLICE_S, SLICE_S, Pace

RATE = 100_000
"""How many things are done in a second."""


class Load:
    """Things come due at a rate; between two slices a server has turns that take this long."""

    def __init__(self, due_each_s: float, turn_s: float) -> None:
        self.now = 0.0
        self.due_each_s = due_each_s
        self.turn_s = turn_s
        self.done = 0.0
        self.slices: list[float] = []
        self.timer: tuple[float, Callable[[], None]] | None = None
        self.pace = Pace(self.work, lambda: self.now, self.call_later)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> None:
        self.timer = self.now + seconds, callback

    @property
    def left(self) -> float:
        return self.now * self.due_each_s - self.done

    def work(self, seconds: float) -> int | None:
        done = min(self.left, seconds * RATE)
        self.slices.append(done / RATE)
        self.now += done / RATE
        self.done += done
        return int(self.left / self.due_each_s * 1000) if self.left >= 1 else None

    def run(self, seconds: float) -> None:
        end, cron = self.now + seconds, 0.0
        while self.now < end:
            self.now += self.turn_s
            if self.timer is not None and self.timer[0] <= self.now:
                (_, callback), self.timer = self.timer, None
                callback()
            if self.now >= cron:
                cron = self.now + 0.1
                self.pace.go()


def test_on_an_idle_server_a_slice_is_short() -> None:
    load = Load(RATE / 5, 0.0001)
    load.run(3)
    assert max(load.slices) <= SLICE_S + 0.001
    assert load.left < load.due_each_s / 5


@pytest.mark.parametrize("turn_s", [0.0001, 0.001, 0.005, 0.05])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.45])
def test_it_keeps_up_with_any_rate_within_its_share_however_long_turns_take(share: float, turn_s: float) -> None:
    load = Load(RATE * share, turn_s)
    load.run(10)
    middle = load.left
    load.run(10)
    assert load.left < max(1.1 * middle, load.due_each_s * HURRIES_MS / 1000)
    assert max(load.slices) <= MOST_SLICE_S + 0.001


@pytest.mark.parametrize("turn_s", [0.001, 0.003, 0.005, 0.009])
def test_whoever_comes_waits_for_a_slice_no_longer_than_for_a_turn(turn_s: float) -> None:
    assert turn_s < LONG_TURN_S
    load = Load(3 * RATE, turn_s)
    load.run(10)
    assert max(load.slices) <= max(turn_s, 2 * SLICE_S) + 0.001


def test_others_have_their_share_however_much_is_due() -> None:
    load = Load(3 * RATE, 0.0001)
    load.run(10)
    assert MOST_SHARE - 0.05 < sum(load.slices) / load.now < MOST_SHARE + 0.05


def test_what_is_just_due_takes_the_least_share() -> None:
    slices = []
    now = 0.0
    timers: list[tuple[float, Callable[[], None]]] = []

    def work(seconds: float) -> int | None:
        nonlocal now
        slices.append(now)
        now += seconds
        return 0

    pace = Pace(work, lambda: now, lambda seconds, callback: timers.append((now + seconds, callback)))
    pace.go()
    pace.go()  # not due yet
    assert len(slices) == 1
    now = timers[-1][0]
    timers.pop()[1]()
    assert slices[1] == pytest.approx(SLICE_S / LEAST_SHARE)


def test_without_timers_the_work_goes_on_ten_times_a_second() -> None:
    done = 0.0
    now = 0.0

    def work(seconds: float) -> int | None:
        nonlocal done
        done += seconds
        return HURRIES_MS

    pace = Pace(work, lambda: now, lambda seconds, callback: None)
    for _ in range(100):
        pace.go()
        now += 0.1
    assert done > 100 * MOST_SLICE_S * 0.9


def test_there_is_one_timer_however_often_others_let_it_go() -> None:
    timers: list[Callable[[], None]] = []
    now = 0.0

    def work(seconds: float) -> int | None:
        nonlocal now
        now += 0.0001
        return HURRIES_MS

    pace = Pace(work, lambda: now, lambda seconds, callback: timers.append(callback))
    for _ in range(20):
        now += 0.01
        pace.go()
    assert len(timers) == 1
    for _ in range(20):
        timers.pop()()
        assert len(timers) == 1
        now += 0.0002


def test_nothing_is_set_when_nothing_is_left() -> None:
    timers: list[object] = []
    Pace(lambda seconds: None, lambda: 0.0, lambda *timer: timers.append(timer)).go()
    assert not timers
