"""The law of checkpoint.py: several processes write, idle, let go and are killed, and the power goes at any moment."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

from rlite_pubsub.storage.checkpoints import checkpoint
from rlite_pubsub.storage.checkpoints.checkpoint import restore, safe_path, saved
from rlite_pubsub.storage.checkpoints.deltas import delta_path

PAGE = 4096
KEYS = 40
PROCESSES = 3
STEPS = 80
STEP_WEIGHTS = {
    "write": 40,
    "let_go": 20,
    "take": 30,
    "begin": 15,
    "sync": 15,
    "save": 15,
    "at_once": 15,
    "release": 3,
    "clear": 5,
    "kill": 3,
    "punch": 20,
}
CHILD = Path(__file__).with_name("pinning_process.py")


class Child:
    """A process that does as it is told."""

    def __init__(self, path: Path, delta_pages: int) -> None:
        command = [sys.executable, str(CHILD), str(path), str(delta_pages)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._hear() == "ready"

    def do(self, step: str) -> str:
        """What it has to say of that."""
        assert self._process.stdin is not None
        self._process.stdin.write(step + "\n")
        self._process.stdin.flush()
        done, _, said = self._hear().partition(" ")
        assert done == "done"
        return said

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def boot(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(checkpoint, "boot_id", lambda: b"boot-%d" % number)


def contents(path: Path) -> set[bytes]:
    """Every value there is."""
    environment = lmdb.Environment(str(path), subdir=False, map_size=1 << 28, sync=False, lock=False)
    try:
        with environment.begin() as txn:
            assert txn.stat()["entries"] == KEYS
            return {bytes(value) for _, value in txn.cursor()}
    finally:
        environment.close()


def lose_power(path: Path, lost: Path, luck: random.Random) -> None:
    """Of what was not synced each page may be on the disk, or not."""
    written, synced = path.read_bytes(), path.with_name("synced").read_bytes()
    pages = []
    for at in range(0, len(written), PAGE):
        new, old = written[at : at + PAGE], synced[at : at + PAGE].ljust(PAGE, b"\0")
        pages.append(new if luck.random() < 0.5 else old[: len(new)])
    lost.mkdir(exist_ok=True)
    (lost / "data.mdb").write_bytes(b"".join(pages))
    for name in (safe_path, delta_path):
        name(lost / "data.mdb").write_bytes(name(path).read_bytes())


def survives(path: Path, luck: random.Random, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether after a power cut there is what was saved, and nothing else."""
    lost = path.with_name("lost")
    safe = saved(path, b"boot-1")
    boot(monkeypatch, 1)
    lose_power(path, lost, luck)
    boot(monkeypatch, 2)
    restore(lost / "data.mdb")
    return contents(lost / "data.mdb") == {b"%d" % safe * 300}


@pytest.mark.parametrize("seed", range(10))
def test_whoever_writes_idles_or_dies_a_power_cut_leaves_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    luck = random.Random(seed)
    path = tmp_path / "data.mdb"
    delta_pages = luck.choice([0, 60, 200, 1000])  # for how many there is room before all has to be synced
    children = [Child(path, delta_pages) for _ in range(PROCESSES)]
    try:
        for what in ("write", "begin", "sync", "save"):
            children[0].do(what)
        for step in range(STEPS):
            place = luck.randrange(PROCESSES)
            (what,) = luck.choices(list(STEP_WEIGHTS), list(STEP_WEIGHTS.values()))
            if what == "kill":
                children[place].kill()
                children[place] = Child(path, delta_pages)
            else:
                for _ in range(luck.randrange(1, 6) if what == "write" else 1):
                    children[place].do(what)
            assert survives(path, luck, monkeypatch), (step, what)
    finally:
        for child in children:
            child.kill()


@pytest.mark.parametrize("delta_pages", [0, 200])
def test_holes_take_nothing_that_a_checkpoint_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_pages: int
) -> None:
    luck = random.Random(1)
    path = tmp_path / "data.mdb"
    child = Child(path, delta_pages)
    try:
        punched = 0
        for _ in range(20):
            for what in ("write", "write", "take", "punch", "write", "punch"):
                punched += int(child.do(what) or 0)
                if safe_path(path).exists() and path.with_name("synced").exists() and saved(path, b"boot-1") > 0:
                    assert survives(path, luck, monkeypatch), what
        assert punched > 100
    finally:
        child.kill()


@pytest.mark.parametrize("delta_pages", [0, 200])
def test_holes_spare_a_checkpoint_that_nobody_has_pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_pages: int
) -> None:
    luck = random.Random(1)
    path = tmp_path / "data.mdb"
    child = Child(path, delta_pages)
    try:
        for what in ("write", "write", "write", "take", "write", "release", "punch"):
            child.do(what)
        for _ in range(10):
            assert survives(path, luck, monkeypatch)
    finally:
        child.kill()
