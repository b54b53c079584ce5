"""Groups and topics that are paused, resumed and requeued over HTTP, and what is refused."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from http_server import HttpServer

Serve = Callable[..., HttpServer]
JSON = "application/json"
PROBLEM = "application/problem+json"
TOKEN = "operator-0123456789abc"


@pytest.fixture
def server(standing_server: HttpServer) -> HttpServer:
    """All tests here change nothing but keys."""
    return standing_server


@pytest.fixture
def jobs(server: HttpServer) -> HttpServer:
    """A topic `jobs/a` with ten entries and the group `workers`, which has been given five."""
    redis = server.redis()
    for number in range(10):
        redis.xadd("jobs/a", {"n": number})
    redis.xgroup_create("jobs/a", "workers", "0")
    redis.xreadgroup("workers", "one", {"jobs/a": ">"}, count=5)
    return server


def post(server: HttpServer, path: str, body: object = None) -> Any:
    sent = b"" if body is None else json.dumps(body).encode()
    status, _, answer = server.ask("POST", f"/api/topics/jobs%2Fa/{path}", sent)
    assert status == 200, answer
    return json.loads(answer)


def given(server: HttpServer) -> list[int]:
    """What the group is given next."""
    found = server.redis().xreadgroup("workers", "two", {"jobs/a": ">"}, count=100)
    pages = found.values() if isinstance(found, dict) else [page for _, page in found]
    entries = [entry for page in pages for entry in page]
    flat = [each for entry in entries for each in (entry if isinstance(entry, list) else [entry])]
    return [int(fields[b"n"]) for _, fields in flat]


@pytest.mark.parametrize("what", ["groups/workers", ""])
def test_group_that_is_paused_is_given_nothing_until_it_is_resumed(jobs: HttpServer, what: str) -> None:
    prefix = f"{what}/" if what else ""
    assert post(jobs, f"{prefix}pause") == {"changed": True}
    assert post(jobs, f"{prefix}pause") == {"changed": False}
    assert given(jobs) == []
    assert post(jobs, f"{prefix}resume") == {"changed": True}
    assert post(jobs, f"{prefix}resume") == {"changed": False}
    assert given(jobs) == [5, 6, 7, 8, 9]


def test_all_that_is_in_flight_is_requeued(jobs: HttpServer) -> None:
    assert post(jobs, "groups/workers/requeue") == {"requeued": 5}
    assert jobs.redis().xpending("jobs/a", "workers")["pending"] == 0
    assert sorted(given(jobs)) == list(range(10))
    assert post(jobs, "groups/workers/requeue", {}) == {"requeued": 10}


def test_more_than_is_done_in_one_turn_is_requeued_whole(server: HttpServer) -> None:
    redis = server.redis()
    pipeline = redis.pipeline(transaction=False)
    for number in range(1001):
        pipeline.xadd("jobs/a", {"n": number})
    pipeline.xgroup_create("jobs/a", "workers", "0")
    pipeline.execute()
    redis.xreadgroup("workers", "one", {"jobs/a": ">"}, count=2000)
    assert post(server, "groups/workers/requeue") == {"requeued": 1001}
    assert redis.xpending("jobs/a", "workers")["pending"] == 0


def test_entries_that_are_named_are_requeued_and_no_others(jobs: HttpServer) -> None:
    ids = [id.decode() for id, _ in jobs.redis().xrange("jobs/a")]
    asked = {"ids": [ids[1], ids[3], ids[7], "1-1", "99999999999999999999-0"], "delay_ms": 0}
    assert post(jobs, "groups/workers/requeue", asked) == {"requeued": 2}
    assert jobs.redis().xpending("jobs/a", "workers")["pending"] == 3
    assert post(jobs, "groups/workers/requeue", {"ids": []}) == {"requeued": 0}


def test_entries_that_are_requeued_with_a_delay_do_not_come_at_once(jobs: HttpServer) -> None:
    assert post(jobs, "groups/workers/requeue", {"delay_ms": 1 << 40}) == {"requeued": 5}
    assert given(jobs) == [5, 6, 7, 8, 9]
    (group,) = json.loads(jobs.ask("GET", "/api/groups")[2])["groups"]
    assert group["delayed"] == 5 and group["requeued"] == 5


@pytest.mark.parametrize(
    "body",
    [
        b"[]", b"{", b'{"delay_ms": -1}', b'{"delay_ms": "1"}', b'{"delay_ms": true}', b'{"delay_ms": 1e400}',
        b'{"ids": null}', b'{"ids": ["x"]}', b'{"ids": [1]}', b'{"more": 1}', b"\xff", b"NaN", b"[" * 100_000,
    ],
)  # fmt: skip
def test_requeueing_that_cannot_be_read_is_refused_and_nothing_done(jobs: HttpServer, body: bytes) -> None:
    status, headers, _ = jobs.ask("POST", "/api/topics/jobs%2Fa/groups/workers/requeue", body)
    assert status == 400 and headers["content-type"] == PROBLEM
    assert jobs.redis().xpending("jobs/a", "workers")["pending"] == 5


@pytest.mark.parametrize("verb", ["pause", "resume", "requeue"])
def test_what_is_not_there_is_said(jobs: HttpServer, verb: str) -> None:
    jobs.redis().set("text", "x")
    assert jobs.ask("POST", f"/api/topics/jobs%2Fa/groups/nobody/{verb}")[0] == 404
    assert jobs.ask("POST", f"/api/topics/nothing/groups/workers/{verb}")[0] == 404
    assert jobs.ask("POST", f"/api/topics/text/groups/workers/{verb}")[0] == 409


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.write_text(f"{TOKEN} write orders.* other/info read orders.*\n")
    return file


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/topics/orders.a/pause", 404),
        ("/api/topics/orders.a/groups/g/requeue", 400),
        ("/api/topics/secret/pause", 403),
        ("/api/topics/secret/groups/orders.a/pause", 403),
        ("/api/topics/secret%2Forders.a/groups/g/resume", 403),
        ("/api/topics/secret/groups/g/requeue", 403),
        ("/api/topics/other%2Finfo/pause", 404),
        ("/api/topics/other/pause", 403),
        ("/api/topics/other%2Finfo", 200),
        ("/api/topics/other", 403),
    ],
)
def test_hand_on_a_topic_takes_the_right_to_write_it(standing: Serve, tokens: Path, path: str, status: int) -> None:
    server = standing("--http-tokens", str(tokens))
    assert server.ask("POST", path, b"x", Authorization=f"Bearer {TOKEN}")[0] == status
    for each in ("/api/groups", "/api/patterns", "/api/subscribers", "/openapi.json", "/api/channels"):
        assert server.ask("GET", each, Authorization=f"Bearer {TOKEN}")[0] == 403


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/api/nowhere", 404),
        ("GET", "/api/events/x", 404),
        ("POST", "/metrics", 405),
        ("PUT", "/api/topics/a", 405),
        ("DELETE", "/api/groups", 405),
        ("POST", "/api/subscribers", 405),
        ("GET", "/api/topics/a/pause", 405),
        ("TRACE", "/api/patterns", 405),
        ("GET", "/api/topics/%", 400),
        ("GET", "/api/topics/a?after=x", 400),
        ("GET", "/api/topics/a?after=x", 400),
        ("GET", "/api/topics/a?count=" + "9" * 10_000, 400),
        ("GET", "/api/events?typeMatcher=(", 400),
        ("GET", "/api/events?typeMatcher=(%3F%3Da)", 400),
        ("GET", "/api/events?typeMatcher=(a*)%7B1000%7D%7B1000%7D", 400),
        ("GET", "/api/events?typeMatcher=%00%5CC" + "x" * 2000, 400),
        ("GET", "/api/events?" + "&".join(["typeMatcher=a"] * 33), 400),
        ("GET", "/api/events?" + "&".join(["typeMatcher=a"] * 1000), 400),
        ("POST", "/api/channels/" + "x" * 9000, 400),
    ],
)
def test_request_that_cannot_be_granted_is_a_problem_that_says_so(
    server: HttpServer, method: str, path: str, status: int
) -> None:
    found, headers, answer = server.ask(method, path)
    assert found == status and headers["content-type"] == PROBLEM
    assert json.loads(answer)["status"] == status and json.loads(answer)["title"]
    assert (status == 405) == ("allow" in headers)


@pytest.mark.parametrize(
    "path", ["/api/topics", "/api/events", "/api/channels/c", "/metrics", "/api/channels?pattern=*"]
)
def test_head_is_answered_as_get_without_a_body(server: HttpServer, path: str) -> None:
    status, headers, answer = server.ask("HEAD", path)
    assert status == 200 and not answer and headers["content-type"]


@pytest.mark.parametrize(
    "line", [b"GET /api/topics/\xff HTTP/1.1", b"OPTIONS * HTTP/1.1", b"CONNECT a:1 HTTP/1.1", b"GET"]
)
def test_request_line_that_is_none_harms_nobody(server: HttpServer, line: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.http_port), 30) as raw:
        raw.sendall(line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        status = int(raw.makefile("rb").readline().split()[1])
    assert status in (204, 400)
    assert server.ask("GET", "/healthz")[0] == 200
