"""Servers that speak HTTP, killed when the test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from http_server import HttpServer


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., HttpServer]]:
    servers: list[HttpServer] = []

    def start(*flags: str, folder: Path = tmp_path, **options: Any) -> HttpServer:
        servers.append(HttpServer(folder, *flags, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.clean_up()


@pytest.fixture
def server(serve: Callable[..., HttpServer]) -> HttpServer:
    return serve()
