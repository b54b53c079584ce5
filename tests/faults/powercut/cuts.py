"""Cuts the power at random moments of a run, opens what the disk may hold then, and judges it.

What an image is depends on the log, a seed and the image's number, and on nothing else: so one that has a fault is kept
with its log, and can be made again (`again`), though no two runs are the same.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults.powercut import images
from tests.faults.powercut.crew import HERE, ROOT, SHAPES, Shape
from tests.faults.powercut.judgement import Notes, faults, reached

EARLY_RECORDS = 120
"""A store that is new: every third image is of one of these."""
_ABOUT = "about.json"


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

    def open(self, image: images.Image) -> dict[str, Any]:
        """`holds` what it holds; or `failure`, why it can't be opened or proven."""
        return self._opened(image, "store", "")

    def restore(self, image: images.Image) -> dict[str, Any]:
        """The same of what can be restored from a target, of which this is an image; and nothing, where nothing is to
        be restored yet."""
        return self._opened(image, "target", "restore ")

    def _opened(self, image: images.Image, name: str, order: str) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        images.write(image, folder)
        self._process.stdin.write(f"{order}{folder}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.communicate()
        shutil.rmtree(self._folder)


class Cut(NamedTuple):
    """One image."""

    number: int
    at: int
    """So many records of the log come before."""
    mode: str
    dice: random.Random


class Opened(NamedTuple):
    """What came of it."""

    fault: str
    """What is wrong with it, and where it was kept; or ""."""
    lost_s: float


class Run(NamedTuple):
    """What was recorded, and what it went on with."""

    shape: Shape
    seed: str
    log: Path
    left: images.Image | None = None
    """By the power cut before it."""


def judged(run: Run, count: int, opener: Opener) -> Iterator[Opened]:
    """So many images of one run."""
    records = list(images.read(run.log))
    disk, notes, told, at = *_begun(run, opener), 0
    for cut in sorted((_cut(run, number, len(records)) for number in range(count)), key=lambda cut: cut.at):
        for record in records[at : cut.at]:
            disk.play(record)
            notes.take(record)
            told.take(record)
        at = cut.at
        image = disk.image(cut.mode, cut.dice)
        found, lost_s = _judged(image, notes, told, run.shape, opener)
        if found:
            place = _kept(run, cut, found, image)
            what = f"image {cut.number} of {run.shape.name}, {cut.mode}, behind record {at} of {len(records)}"
            found = f"{what}, seed {run.seed}: {found}\nplay it again: python -m tests.faults.powercut --again {place}"
        yield Opened(found, lost_s)


def left_by(run: Run) -> images.Image:
    """What a cut in the middle of a run leaves, to go on with."""
    records = list(images.read(run.log))
    dice = random.Random(f"{run.seed} {run.shape.name} left")
    disk = images.Disk(run.left)
    for record in records[: dice.randint(len(records) // 2, len(records))]:
        disk.play(record)
    image = disk.image(dice.choice(images.MODES), dice)
    return {path: content for path, content in image.items() if path.startswith("store/")}


def again(place: Path, opener: Opener) -> str:
    """What is wrong with an image that was kept; "" if nothing is any more."""
    said = json.loads((place / _ABOUT).read_text())
    left = images.taken(place / "left") if (place / "left").is_dir() else None
    run = Run(SHAPES[said["shape"]], said["seed"], place / "log", left)
    records = list(images.read(run.log))
    cut = _cut(run, said["number"], len(records))
    disk, notes, told = _begun(run, opener)
    for record in records[: cut.at]:
        disk.play(record)
        notes.take(record)
        told.take(record)
    return _judged(disk.image(cut.mode, cut.dice), notes, told, run.shape, opener)[0]


def _begun(run: Run, opener: Opener) -> tuple[images.Disk, Notes, Notes]:
    """The disk, what was acknowledged, and what the backup has told of."""
    told = Notes(path="told")
    if run.left is None:
        return images.Disk(), Notes(), told
    answer = opener.open(_part(run.left, "store"))
    assert "failure" not in answer, answer
    return images.Disk(run.left), Notes(reached(answer["holds"])), told


def _cut(run: Run, number: int, records: int) -> Cut:
    dice = random.Random(f"{run.seed} {run.shape.name} {number}")
    at = dice.randint(1, min(records, EARLY_RECORDS) if number % 3 == 0 else records)
    return Cut(number, at, dice.choice(images.MODES), dice)


def _judged(image: images.Image, notes: Notes, told: Notes, shape: Shape, opener: Opener) -> tuple[str, float]:
    """What is wrong with it, and for how long what is lost had been acknowledged."""
    answer = opener.open(_part(image, "store"))
    if "failure" in answer:
        return f"{answer['failure']}\n{answer.get('where', '')}", 0.0
    holds = answer["holds"]
    found = faults(holds, notes, shape.policy == "always")
    if shape.backs_up:
        found += _faults_of_backup(_part(image, "backup"), told, opener)
    return "\n".join(found), notes.lost_s(holds)


def _faults_of_backup(image: images.Image, told: Notes, opener: Opener) -> list[str]:
    """What it has told of can be restored, whatever the policy of the store."""
    answer = opener.restore(image)
    if "failure" in answer:
        return [f"the backup: {answer['failure']}\n{answer.get('where', '')}"]
    return [f"the backup: {fault}" for fault in faults(answer["holds"], told, is_sure=True)]


def _part(image: images.Image, folder: str) -> images.Image:
    start = f"{folder}/"
    return {path.removeprefix(start): data for path, data in image.items() if path.startswith(start)}


def _kept(run: Run, cut: Cut, found: str, image: images.Image) -> Path:
    """All that is needed to make it again, and the image itself."""
    place = Path(tempfile.mkdtemp(prefix=f"power-cut-{run.shape.name}-{run.seed}-{cut.number}-"))
    shutil.copyfile(run.log, place / "log")
    images.write(_part(image, "store"), place / "image")
    if run.left is not None:
        images.write(run.left, place / "left")
    said = {"shape": run.shape.name, "seed": run.seed, "number": cut.number, "found": found}
    (place / _ABOUT).write_text(json.dumps(said))
    return place
