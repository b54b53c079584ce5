"""The servers that one body of tests runs against, times RESP2 and RESP3.

`server` is ours or the real one, `any_server` may be fakeredis, too. `ours` and `theirs` are for tests that set one
beside the other. Where there is no redis-server, its half is skipped, and the last lines say so.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.servers import REDIS_SERVER, FakeServer, SocketServer, start_ours, start_redis

_NO_REDIS = "no redis-server: nothing is compared with the real one"


@pytest.fixture(scope="session")
def _ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SocketServer]:
    server = start_ours(tmp_path_factory.mktemp("ours"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def _theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SocketServer]:
    if REDIS_SERVER is None:
        pytest.skip(_NO_REDIS)
    server = start_redis(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture
def ours(_ours: SocketServer) -> Iterator[SocketServer]:
    yield _ours
    _ours.reset()


@pytest.fixture
def theirs(_theirs: SocketServer) -> Iterator[SocketServer]:
    yield _theirs
    _theirs.reset()


@pytest.fixture(params=["ours", "theirs"])
def server(request: pytest.FixtureRequest) -> SocketServer:
    """Ours and the real one, in turns."""
    chosen = request.getfixturevalue(request.param)
    assert isinstance(chosen, SocketServer)
    return chosen


@pytest.fixture(params=["ours", "theirs", "fakeredis"])
def any_server(request: pytest.FixtureRequest) -> SocketServer | FakeServer:
    """Ours, the real one and fakeredis, in turns, for what needs no socket."""
    if request.param == "fakeredis":
        return FakeServer()
    chosen = request.getfixturevalue(request.param)
    assert isinstance(chosen, SocketServer)
    return chosen


@pytest.fixture(params=[2, 3], ids=["RESP2", "RESP3"])
def protocol(request: pytest.FixtureRequest) -> int:
    chosen = request.param
    assert isinstance(chosen, int)
    return chosen


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = {str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", ())
               if report.nodeid.startswith("compat_tests/")}
    for reason in sorted(reasons):
        terminalreporter.write_line(f"compat_tests: {reason}", yellow=True)
