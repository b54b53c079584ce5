"""Programs on a store, and a disk that is soon full."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.program import Program, Start
from tests.server.conftest import tiny_disk

__all__ = ["start", "tiny_disk"]


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Start a program on the store, `start(source)`; it is killed when the test ends."""
    programs: list[Program] = []

    def start_program(source: str, **options: Any) -> Program:
        programs.append(Program(options.pop("folder", folder), source, **options))
        return programs[-1]

    yield start_program
    for program in programs:
        program.clean_up()
