"""Who waits for too long is found, and what can be seen of it is told."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from patience import until
from stopped_writer import StoppedWriter

from tests.history.watchdog import Slots, Watchdog, lock_holders

_PROGRAM = """
import faulthandler, signal, sys, threading
faulthandler.register(signal.SIGUSR1)
def waits_for_what_does_not_come():
    print("waits", flush=True)
    threading.Event().wait()
waits_for_what_does_not_come()
"""


@dataclass
class Process:
    name: str
    pid: int
    said: Path
    is_over: bool = False


def test_one_that_waits_for_too_long_is_told_with_the_stacks_of_all_and_the_holders_of_locks(tmp_path: Path) -> None:
    said = tmp_path / "said"
    slots = Slots(2)
    store = tmp_path / "store"
    with said.open("w") as out:
        program = subprocess.Popen([sys.executable, "-c", _PROGRAM], stdout=out, stderr=out)
    try:
        until(lambda: "waits" in said.read_text(), "the program")
        watchdog = Watchdog(slots, lambda: [Process("a server", program.pid, said)], store)
        with StoppedWriter(store) as writer:
            watchdog.look(0.0)
            slots.ask(1)
            until(lambda: slots.waiting_s()[1] > 0)
            watchdog._looks_at = 0.0
            with pytest.raises(AssertionError) as failure:
                watchdog.look(0.0)
        told = str(failure.value)
        assert "client 1 has waited" in told
        assert "in waits_for_what_does_not_come" in told
        assert f"data.mdb: process {writer.pid} (python" in told and "T (stopped)" in told
    finally:
        program.kill()
        program.wait()


def test_who_has_its_answer_waits_no_more() -> None:
    slots = Slots(2)
    slots.ask(0)
    slots.rest(0)
    slots.ask(1)
    assert slots.done == 1
    assert list(slots.waiting_s()) == [1]


def test_free_locks_are_held_by_nobody(tmp_path: Path) -> None:
    with StoppedWriter(tmp_path) as writer:
        writer.go_on()
        assert all(told.endswith(": nobody") for told in lock_holders(tmp_path))
