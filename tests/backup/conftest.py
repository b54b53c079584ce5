"""Programs that write while backups are made, and what they must have become."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import diary
import pytest
from bucket import Bucket


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    found = Bucket()
    yield found
    found.end()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes"


@pytest.fixture
def keep_diary(notes: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a program that writes to a store, as `diary.start`."""
    begun: list[subprocess.Popen[bytes]] = []

    def start(target: str, count: int = 0) -> subprocess.Popen[bytes]:
        begun.append(diary.start(target, notes, count))
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.wait()


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[diary.Replay]:
    found = diary.Replay(tmp_path / "replay")
    yield found
    found.close()
