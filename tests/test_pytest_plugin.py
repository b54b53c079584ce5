"""The fixtures that the package brings give a test its own server."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis
from patience import PATIENCE_S

from rlite_pubsub import Server

pytest_plugins = ("pytester",)


def test_fixture_is_a_server_of_its_own(rlite_server: Server) -> None:
    client = redis.Redis(port=rlite_server.port)
    listener = client.pubsub()
    listener.subscribe("a")
    assert listener.get_message(timeout=PATIENCE_S) is not None
    assert client.publish("a", "x") == 1
    message = listener.get_message(timeout=PATIENCE_S)
    assert message is not None and message["data"] == b"x"
    listener.close()
    client.close()


def test_session_fixture_is_another_server(rlite_server: Server, rlite_session_server: Server) -> None:
    with redis.from_url(rlite_session_server.url) as client:
        assert client.ping()
    assert rlite_server.port != rlite_session_server.port


def test_store_of_a_fixture_is_gone_after_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pathlib, redis

        def test_it(rlite_server):
            with redis.from_url(rlite_server.url) as client:
                folder = client.config_get("dir")["dir"]
            assert pathlib.Path(folder).is_dir()
            pathlib.Path("folder").write_text(folder)
        """
    )
    pytester.runpytest_subprocess("-q").assert_outcomes(passed=1)
    assert not Path((pytester.path / "folder").read_text()).exists()


def test_plugin_imports_no_server_until_a_test_asks_for_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it():
            assert "rlite_pubsub.server.node" not in sys.modules
            assert "lmdb" not in sys.modules
        """
    )
    pytester.runpytest_subprocess("-q").assert_outcomes(passed=1)
