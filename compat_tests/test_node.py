"""ioredis and node-redis: each tells its story against ours and against redis-server, and the two are the same.

The clients are in node_modules: `npm ci` in this folder. RLITE_TEST_NODE names node; empty means: there is none.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from certificates import Authority
from patience import PATIENCE_S
from ports import free_port

from compat_tests.servers import SocketServer, find_program, start_ours

NODE = find_program("RLITE_TEST_NODE", "node")
HERE = Path(__file__).parent
STORIES = ["ioredis.mjs", "node-redis.mjs", "ioredis-streams.mjs", "node-redis-streams.mjs"]

pytestmark = [
    pytest.mark.skipif(NODE is None, reason="no node: ioredis and node-redis are not tested"),
    pytest.mark.skipif(not (HERE / "node_modules").is_dir(), reason="no node_modules: run `npm ci` in compat_tests"),
]


class Tls(NamedTuple):
    """How a server is reached over TLS."""

    port: int
    authority: Authority


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SocketServer, Tls]]:
    """Ours, with TLS as well."""
    folder = tmp_path_factory.mktemp("secure")
    authority, port = Authority(folder), free_port()
    certificate, key = authority.issue("server")
    words = ["--tls-port", str(port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
    server = start_ours(folder, *words, "--tls-auth-clients", "no")
    yield server, Tls(port, authority)
    server.stop()


def tell(story: str, server: SocketServer, protocol: int, tls: Tls | None = None) -> str:
    assert NODE is not None
    port = server.port if tls is None else tls.port
    command = [NODE, str(HERE / "node" / story), str(port), str(protocol)]
    environment = os.environ | {"PATIENCE_MS": f"{500 * PATIENCE_S:.0f}"}  # so that it can still say what did not come
    if tls is not None:
        environment["STORY_CA"] = str(tls.authority.file)
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment)
    assert done.returncode == 0, f"against {server.name}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("story", STORIES)
def test_story_is_the_same_as_with_redis(
    ours: SocketServer, theirs: SocketServer, protocol: int, story: str
) -> None:
    assert tell(story, ours, protocol) == tell(story, theirs, protocol)


@pytest.mark.parametrize("story", STORIES)
def test_story_comes_to_its_end(ours: SocketServer, protocol: int, story: str) -> None:
    """Needs no redis-server."""
    last = tell(story, ours, protocol).splitlines()[-1]
    assert last in ('["quit","OK","OK"]', '["closed",false,false]')


@pytest.mark.parametrize("story", STORIES)
def test_story_over_tls_is_the_same_as_without(
    ours: SocketServer, secure: tuple[SocketServer, Tls], protocol: int, story: str
) -> None:
    server, tls = secure
    server.reset()
    assert tell(story, server, protocol, tls) == tell(story, ours, protocol)
