"""A process that is killed between any two steps of what it does leaves nothing, once somebody has come by: a publisher
that was there before, one that starts, a server that starts, or `doctor`.

(tests/pubsub has the same of a bare Subscriber and a bare reaper; here are whole clients.)
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import PATIENCE_S

import rlite_pubsub
from rlite_pubsub import Server
from tests.soak.left import left_in

ROOT = Path(__file__).parents[2]
KILLED = -9

SUBSCRIBED = """
import sys, rlite_pubsub
client = rlite_pubsub.Redis(sys.argv[1])
pubsub = client.pubsub()
pubsub.subscribe("news", *range(int(sys.argv[2])))
pubsub.psubscribe("n?ws")
"""
PUBLISHES = SUBSCRIBED + 'client.publish("news", "x")'
LEAVES = SUBSCRIBED + "pubsub.close(); client.close()"
DIES = SUBSCRIBED + "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
MANY = 3000
"""Names: more than go in one slice."""


def run(folder: Path, source: str, *, step: str = "", names: int = 0) -> int:
    return subprocess.run(
        [sys.executable, "-c", source, str(folder), str(names)], cwd=ROOT, env={**os.environ, "RLITE_FAILPOINT": step}
    ).returncode


def start_a_publisher(folder: Path) -> None:
    with rlite_pubsub.Redis(folder) as client:
        assert client.publish("news", "x") == 0


def start_a_server(folder: Path) -> None:
    with Server(dir=str(folder)):
        pass


def doctor(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "rlite_pubsub", "doctor", "-s", str(folder)], cwd=ROOT, check=True)


STEPS = [
    ("join-locked", SUBSCRIBED),
    ("join-bell-hung", SUBSCRIBED),
    ("join-recorded", SUBSCRIBED),
    ("publish-committed", PUBLISHES),
    ("publish-rung", PUBLISHES),
    ("leave-erased", LEAVES),
    ("leave-bell-down", LEAVES),
]


@pytest.mark.parametrize("clean_up", [start_a_publisher, start_a_server, doctor])
@pytest.mark.parametrize(("step", "source"), STEPS, ids=[step for step, _ in STEPS])
def test_a_client_killed_at_any_step_leaves_nothing_once_somebody_starts(
    folder: Path, step: str, source: str, clean_up: Callable[[Path], None]
) -> None:
    with rlite_pubsub.Redis(folder) as neighbour, neighbour.pubsub() as pubsub:
        pubsub.subscribe("news")
        assert run(folder, source, step=step) == KILLED
    clean_up(folder)
    assert left_in(folder) == []


@pytest.mark.parametrize("step", ["publish-committed", "publish-rung"])
def test_a_publisher_killed_in_mid_publish_is_cleaned_up_after_by_the_next_publish(folder: Path, step: str) -> None:
    with rlite_pubsub.Redis(folder) as neighbour, neighbour.pubsub() as pubsub:
        pubsub.subscribe("news")
        assert run(folder, PUBLISHES, step=step) == KILLED
        neighbour.publish("news", "from one that lives")
        heard = [pubsub.get_message(timeout=PATIENCE_S) for _ in range(3)]
        assert {message["data"] for message in heard if message} == {1, b"x", b"from one that lives"}
        assert neighbour.publish("news", "to nobody else") == 1
        assert len(list((folder / "subscribers").glob("*.lock"))) == 1
    assert left_in(folder) == []


@pytest.mark.parametrize("clean_up", [start_a_publisher, start_a_server, doctor])
@pytest.mark.parametrize("step", ["reap-locked", "erase-slice", "reap-erased", "reap-bell-down"])
def test_a_client_killed_while_it_cleans_up_after_another_leaves_both_to_the_next(
    folder: Path, step: str, clean_up: Callable[[Path], None]
) -> None:
    assert run(folder, DIES, names=MANY) == KILLED
    assert run(folder, SUBSCRIBED, step=step) == KILLED
    clean_up(folder)
    assert left_in(folder) == []
