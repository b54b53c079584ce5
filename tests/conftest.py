"""A store, servers on it as processes of their own, and what holds for all tests of the package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import get_ident
from typing import Any

import pytest
import recorded_session
from engines import open_data
from http_server import HttpServer
from server_process import Serve, ServerProcess

from rlite_pubsub.storage import fork
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment
from rlite_pubsub.storage.log.environment import LogEnvironment
from rlite_pubsub.storage.store import Store


@pytest.fixture(autouse=True)
def no_turn_is_left_open() -> Iterator[None]:
    """A turn that a test leaves open would keep the environment from being closed in the children of later tests."""
    yield
    for environment in list(fork.open_here):
        if isinstance(environment, LmdbEnvironment | LogEnvironment):
            turns = environment.handle.turns if isinstance(environment, LmdbEnvironment) else environment.turns
            turn = turns.get(get_ident())
            if turn is not None:
                turn.end(commit=False)


@pytest.fixture(autouse=True)
def houses_are_demolished() -> Iterator[None]:
    """Those that a test has built; one of a whole module stands before its tests, and stays."""
    before = len(recorded_session.built)
    yield
    for house in recorded_session.built[before:]:
        house.demolish()
    del recorded_session.built[before:]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a store that is not there yet. `serve` has its store here, too."""
    return tmp_path / "store"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    """One file, with room for all that tests put into it."""
    opened = open_data(tmp_path / "data.mdb", 1 << 30)
    yield opened
    opened.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start a server, `serve("--maxclients", "10")`; further ones in the same folder share its store and log."""
    servers: list[ServerProcess] = []

    def start(*flags: str, folder: Path = tmp_path, **options: Any) -> ServerProcess:
        folder.mkdir(exist_ok=True)
        servers.append(ServerProcess(folder, *flags, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.clean_up()


@pytest.fixture
def server(serve: Serve) -> ServerProcess:
    return serve()


@pytest.fixture
def serve_http(tmp_path: Path) -> Iterator[Callable[..., HttpServer]]:
    """As `serve`, for servers that speak HTTP too."""
    servers: list[HttpServer] = []

    def start(*flags: str, folder: Path = tmp_path, **options: Any) -> HttpServer:
        servers.append(HttpServer(folder, *flags, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.clean_up()


@pytest.fixture(params=["server", "folder"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A URL, or a folder that no server has."""
    if request.param == "folder":
        return str(tmp_path / "own")
    return f"redis://127.0.0.1:{request.getfixturevalue('server').port}"
