"""Logging in: a user's password becomes a session, which ends in time, and whose token is in no URL and no cookie."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

from http_server import HttpServer
from redis import Redis

from rlite_pubsub.engine.access.user import User
from rlite_pubsub.gateway.access.logins import IDLE_S, Logins

Serve = Callable[..., HttpServer]
PASSWORD = "sesame"


def basic(name: str, password: str) -> str:
    return f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"


def asked(server: HttpServer, method: str, path: str, authorization: str, **headers: str) -> tuple[int, Any]:
    status, _, answer = server.ask(method, path, Authorization=authorization, **headers)
    return status, json.loads(answer)


class Known:
    """Users by name."""

    def __init__(self, *users: User) -> None:
        self.users = {user.name: user for user in users}

    def get(self, name: bytes) -> User | None:
        return self.users.get(name)


def test_session_ends_when_nobody_comes_for_long_and_when_its_user_changes() -> None:
    now = [1000.0]
    ann = User(b"ann", enabled=True, hashes=("a" * 64,))  # type: ignore[arg-type]
    known = Known(ann)
    logins = Logins(known, lambda: now[0])  # type: ignore[arg-type]
    token = logins.begin(ann)
    for _ in range(3):
        now[0] += IDLE_S - 1
        assert logins.user(token) == ann
    now[0] += IDLE_S + 1
    assert logins.user(token) is None
    for change in ({"enabled": False}, {"hashes": ()}):
        token = logins.begin(ann)
        known.users[b"ann"] = User(b"ann", **({"enabled": True, "hashes": ann.hashes} | change))  # type: ignore[arg-type]
        assert logins.user(token) is None
        known.users[b"ann"] = ann
    token = logins.begin(ann)
    assert logins.end(token) and logins.user(token) is None and not logins.end(token)
    assert logins.user(b"session-x") is None and logins.user(b"x") is None


def test_user_logs_in_is_told_what_it_may_and_logs_out(serve: Serve) -> None:
    server = serve("--requirepass", PASSWORD)
    redis = Redis(port=server.port, password=PASSWORD)
    rules = {"keys": ["%R~*", "~orders.*"], "channels": ["news.*"], "categories": ["+@all", "-@admin"]}
    redis.acl_setuser("ann", enabled=True, passwords=["+pw"], **rules)
    assert server.ask("POST", "/api/session")[0] == 401
    assert asked(server, "POST", "/api/session", basic("ann", "wrong"))[0] == 401
    status, told = asked(server, "POST", "/api/session", basic("ann", "pw"))
    assert status == 200 and told["user"] == "ann"
    bearer = f"Bearer {told['token']}"
    status, told = asked(server, "GET", "/api/session", bearer)
    assert (told["user"], told["needs_login"]) == ("ann", True)
    may = told["may"]
    assert may["publish"] == ["news.*"] and may["append"] == ["orders.*"] and may["read"] == ["*", "orders.*"]
    assert not may["see_all"] and not may["see_connections"] and not may["close_connections"]
    assert asked(server, "POST", "/api/topics/orders.eu", bearer)[0] == 200
    assert asked(server, "POST", "/api/topics/audit", bearer)[0] == 403
    assert asked(server, "GET", "/api/connections", bearer)[0] == 403
    foreign = {"Origin": "http://evil.example"}
    assert asked(server, "POST", "/api/topics/orders.eu", bearer, **foreign)[0] == 403
    assert asked(server, "POST", "/api/session?end=1", bearer)[0] == 200
    assert asked(server, "GET", "/api/session", bearer)[0] == 401
    status, told = asked(server, "POST", "/api/session", basic("ann", "pw"))
    redis.acl_setuser("ann", passwords=["+other", "-pw"])
    assert asked(server, "GET", "/api/session", f"Bearer {told['token']}")[0] == 401


def test_token_is_told_what_its_line_says(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("reader-0123456789 read * write orders.*\nowner-0123456789 read * write *\n")
    server = serve("--http-tokens", str(tmp_path / "tokens"))
    status, told = asked(server, "GET", "/api/session", "Bearer reader-0123456789")
    assert (status, told["user"]) == (200, None)
    may = told["may"]
    assert may["see_all"] and may["see_connections"] and not may["close_connections"]
    assert may["publish"] == may["append"] == may["pause"] == ["orders.*"] and may["read"] == ["*"]
    assert asked(server, "GET", "/api/connections", "Bearer reader-0123456789")[0] == 200
    assert asked(server, "POST", "/api/connections/kill", "Bearer reader-0123456789")[0] == 403
    assert asked(server, "GET", "/api/session", "Bearer owner-0123456789")[1]["may"]["close_connections"]


def test_whoever_needs_no_password_may_do_everything(server: HttpServer) -> None:
    told = json.loads(server.ask("GET", "/api/session")[2])
    assert told["user"] == "default" and told["needs_login"] is False
    assert told["may"]["see_all"] and told["may"]["close_connections"] and told["may"]["publish"] == ["*"]


def test_connection_is_named_by_its_process_and_a_whole_number(server: HttpServer) -> None:
    for body, wanted in (
        (b'{"process": "0000000000000000", "id": 5.0}', 404),
        (b'{"process": "0000000000000000", "id": 5.5}', 400),
        (b'{"process": "x", "id": 5}', 400),
        (b"[]", 400),
    ):
        assert server.ask("POST", "/api/connections/kill", body)[0] == wanted, body
