"""Clients of a store in a temporary folder, sync and in both protocols."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from installed import ReplacedInVain

import rlite_pubsub
from rlite_pubsub.embedded import host, loop_line


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def protocol(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks into the mailbox or the inbox without being woken, as otherwise happens once a second."""
    for module in (host, loop_line):
        with suppress(ReplacedInVain):  # compiled, it looks up none, and looks more often
            monkeypatch.setattr(module, "BOUND_SECONDS", 3600.0)


@pytest.fixture
def client(folder: Path, protocol: int) -> Iterator[rlite_pubsub.Redis]:
    with rlite_pubsub.Redis(folder, protocol=protocol) as client:
        yield client


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """For what waits."""
    with ThreadPoolExecutor(16) as pool:
        yield pool
