"""Whoever is alone inside is alone, and nobody who waits is forgotten."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from patience import PATIENCE_S, until

from rlite_pubsub.storage.locks.gate import Gate, NestedTransaction


class Visitor(threading.Thread):
    """Goes in, by whatever way, tells so, and stays until it is sent out."""

    def __init__(self, way_in: Callable[[], object], way_out: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._way_in, self._way_out = way_in, way_out
        self.is_inside, self._go = threading.Event(), threading.Event()
        self.start()

    def run(self) -> None:
        self._way_in()
        self.is_inside.set()
        self._go.wait(PATIENCE_S)
        self._way_out()

    def leave_soon(self) -> None:
        self._go.set()

    def send_out(self) -> None:
        self.leave_soon()
        self.join(PATIENCE_S)
        assert not self.is_alive()


def alone(gate: Gate) -> Visitor:
    room = gate.alone()
    return Visitor(room.__enter__, lambda: room.__exit__(None, None, None))


def visit(gate: Gate) -> Visitor:
    return Visitor(gate.enter, gate.leave)


def test_one_who_wants_to_be_alone_waits_for_those_inside() -> None:
    gate = Gate()
    visitor = visit(gate)
    assert visitor.is_inside.wait(PATIENCE_S)
    hermit = alone(gate)
    until(lambda: gate.owner == hermit.ident)
    assert not hermit.is_inside.wait(0.05)
    visitor.send_out()
    assert hermit.is_inside.wait(PATIENCE_S)
    hermit.send_out()


def test_nobody_enters_while_one_is_alone_and_all_enter_afterwards() -> None:
    gate = Gate()
    hermit = alone(gate)
    assert hermit.is_inside.wait(PATIENCE_S)
    visitors = [visit(gate) for _ in range(3)]
    other = alone(gate)
    assert not visitors[0].is_inside.wait(0.05)
    hermit.send_out()
    for each in (other, *visitors):  # in whatever order they get in
        each.leave_soon()
    for each in (other, *visitors):
        each.send_out()
        assert each.is_inside.is_set()


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
    visitor = visit(gate)
    assert visitor.is_inside.wait(PATIENCE_S)
    assert not gate.shut(0.0)
    gate.enter()
    gate.leave()
    visitor.send_out()
    assert gate.shut(PATIENCE_S)
    gate.reopen()
