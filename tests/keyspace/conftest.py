"""Keys of one process: alone, with retention, or with a topic that has groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from engines import open_data
from keeper import Clock, Keeper
from topic_house import house  # noqa: F401  a fixture

from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.storage.environment import Environment


@pytest.fixture
def clock() -> Clock:
    return Clock(1_000)


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Environment]:
    """It is soon full."""
    opened = open_data(tmp_path / "data.mdb", 1 << 22)
    yield opened
    opened.close()


@pytest.fixture
def keyspace(data: Environment, clock: Clock) -> Keyspace:
    return Keyspace(data, clock)


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    keeper = Keeper(tmp_path)
    yield keeper
    keeper.data.close()
