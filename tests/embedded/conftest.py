"""Clients of a store in a temporary folder, sync and in both protocols."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import rlite_pubsub


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def protocol(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def client(folder: Path, protocol: int) -> Iterator[rlite_pubsub.Redis]:
    with rlite_pubsub.Redis(folder, protocol=protocol) as client:
        yield client
