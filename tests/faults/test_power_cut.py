"""The power goes at any moment: whatever the disk has kept of what was not synced, the store opens, holds all that it
must, and is whole.

RLITE_POWER_CUTS images are made of each run (30), by the dice of RLITE_POWER_CUT_SEED; a failure prints its number.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from patience import until

from tests.faults.powercut import images, work
from tests.server.server_process import free_port

HERE = Path(__file__).parent / "powercut"
ROOT = Path(__file__).parents[2]
CUTS = int(os.environ.get("RLITE_POWER_CUTS", "30"))
SEED = os.environ.get("RLITE_POWER_CUT_SEED", "1")
COUNT = int(os.environ.get("RLITE_POWER_CUT_COUNT", "120"))


class Shape(NamedTuple):
    """Who uses the store."""

    policy: str
    programs: int = 0
    servers: int = 0
    seals: bool = False
    """The servers have a cold store: the oldest entries become blocks all the time."""
    compacts: bool = False
    """Free pages are given back all the time."""


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is preloaded."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("there is no C compiler, or no Linux")
    library = tmp_path_factory.mktemp("recorder") / "recorder.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, HERE / "recorder.c", "-ldl"], check=True)
    return library


class Opener:
    """A process that opens images, each in a child of its own, in another start of the machine."""

    def __init__(self) -> None:
        memory = Path("/dev/shm")
        self._folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self._process = subprocess.Popen(
            [sys.executable, HERE / "opening.py", "another-start-of-the-machine"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def open(self, image: dict[str, bytes]) -> dict[str, Any]:
        """What it holds. Raises AssertionError if it can't be opened."""
        assert self._process.stdin is not None and self._process.stdout is not None
        folder = self._folder / "store"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        images.write(image, folder)
        self._process.stdin.write(f"{folder}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert "failure" not in answer, f"{answer['failure']}\n{answer.get('where')}"
        holds: dict[str, Any] = answer["holds"]
        return holds

    def close(self) -> None:
        self._process.communicate()
        shutil.rmtree(self._folder)


@pytest.fixture
def opener() -> Iterator[Opener]:
    opener = Opener()
    yield opener
    opener.close()


def run(shape: Shape, disk: Path, recorder: Path) -> list[images.Record]:
    """What happened to the disk."""
    log, notes, store = disk.parent / "log", disk / "notes", disk / "store"
    environment = os.environ | {
        "LD_PRELOAD": str(recorder),
        "RLITE_DISK_FOLDER": str(disk),
        "RLITE_DISK_LOG": str(log),
    }

    def start(*words: str, **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, *words], cwd=ROOT, env=environment, stderr=subprocess.PIPE, **options)

    with ExitStack() as running:
        targets = [str(store)] * shape.programs
        for number in range(shape.servers):
            port, said = free_port(), disk.parent / f"said-{number}"
            words = ["--port", str(port), "--dir", str(store), "--appendfsync", shape.policy, "--logfile", str(said)]
            words += ["--cold-store", "local", "--cold-block-size", "32kb"] if shape.seals else []
            server = running.enter_context(start("-m", "rlite_pubsub", "serve", *words))
            running.callback(server.terminate)
            until(lambda: said.exists() and "Ready to accept" in said.read_text(), "a server")  # noqa: B023
            targets.append(f"redis://127.0.0.1:{port}")
        workers = [
            start(str(HERE / "work.py"), target, str(notes), shape.policy, str(COUNT), f"w{number}")
            for number, target in enumerate(targets)
        ]
        compactions = 0
        if shape.compacts:
            until((disk / "notes").exists, "a store")
        while shape.compacts and any(worker.poll() is None for worker in workers):
            with start("-m", "rlite_pubsub", "compact", "-s", str(store), stdout=subprocess.PIPE) as compaction:
                _, failure = compaction.communicate()
                assert compaction.returncode == 0, failure.decode()
                compactions += 1
        for worker in workers:
            _, said_of_it = worker.communicate()
            assert worker.returncode == 0, said_of_it.decode()
    assert bool(compactions) == shape.compacts, "nobody tried to give pages back to the file system"
    return list(images.read(log))


class Notes:
    """What was acknowledged so far."""

    def __init__(self) -> None:
        self.last: dict[str, int] = {}
        self.times: dict[tuple[str, int], int] = {}
        self.now_ns = 0

    def take(self, record: images.Record) -> None:
        if record.path == "notes" and record.kind == b"W":
            for line in record.data.decode().splitlines():
                name, number = line.split()
                self.last[name] = int(number)
                self.times[name, int(number)] = self.now_ns = record.time_ns

    def oldest_lost_ns(self, holds: dict[str, Any]) -> int:
        """When the oldest was acknowledged that is not there; now, if all are."""
        return min(self.times.get((name, last_of(holds, name) + 1), self.now_ns) for name in self.last)


