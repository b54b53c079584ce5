"""LINK: what is asked for, and that nobody sees a password."""

from __future__ import annotations

import pytest
import redis
from patience import until
from ports import free_port
from server_process import Serve, ServerProcess

SECRET = "opensesame"


@pytest.fixture
def client(server: ServerProcess) -> redis.Redis:
    return redis.Redis(port=server.port, decode_responses=True)


def test_no_password_shows_anywhere(serve: Serve) -> None:
    server = serve("--slowlog-log-slower-than", "0")
    client = redis.Redis(port=server.port, decode_responses=True)
    url = f"redis://leaf:{SECRET}@127.0.0.1:{free_port()}/0?health_check_interval={SECRET}"
    with client.monitor() as monitor:
        client.execute_command("LINK", "CREATE", "central", url)
        client.ping()
        seen = [monitor.next_command()["command"]]
        while seen[-1] != "PING":
            seen.append(monitor.next_command()["command"])
    shown = [
        seen,
        client.execute_command("LINK", "LIST"),
        client.execute_command("LINK", "INFO", "central"),
        client.execute_command("SLOWLOG", "GET", "-1"),
        client.info("everything"),
        client.config_get("*"),
        server.log(),
        server.output(),
    ]
    assert "leaf@127.0.0.1" in str(shown)
    assert SECRET not in str(shown)


def test_a_link_that_cannot_be_is_refused(client: redis.Redis) -> None:
    for words, text in (
        (["a b", "redis://h"], "the name of a link"),
        (["a", f"http://x:{SECRET}@h"], "a link leads to one of"),
        (["a", "redis://"], "names no host"),
        (["a", "redis://h", "CHANNELS"], "CHANNELS needs a pattern"),
        (["a", "redis://h", "DIRECTION", "up"], "DIRECTION is in, out or both"),
        (["a", "redis://h", "FROM", "yesterday"], "FROM is an age"),
        (["a", "redis://h", "WHAT"], "syntax error"),
    ):
        with pytest.raises(redis.ResponseError, match=text) as refusal:
            client.execute_command("LINK", "CREATE", *words)
        assert SECRET not in str(refusal.value)
    assert client.execute_command("LINK", "LIST") == []


def test_a_name_is_used_once_and_what_is_not_there_is_said(client: redis.Redis) -> None:
    url = f"redis://127.0.0.1:{free_port()}"
    client.execute_command("LINK", "CREATE", "a", url)
    with pytest.raises(redis.ResponseError, match="exists already"):
        client.execute_command("LINK", "CREATE", "a", url)
    assert client.execute_command("LINK", "DELETE", "a") == 1
    assert client.execute_command("LINK", "DELETE", "a") == 0
    for word in ("INFO", "PAUSE", "RESUME"):
        with pytest.raises(redis.ResponseError, match="no such link"):
            client.execute_command("LINK", word, "a")


def test_a_link_stands_in_the_configuration(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("conf") / "rlite.conf"
    file.write_text(f"link central redis://u:{SECRET}@127.0.0.1:{free_port()} CHANNELS news.*\n")
    server = serve(str(file))
    client = redis.Redis(port=server.port, decode_responses=True)
    (found,) = client.execute_command("LINK", "LIST")
    assert found["name"] == "central"
    assert client.execute_command("LINK", "INFO", "central")["channels"] == ["news.*"]
    client.config_rewrite()
    assert SECRET in file.read_text()


def test_a_bad_link_stops_the_start_without_showing_its_password(
    serve: Serve, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("conf") / "rlite.conf"
    file.write_text(f"link central redis://u:{SECRET}@h DIRECTION up\n")
    server = serve(str(file), wait=False)
    assert server.exit_code() != 0
    assert "DIRECTION is in, out or both" in server.output() + server.log()
    assert SECRET not in server.output() + server.log()


def test_info_and_warnings_tell_of_a_link_that_is_down(client: redis.Redis) -> None:
    port = free_port()
    client.execute_command("LINK", "CREATE", "central", f"redis://u:{SECRET}@127.0.0.1:{port}")
    until(lambda: client.info("links")["link0"]["state"] == "down", "the state")
    until(lambda: "link_down" in str(client.info("warnings")), "the warning")
    assert SECRET not in str(client.execute_command("INFO", "everything"))
