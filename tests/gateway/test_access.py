"""Whom HTTP lets in, and what pages of other origins may do."""

from __future__ import annotations

import socket
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest
from event_source import EventSource
from http_server import HttpServer
from patience import PATIENCE_S, until
from redis.exceptions import ResponseError

Serve = Callable[..., HttpServer]

PASSWORD = "sesame & co"
PAGE = "https://page.example"


@pytest.fixture
def locked(serve: Serve) -> HttpServer:
    return serve("--requirepass", PASSWORD)


def test_nothing_is_done_without_the_password(locked: HttpServer) -> None:
    for method, path in [("POST", "/api/events?type=t"), ("GET", "/api/events"), ("GET", "/nowhere")]:
        status, headers, _ = locked.ask(method, path, b"x" if method == "POST" else b"")
        assert status == 401 and headers["www-authenticate"].startswith("Bearer")
    assert locked.ask("POST", "/api/events?type=t", b"x", Authorization="Bearer wrong")[0] == 401
    assert locked.ask("POST", "/api/events?type=t&access_token=sesame%20%26%20co", b"x")[0] == 401


def test_password_is_a_bearer_token_and_one_of_basic_authentication(locked: HttpServer) -> None:
    basic = b64encode(f"default:{PASSWORD}".encode()).decode()
    for said in (f"Bearer {PASSWORD}", f"bearer {PASSWORD}", f"Basic {basic}"):
        assert locked.ask("POST", "/api/events?type=t", b"x", Authorization=said)[0] == 200
    for said in ("Basic", "Basic !!", f"Basic {b64encode(b'other:' + PASSWORD.encode()).decode()}", "Digest x"):
        assert locked.ask("POST", "/api/events?type=t", b"x", Authorization=said)[0] == 401


def test_event_source_that_can_send_no_header_says_the_password_in_its_query(locked: HttpServer) -> None:
    locked.ask("POST", "/api/events?type=t", b"x", Authorization=f"Bearer {PASSWORD}")
    assert EventSource(locked.http_port, "?access_token=sesame%20%26%20co").next().data == "x"


def test_probes_need_no_password(locked: HttpServer) -> None:
    assert locked.ask("GET", "/readyz")[0] == 200


def test_only_the_loopback_is_listened_on(server: HttpServer) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        address = probe.getsockname()[0]
    if address.startswith("127."):
        pytest.skip("this machine has no other address")
    with pytest.raises(OSError):
        socket.create_connection((address, server.http_port), 5).close()


def test_page_of_another_origin_changes_nothing(server: HttpServer) -> None:
    assert server.ask("POST", "/api/events?type=t", b"x", Origin=PAGE)[0] == 403
    assert not server.redis().exists("events")
    own = f"http://127.0.0.1:{server.http_port}"
    status, headers, _ = server.ask("POST", "/api/events?type=t", b"x", Origin=own)
    assert status == 200 and "access-control-allow-origin" not in headers


def test_page_of_an_origin_that_is_named_may(serve: Serve) -> None:
    server = serve("--http-cors-origins", f"{PAGE} https://other.example")
    status, headers, _ = server.ask("POST", "/api/events?type=t", b"x", Origin=PAGE)
    assert status == 200 and headers["access-control-allow-origin"] == PAGE and headers["vary"] == "origin"
    stream = EventSource(server.http_port, Origin=PAGE)
    assert stream.response.getheader("access-control-allow-origin") == PAGE
    assert stream.response.getheader("access-control-expose-headers") == "last-event-id"
    refused, headers, _ = server.ask("POST", "/api/events?type=", b"x", Origin=PAGE)
    assert refused == 400 and headers["access-control-allow-origin"] == PAGE
    status, headers, _ = server.ask("OPTIONS", "/api/events", Origin=PAGE, Access_Control_Request_Method="POST")
    assert status == 204 and "last-event-id" in headers["access-control-allow-headers"]
    assert server.ask("POST", "/api/events?type=t", b"x", Origin="https://third.example")[0] == 403
    _, headers, _ = server.ask("OPTIONS", "/api/events", Origin="https://third.example")
    assert "access-control-allow-origin" not in headers and "access-control-allow-methods" not in headers


