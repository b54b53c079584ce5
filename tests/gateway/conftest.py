"""Servers that speak HTTP, and a bus without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import redis
from bus import Bus
from http_server import HttpServer

Servers = dict[tuple[str, ...], HttpServer]


@pytest.fixture
def serve(serve_http: Callable[..., HttpServer]) -> Callable[..., HttpServer]:
    """All servers here speak HTTP."""
    return serve_http


@pytest.fixture
def bus() -> Bus:
    return Bus()


@pytest.fixture
def server(serve: Callable[..., HttpServer]) -> HttpServer:
    return serve()


@pytest.fixture(scope="module")
def standing_servers() -> Iterator[Servers]:
    servers: Servers = {}
    yield servers
    for server in servers.values():
        server.clean_up()


@pytest.fixture
def standing(
    standing_servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., HttpServer]]:
    """As `serve`, for tests that change nothing but keys, such as the cases of a table: all of a module that want the
    same flags get the same server, and each finds it without keys."""
    used: list[tuple[str, ...]] = []

    def stand(*flags: str) -> HttpServer:
        if flags not in standing_servers:
            standing_servers[flags] = HttpServer(tmp_path_factory.mktemp("standing"), *flags)
        used.append(flags)
        return standing_servers[flags]

    yield stand
    for flags in used:
        password = dict(zip(flags, flags[1:], strict=False)).get("--requirepass")
        with redis.Redis(port=standing_servers[flags].port, password=password) as client:
            client.flushall()


@pytest.fixture
def standing_server(standing: Callable[..., HttpServer]) -> HttpServer:
    return standing()
