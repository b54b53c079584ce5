"""Servers that speak HTTP, and a bus without one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bus import Bus
from http_server import HttpServer


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
