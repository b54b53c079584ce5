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
from tests.faults.powercut.judgement import Notes, faults

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

    def open(self, image: dict[str, bytes]) -> dict[str, Any]:
        """`holds` what it holds; or `failure`, why it can't be opened or proven."""
        assert self._process.stdin is not None and self._process.stdout is not None
        folder = self._folder / "store"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        images.write(image, folder)
        self._process.stdin.write(f"{folder}\n")
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


def judged(log: Path, shape: Shape, seed: str, count: int, opener: Opener) -> Iterator[Opened]:
    """So many images of one run."""
    records = list(images.read(log))
    disk, notes, at = images.Disk(), Notes(), 0
    for cut in sorted((_cut(seed, shape, number, len(records)) for number in range(count)), key=lambda cut: cut.at):
        for record in records[at : cut.at]:
            disk.play(record)
            notes.take(record)
        at = cut.at
        found, lost_s, image = _judged(disk, cut, notes, shape, opener)
        if found:
            place = Path(tempfile.mkdtemp(prefix=f"power-cut-{shape.name}-{seed}-{cut.number}-"))
            shutil.copyfile(log, place / "log")
            images.write(image, place / "image")
            said = {"shape": shape.name, "seed": seed, "number": cut.number, "found": found}
            (place / _ABOUT).write_text(json.dumps(said))
            what = f"image {cut.number} of {shape.name}, {cut.mode}, behind record {at} of {len(records)}, seed {seed}"
            found = f"{what}: {found}\nplay it again: python -m tests.faults.powercut --again {place}"
        yield Opened(found, lost_s)


def again(place: Path, opener: Opener) -> str:
    """What is wrong with an image that was kept; "" if nothing is any more."""
    said = json.loads((place / _ABOUT).read_text())
    shape, records = SHAPES[said["shape"]], list(images.read(place / "log"))
    cut = _cut(said["seed"], shape, said["number"], len(records))
    disk, notes = images.Disk(), Notes()
    for record in records[: cut.at]:
        disk.play(record)
        notes.take(record)
    return _judged(disk, cut, notes, shape, opener)[0]


def _cut(seed: str, shape: Shape, number: int, records: int) -> Cut:
    dice = random.Random(f"{seed} {shape.name} {number}")
    at = dice.randint(1, min(records, EARLY_RECORDS) if number % 3 == 0 else records)
    return Cut(number, at, dice.choice(images.MODES), dice)


def _judged(
    disk: images.Disk, cut: Cut, notes: Notes, shape: Shape, opener: Opener
) -> tuple[str, float, dict[str, bytes]]:
    """What is wrong with the image, for how long what is lost had been acknowledged, and the image."""
    whole = disk.image(cut.mode, cut.dice)
    image = {name.removeprefix("store/"): data for name, data in whole.items() if name.startswith("store/")}
    answer = opener.open(image)
    if "failure" in answer:
        return f"{answer['failure']}\n{answer.get('where', '')}", 0.0, image
    holds = answer["holds"]
    return "\n".join(faults(holds, notes, shape.policy == "always")), notes.lost_s(holds), image
