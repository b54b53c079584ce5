"""The power goes at any moment: whatever the disk has kept of what was not synced, the store opens, holds all that it
must, and is whole.

`python -m tests.faults.powercut` makes as many images as wanted; a failure here prints what plays it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.powercut import crew, cuts
from tests.faults.powercut.crew import SHAPES, Shape

IMAGES = int(os.environ.get("RLITE_POWER_CUTS", "30"))
SEED = os.environ.get("RLITE_POWER_CUT_SEED", "1")


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is preloaded."""
    made = crew.made_recorder(tmp_path_factory.mktemp("recorder"))
    if made is None:
        pytest.skip("there is no C compiler, or no Linux")
    return made


@pytest.fixture(scope="module")
def opener() -> Iterator[cuts.Opener]:
    opener = cuts.Opener()
    yield opener
    opener.close()


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_whatever_the_disk_has_kept_the_store_opens_and_holds_what_it_must(
    shape: Shape, tmp_path: Path, recorder: Path, opener: cuts.Opener
) -> None:
    run = cuts.Run(shape, SEED, crew.run(shape, tmp_path, recorder))
    assert_whole(run, opener)


@pytest.mark.parametrize("name", ["always-1-programs-0-servers", "everysec-1-programs-1-servers"])
def test_what_a_cut_has_left_is_there_after_another_one(
    name: str, tmp_path: Path, recorder: Path, opener: cuts.Opener
) -> None:
    shape = SHAPES[name]
    for part in ("first", "second"):
        (tmp_path / part).mkdir()
    first = cuts.Run(shape, SEED, crew.run(shape, tmp_path / "first", recorder))
    left = cuts.left_by(first)
    assert_whole(cuts.Run(shape, SEED, crew.run(shape, tmp_path / "second", recorder, left=left), left), opener)


def assert_whole(run: cuts.Run, opener: cuts.Opener) -> None:
    opened = list(cuts.judged(run, IMAGES, opener))
    assert len(opened) == IMAGES
    assert not [one.fault for one in opened if one.fault]