def test_methods_that_events_do_not_have_are_refused(server: HttpServer) -> None:
    status, headers, _ = server.ask("DELETE", "/api/events")
    assert status == 405 and headers["allow"] == "GET, HEAD, POST, OPTIONS"


def test_without_http_port_nothing_of_it_is_imported() -> None:
    code = (
        "import sys\n"
        "from rlite_pubsub.server.background import Server\n"
        "with Server():\n"
        "    pass\n"
        "found = {name.split('.')[0] for name in sys.modules} & {'uvicorn', 're2', 'prometheus_client'}\n"
        "assert not found and 'rlite_pubsub.gateway' not in sys.modules, found\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE_S)


def test_port_that_is_taken_is_said_at_the_start(serve: Serve, server: HttpServer) -> None:
    second = serve(http_port=server.http_port, wait=False)
    assert second.exit_code() == 1
    assert f"Could not listen for HTTP on port {server.http_port}" in second.log() + second.output()


TOKENS = """
# of the shop
reader-0123456789abc read orders.* events
writer-0123456789abc write orders.* read news*
all-0123456789abcdef read * write *
"""


@pytest.fixture
def with_tokens(serve: Serve, tmp_path: Path) -> HttpServer:
    (tmp_path / "tokens").write_text(TOKENS)
    return serve("--http-tokens", str(tmp_path / "tokens"))


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.write_text(TOKENS)
    return file


@pytest.mark.parametrize(
    ("token", "method", "path", "status"),
    [
        ("", "POST", "/api/topics/orders.a", 401),
        ("", "GET", "/metrics", 401),
        ("unknown-0123456789abc", "GET", "/metrics", 401),
        ("reader-0123456789abc", "POST", "/api/topics/orders.a", 403),
        ("reader-0123456789abc", "POST", "/api/events?type=t", 403),
        ("reader-0123456789abc", "GET", "/api/topics/orders.a", 200),
        ("reader-0123456789abc", "GET", "/api/topics/orders.a/groups", 404),
        ("reader-0123456789abc", "GET", "/api/topics/secret", 403),
        ("reader-0123456789abc", "GET", "/api/topics/secret/info", 403),
        ("reader-0123456789abc", "GET", "/api/topics", 403),
        ("reader-0123456789abc", "GET", "/api/channels?pattern=*", 403),
        ("reader-0123456789abc", "GET", "/api/channels/?pattern=orders.*&pattern=o*", 403),
        ("reader-0123456789abc", "GET", "/metrics", 403),
        ("writer-0123456789abc", "POST", "/api/topics/orders.a", 200),
        ("writer-0123456789abc", "POST", "/api/channels/orders.a", 200),
        ("writer-0123456789abc", "POST", "/api/channels/secret", 403),
        ("writer-0123456789abc", "POST", "/api/topics/secret/batch", 403),
        ("writer-0123456789abc", "GET", "/api/topics/orders.a", 403),
        ("all-0123456789abcdef", "GET", "/metrics", 200),
        ("all-0123456789abcdef", "POST", "/api/events?type=t", 200),
    ],
)
def test_token_may_what_its_line_says_and_no_more(
    standing: Serve, tokens: Path, token: str, method: str, path: str, status: int
) -> None:
    server = standing("--http-tokens", str(tokens))
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    assert server.ask(method, path, b"x" if method == "POST" else b"", **headers)[0] == status


def test_token_may_follow_the_patterns_that_it_names(with_tokens: HttpServer) -> None:
    query = "?pattern=orders.*&access_token=reader-0123456789abc"
    source = EventSource(with_tokens.http_port, query, path="/api/channels")
    with_tokens.redis().publish("orders.a", "x")
    assert "orders.a" in source.next().data


def test_tokens_are_read_again_and_the_old_ones_hold_where_the_new_ones_are_bad(with_tokens: HttpServer) -> None:
    path = with_tokens.folder / "tokens"

    def admits(token: str) -> bool:
        return with_tokens.ask("GET", "/metrics", Authorization=f"Bearer {token}")[0] == 200

    path.write_text("short read *")
    until(lambda: admits("all-0123456789abcdef") and "at least 16 bytes" in with_tokens.log(), "a look at the tokens")
    assert admits("all-0123456789abcdef") and not admits("short")
    path.write_text("another-0123456789abc read *")
    until(lambda: admits("another-0123456789abc"), "the new tokens")
    assert not admits("all-0123456789abcdef")
    path.write_text("")
    until(lambda: not admits("another-0123456789abc"), "the end of the tokens")
    assert with_tokens.ask("GET", "/metrics")[0] == 401
    other = path.with_name("others")
    other.write_text("short read *")
    with pytest.raises(ResponseError, match="at least 16 bytes"):
        with_tokens.redis().config_set("http-tokens", str(other))


@pytest.mark.parametrize("path", ["/api/channels/news", "/api/topics/orders.a", "/api/events"])
@pytest.mark.parametrize("how", ["removed", "less", "other file"])
def test_stream_ends_when_its_token_may_read_it_no_more(with_tokens: HttpServer, path: str, how: str) -> None:
    tokens = with_tokens.folder / "tokens"
    tokens.write_text("here-0123456789abcdef read news orders.* events\nstays-0123456789abcdef read *\n")
    bearer, stays = "Bearer here-0123456789abcdef", "Bearer stays-0123456789abcdef"
    until(lambda: with_tokens.ask("GET", "/api/topics/orders.a", Authorization=bearer)[0] == 200, "the tokens")
    streams = [
        EventSource(with_tokens.http_port, path=path, Authorization=each, Accept="text/event-stream")
        for each in (bearer, stays)
    ]
    assert [source.response.status for source in streams] == [200, 200]
    if how == "removed":
        tokens.write_text("stays-0123456789abcdef read *\n")
    elif how == "less":
        tokens.write_text("here-0123456789abcdef write *\nstays-0123456789abcdef read *\n")
    else:
        others = tokens.with_name("others")
        others.write_text("stays-0123456789abcdef read *\n")
        with_tokens.redis().config_set("http-tokens", str(others))
    assert b"data" not in streams[0].response.read()
    if path == "/api/channels/news":
        with_tokens.redis().publish("news", "yet")
        assert streams[1].next().data == "yet"


@pytest.mark.parametrize("tokens", ["short read *", "token-0123456789abc * read", None])
def test_server_does_not_start_with_tokens_that_it_cannot_use(serve: Serve, tmp_path: Path, tokens: str | None) -> None:
    if tokens is not None:
        (tmp_path / "tokens").write_text(tokens)
    server = serve("--http-tokens", str(tmp_path / "tokens"), wait=False)
    assert server.exit_code() == 1
    said = server.log() + server.output()
    assert "the tokens" in said and "0123456789" not in said and "Traceback" not in said


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:80", 200), ("127.0.0.1", 200), ("[::1]:9", 200), ("a.localhost", 200), ("evil.example", 403)],
)
def test_page_cannot_come_in_under_a_name_of_its_own(standing_server: HttpServer, host: str, status: int) -> None:
    assert standing_server.ask("GET", "/metrics", Host=host)[0] == status


def test_server_with_a_password_may_have_any_name(locked: HttpServer) -> None:
    headers = {"Host": "bus.example", "Authorization": f"Bearer {PASSWORD}"}
    assert locked.ask("GET", "/metrics", **headers)[0] == 200
