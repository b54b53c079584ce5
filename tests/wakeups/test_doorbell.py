"""The doorbell: says only "look", and never keeps a ringer waiting."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlite_pubsub.wakeups.doorbell import Doorbell, NotAFifo, Ring, Ringer, doorbell_path, has_listener, ring

OWNER = """
import sys
from pathlib import Path
from rlite_pubsub.wakeups.doorbell import Doorbell
bell = Doorbell.hang(Path(sys.argv[1]), 1)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def bell(tmp_path: Path) -> Iterator[Doorbell]:
    hung = Doorbell.hang(tmp_path, 1)
    yield hung
    hung.close()


@pytest.fixture
def ringer(tmp_path: Path) -> Iterator[Ringer]:
    made = Ringer(tmp_path, capacity=2)
    yield made
    made.close()


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_ring_before_the_wait_is_not_lost(tmp_path: Path, bell: Doorbell) -> None:
    assert ring(tmp_path, 1) is Ring.RUNG
    assert bell.wait(0)


def test_clear_forgets_what_was_rung_and_not_what_comes_after(bell: Doorbell, ringer: Ringer) -> None:
    for _ in range(3):
        ringer.ring(1)
    bell.clear()
    assert not bell.wait(0)
    ringer.ring(1)
    assert bell.wait(0)


def test_a_wait_that_nobody_ends_is_bounded(bell: Doorbell) -> None:
    assert not bell.wait(0.01)


def test_a_full_bell_is_as_good_as_rung(bell: Doorbell, ringer: Ringer) -> None:
    os.set_blocking(bell.fileno(), False)
    while True:
        try:
            os.write(bell.fileno(), b"!" * 4096)
        except BlockingIOError:
            break
    assert ringer.ring(1) is Ring.FULL
    bell.clear()
    assert not bell.wait(0)
    assert ringer.ring(1) is Ring.RUNG


def test_the_owner_sees_no_end_when_the_last_ringer_goes(tmp_path: Path, bell: Doorbell) -> None:
    ring(tmp_path, 1)
    bell.clear()
    assert not bell.wait(0)


def test_the_bell_of_a_killed_owner_is_gone_to_old_and_new_ringers(tmp_path: Path, ringer: Ringer) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None and owner.stdout.readline()
        assert ringer.ring(1) is Ring.RUNG
        assert has_listener(tmp_path, 1)
        owner.kill()
    assert ringer.ring(1) is Ring.GONE
    assert ring(tmp_path, 1) is Ring.GONE
    assert not has_listener(tmp_path, 1)


def test_a_bell_that_was_never_hung_is_gone(tmp_path: Path) -> None:
    assert ring(tmp_path, 1) is Ring.GONE


def test_a_ringer_finds_the_bell_that_was_hung_in_place_of_the_one_it_knows(tmp_path: Path, ringer: Ringer) -> None:
    old = Doorbell.hang(tmp_path, 1)
    ringer.ring(1)
    old.remove()
    new = Doorbell.hang(tmp_path, 1)
    assert ringer.ring(1) is Ring.RUNG
    assert new.wait(0)
    new.remove()
    assert os.listdir(tmp_path) == []


def test_an_odd_file_in_its_place_is_unknown_and_cannot_be_hung(tmp_path: Path, ringer: Ringer) -> None:
    doorbell_path(tmp_path, 1).touch()
    before = open_descriptors()
    assert ringer.ring(1) is Ring.UNKNOWN
    with pytest.raises(NotAFifo):
        Doorbell.hang(tmp_path, 1)
    assert open_descriptors() == before


def test_a_ringer_keeps_few_bells_open(tmp_path: Path, ringer: Ringer) -> None:
    bells = [Doorbell.hang(tmp_path, number) for number in range(5)]
    before = open_descriptors()
    for number in (0, 1, 2, 3, 4, 0):
        assert ringer.ring(number) is Ring.RUNG
    assert open_descriptors() == before + 2
    ringer.close()
    assert open_descriptors() == before
    for hung in bells:
        hung.remove()


def test_only_its_owner_may_use_it(bell: Doorbell) -> None:
    assert stat.S_IMODE(bell.path.stat().st_mode) == 0o600


def test_a_forked_child_does_not_hold_its_parents_bell(tmp_path: Path) -> None:
    bell = Doorbell.hang(tmp_path, 1)
    ready_read, ready_write = os.pipe()
    release_read, release_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(release_write)
        os.write(ready_write, b"!")
        os.read(release_read, 1)
        os._exit(0)
    try:
        os.read(ready_read, 1)
        bell.close()
        assert ring(tmp_path, 1) is Ring.GONE
    finally:
        for descriptor in (ready_read, ready_write, release_read, release_write):
            os.close(descriptor)
        os.waitpid(child, 0)


def test_an_unheard_bell_is_reported_once_and_let_go(tmp_path: Path, bell: Doorbell, ringer: Ringer) -> None:
    ringer.open([1])
    before = open_descriptors()
    bell.close()
    assert (ringer.unheard(), ringer.unheard(), ringer.open_bells) == ([1], [], 0)
    assert open_descriptors() == before - 2


def test_bells_of_those_who_have_left_are_let_go(tmp_path: Path, bell: Doorbell, ringer: Ringer) -> None:
    other = Doorbell.hang(tmp_path, 2)
    assert (ringer.ring(1), ringer.ring(2)) == (Ring.RUNG, Ring.RUNG)
    ringer.keep_only({2, 3})
    assert (ringer.open_bells, ringer.ring(2)) == (1, Ring.RUNG)
    other.close()
