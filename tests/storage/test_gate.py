"""Whoever is alone inside is alone, and nobody who waits is forgotten."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from rlite_pubsub.storage.gate import Gate, NestedTransaction

PATIENCE_S = 30.0


@pytest.fixture
def many_switches() -> Iterator[None]:
    """Threads are switched as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("many_switches")
def test_nobody_is_inside_with_one_who_is_alone_and_everybody_gets_in() -> None:
    gate = Gate()
    inside: list[int] = []
    intruders: list[list[int]] = []

    def pass_often() -> None:
        for _ in range(3000):
            gate.enter()
            inside.append(1)
            inside.pop()
            gate.leave()

    def be_alone_often() -> None:
        for _ in range(300):
            with gate.alone():
                if inside:
                    intruders.append(list(inside))

    threads = [threading.Thread(target=work) for work in [pass_often] * 4 + [be_alone_often] * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads), "somebody waits at the gate for ever"
    assert intruders == []


def test_one_who_is_alone_may_go_in_and_out_itself() -> None:
    gate = Gate()
    with gate.alone():
        gate.enter()
        gate.leave()
    gate.enter()
    gate.leave()


def test_a_thread_that_is_inside_is_not_let_in_again() -> None:
    gate = Gate()
    gate.enter()
    with pytest.raises(NestedTransaction):
        gate.enter()
    gate.leave()
    gate.enter()
    gate.leave()


def test_a_gate_that_cannot_be_shut_in_time_stays_open() -> None:
    gate = Gate()
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        gate.enter()
        entered.set()
        leave.wait(PATIENCE_S)
        gate.leave()

    staying = threading.Thread(target=stay)
    staying.start()
    assert entered.wait(PATIENCE_S)
    assert not gate.shut(0.0)
    gate.enter()
    gate.leave()
    leave.set()
    staying.join(PATIENCE_S)
    assert gate.shut(PATIENCE_S)
    gate.reopen()
