"""Servers as processes, killed when the test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from server_process import ServerProcess

Serve = Callable[..., ServerProcess]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start a server, `serve("--maxclients", "10")`; further ones in the same folder share its store and log."""
    servers: list[ServerProcess] = []

    def start(*flags: str, folder: Path = tmp_path, **options: Any) -> ServerProcess:
        servers.append(ServerProcess(folder, *flags, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.clean_up()


@pytest.fixture
def server(serve: Serve) -> ServerProcess:
    return serve()
