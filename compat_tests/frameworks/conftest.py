"""One server for the tests of a module, and a stage for each test.

The frameworks are in an environment of their own, `scripts/test --frameworks` makes it: without them nothing here runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from compat_tests.frameworks.stage import Server, Stage

if find_spec("kombu") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.kill()


@pytest.fixture
def stage(server: Server, tmp_path: Path) -> Iterator[Stage]:
    server.flush()
    stage = Stage(server, tmp_path)
    yield stage
    stage.end()


@pytest.fixture
def folder_stage(tmp_path: Path) -> Iterator[Stage]:
    """A stage with no server."""
    stage = Stage(None, tmp_path)
    yield stage
    stage.end()


@pytest.fixture(params=["stage", "folder_stage"], ids=["server", "folder"])
def place(request: pytest.FixtureRequest) -> Stage:
    """A stage with the server, and one with none."""
    stage = request.getfixturevalue(request.param)
    assert isinstance(stage, Stage)
    return stage