def last_of(holds: dict[str, Any], name: str) -> int:
    entries = holds.get(f"t:{name}")
    return int(entries[-1].partition("-")[0]) if entries else 0


def faults(holds: dict[str, Any], notes: Notes, is_sure: bool) -> list[str]:
    """What is lost, or in pieces."""
    found = []
    for name, acknowledged in notes.last.items():
        entries = [int(id.partition("-")[0]) for id in holds.get(f"t:{name}", [])]
        last = last_of(holds, name)
        if is_sure and last < acknowledged:
            found.append(f"{name}: {acknowledged} was acknowledged, and {last} is the last there is")
        if entries != list(range(last - len(entries) + 1, last + 1)):
            found.append(f"{name} has holes: {entries}")
        if int(holds.get(f"k:{name}", 0)) != last or int(holds.get(f"l:{name}", [0])[-1]) != last:
            found.append(f"{name}: a transaction is there in parts")
        if [int(id.partition("-")[0]) for id in holds.get(f"c:{name}", [])] != list(range(1, last + 1)):
            found.append(f"{name}: a topic that nobody trims has holes, perhaps where its blocks end")
        found += [
            f"{name}: its {what} is of another transaction" for what in _of_another_transaction(holds, name, last)
        ]
    return found


def _of_another_transaction(holds: dict[str, Any], name: str, last: int) -> Iterator[str]:
    fields = {f"f{number % work.HASH_FIELDS}": str(number) for number in range(1, last + 1)}
    if holds.get(f"h:{name}", {}) != fields:
        yield "hash"
    members = set(map(str, range(max(1, last - work.SET_MEMBERS + 1), last + 1)))
    if set(holds.get(f"s:{name}", [])) != members:
        yield "set"
    ranked = dict(map(tuple, holds.get(f"z:{name}", [])))
    newest = ranked.pop("newest", 0)
    if newest != last or ranked != {f"m{number}": number for number in range(last - len(ranked) + 1, last + 1)}:
        yield "sorted set"


@pytest.mark.parametrize(
    "shape",
    [
        Shape("always", programs=1),
        Shape("everysec", programs=1),
        Shape("always", programs=2, servers=2),
        Shape("everysec", programs=1, servers=1),
        Shape("always", servers=1, seals=True),
        Shape("everysec", programs=2, servers=2, seals=True, compacts=True),
        Shape("always", programs=1, compacts=True),
    ],
    ids=lambda shape: "-".join(
        [shape.policy, f"{shape.programs}-programs", f"{shape.servers}-servers"]
        + ["sealing"] * shape.seals
        + ["compacting"] * shape.compacts
    ),
)
def test_whatever_the_disk_has_kept_the_store_opens_and_holds_what_it_must(
    shape: Shape, tmp_path: Path, recorder: Path, opener: Opener
) -> None:
    (tmp_path / "disk").mkdir()
    records = run(shape, tmp_path / "disk", recorder)
    dice = random.Random(f"{SEED} {shape}")
    early = [dice.randrange(1, min(len(records), 120)) for _ in range(CUTS // 3)]  # a new store
    cuts = sorted(early + [dice.randrange(1, len(records) + 1) for _ in range(CUTS - len(early))])
    disk, notes, at, most_lost_s = images.Disk(), Notes(), 0, 0.0
    for number, cut in enumerate(cuts):
        for record in records[at:cut]:
            disk.play(record)
            notes.take(record)
        at = cut
        mode = dice.choice(images.MODES)
        image = disk.image(mode, dice)
        store = {name.removeprefix("store/"): data for name, data in image.items() if name.startswith("store/")}
        what = f"image {number}, {mode}, behind record {cut} of {len(records)}, by seed {SEED}"
        try:
            holds = opener.open(store)
        except AssertionError as failure:
            pytest.fail(f"{what}: {failure}")
        found = faults(holds, notes, shape.policy == "always")
        assert not found, f"{what}: {found}"
        if notes.last:
            most_lost_s = max(most_lost_s, (notes.now_ns - notes.oldest_lost_ns(holds)) / 1e9)
    print(f"{shape}: {len(cuts)} images of {len(records)} records; lost at most the last {most_lost_s:.3f} s")
