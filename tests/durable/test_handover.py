"""No schedule of steps loses a message between the lives of a durable subscriber: explored, not sampled by luck.

A schedule is what is chosen whenever several could take the next step; the first choice is to go on with whoever went
on last. Small worlds are explored with all schedules that differ from that in RLITE_MODEL_DEVIATIONS choices, large
ones by dice: RLITE_MODEL_SEED, RLITE_MODEL_RUNS. A failure prints its schedule, which `Chooser(told=…)` plays again.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from handover import Chooser, Scope, World
from modelled_line import Way
from modelled_process import Clock

from rlite_pubsub.pubsub import post as post_module
from rlite_pubsub.server import connection as connection_module

SEED = int(os.environ.get("RLITE_MODEL_SEED", "1"))
RUNS = int(os.environ.get("RLITE_MODEL_RUNS", "60"))
DEVIATIONS = int(os.environ.get("RLITE_MODEL_DEVIATIONS", "1"))
pytestmark = pytest.mark.sources("the model stands between each process and its environments, whose class is compiled")
WAYS: tuple[Way, ...] = ("local", "unix", "elsewhere")

Run = Callable[[Scope, Chooser], World]


class _PeerSocket:
    def __init__(self, sock: object) -> None:
        self.unread_bytes = sock.unread_bytes  # type: ignore[attr-defined]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield _run(Path(folder), monkeypatch)


def _run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    clock = Clock()
    monkeypatch.setattr(post_module, "monotonic_ns", clock.monotonic_ns)
    monkeypatch.setattr(connection_module, "unacknowledged_bytes", lambda sock: sock.unacknowledged_bytes())
    monkeypatch.setattr(connection_module, "PeerSocket", _PeerSocket)
    runs = 0

    def run(scope: Scope, chooser: Chooser) -> World:
        nonlocal runs
        runs += 1
        world = World(folder / str(runs), scope, chooser, clock)
        try:
            world.explore()
            world.finale()
        finally:
            world.close()
            shutil.rmtree(folder / str(runs))
        what = f"{scope}, told={chooser.chosen}:\n" + "\n".join(world.trace)
        assert not world.missed(), f"missed {world.missed()} of {world.acknowledged}, by {what}"
        assert not world.out_of_order(), f"heard {world.out_of_order()}, by {what}"
        return world

    return run


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "scope",
    [
        Scope("local", lives=("shut", "close"), messages=1, ticks=1),
        Scope("local", lives=("shut", "close"), messages=1, ticks=1, eagerness=0),
        Scope("local", lives=("close", "close"), messages=2, payload_bytes=250, ticks=0),
        Scope("local", servers=2, lives=("close", "shut"), messages=1, ticks=1, takes_over=True),
        Scope("local", servers=1, lives=("close", "close"), messages=1, ticks=0, kills=1),
    ],
)
def test_all_schedules_of_small_worlds_that_deviate_a_little_lose_nothing(run: Run, way: Way, scope: Scope) -> None:
    schedules: list[list[int]] = [[]]
    while schedules:
        chooser = Chooser(told=schedules.pop())
        run(replace(scope, way=way), chooser)
        schedules += chooser.varied(DEVIATIONS)


@pytest.mark.parametrize("way", WAYS)
def test_what_was_read_to_the_end_is_not_repeated_whoever_is_slow(run: Run, way: Way) -> None:
    """One server, and every life reads all before it closes."""
    for number in range(RUNS):
        dice = random.Random(f"{SEED}-{way}-{number}")
        size_bytes = dice.choice([1, 60])
        scope = Scope(way, lives=("end",) * 3, messages=6, payload_bytes=size_bytes, ticks=10, is_calm=True)
        world = run(scope, Chooser(dice))
        assert not world.repeated(), "\n".join(world.trace)


@pytest.mark.parametrize("way", WAYS)
def test_random_schedules_of_large_worlds_lose_nothing(run: Run, way: Way) -> None:
    for number in range(RUNS):
        dice = random.Random(f"{SEED}-{way}-{number}")
        scope = Scope(
            way,
            servers=dice.choice([1, 2, 2]),
            lives=tuple(dice.choice(["close", "shut"]) for _ in range(dice.choice([1, 2, 3, 4]))),
            messages=dice.choice([3, 10]),
            payload_bytes=dice.choice([1, 60, 250]),
            ticks=dice.choice([0, 3, 10]),
            kills=dice.choice([0, 0, 1, 2]),
            takes_over=dice.random() < 0.3,
            eagerness=dice.choice([0, 1, 10]),
        )
        run(scope, Chooser(dice))
