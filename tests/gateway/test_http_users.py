"""Users of the server over HTTP: who they are, what they may, and that they go when they may no more."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from event_source import EventSource
from http_server import HttpServer
from patience import until

Serve = Callable[..., HttpServer]

RULES = "on >wonder +@read +@pubsub +xadd %R~orders.* %W~orders.new %RW~events &news.* (+@read ~shelf)"
SECRET = "sesame"


def basic(name: str, password: str) -> str:
    return "Basic " + b64encode(f"{name}:{password}".encode()).decode()


FLAGS = ("--requirepass", SECRET, "--http-heartbeat", "1", "--user", "alice", *RULES.split())


@pytest.fixture
def shop(serve: Serve) -> HttpServer:
    """A server whose default user needs a password, with another user who may do less."""
    return serve(*FLAGS)


@pytest.fixture
def admin(shop: HttpServer) -> redis.Redis:
    return redis.Redis(port=shop.port, password=SECRET)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/topics/orders.a", 200),
        ("GET", "/api/topics/orders.a/info", 404),
        ("GET", "/api/topics/shelf", 200),
        ("GET", "/api/topics/secret", 403),
        ("POST", "/api/topics/orders.new", 200),
        ("POST", "/api/topics/orders.new/batch", 200),
        ("POST", "/api/topics/orders.a", 403),
        ("POST", "/api/topics/shelf", 403),
        ("POST", "/api/topics/orders.new/pause", 403),
        ("POST", "/api/topics/orders.new/groups/g/requeue?id=1-1", 403),
        ("POST", "/api/channels/news.a", 200),
        ("POST", "/api/channels/chat", 403),
        ("GET", "/api/channels/chat", 403),
        ("GET", "/api/channels?pattern=news.a*", 403),
        ("GET", "/api/channels?pattern=news.*&pattern=*", 403),
        ("POST", "/api/events?type=t", 200),
        ("GET", "/api/channels", 403),
        ("GET", "/api/topics", 403),
        ("GET", "/metrics", 403),
        ("GET", "/", 200),
        ("GET", "/readyz", 200),
    ],
)
def test_user_may_here_what_it_may_as_a_redis_client(standing: Serve, method: str, path: str, status: int) -> None:
    shop = standing(*FLAGS)
    body = b'{"data": "x"}\n' if method == "POST" else b""
    assert shop.ask(method, path, body, Authorization=basic("alice", "wonder"))[0] == status
    if path not in ("/", "/readyz"):  # which have nothing of anybody in them
        for wrong in (basic("alice", "w"), basic("bob", "wonder"), basic("", "wonder"), "Bearer wonder"):
            assert shop.ask(method, path, body, Authorization=wrong)[0] == 401


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/api/topics/ok", "+xrange"),
        ("/api/events", "+xrange"),
        ("/api/topics/ok/info", "+topic.info"),
        ("/api/topics/ok/blocks", "+topic.blocks"),
        ("/api/topics/ok/groups", "+xinfo|groups"),
        ("/api/topics/ok/groups/g/info", "+topic.info +xinfo|groups +xinfo|consumers"),
        ("/api/topics/ok/groups/g/pending", "+xpending"),
        ("/api/topics/ok/groups/g/dead_letters", "+xinfo|groups +xrange"),
        ("/api/topics", "+topic.list"),
        ("/api/groups", "+topic.list +xinfo|groups"),
        ("/api/channels", "+pubsub|channels"),
        ("/api/patterns", "+pubsub|numpat +subscriber.list"),
        ("/api/subscribers", "+subscriber.list"),
        ("/api/connections", "+subscriber.clients"),
        ("/api/stats", "+info"),
        ("/api/stats/history", "+info"),
        ("/api/warnings", "+info"),
        ("/metrics", "+info"),
    ],
)
def test_path_asks_for_the_rights_of_the_commands_that_tell_the_same(standing: Serve, path: str, rule: str) -> None:
    shop = standing(*FLAGS)
    admin = redis.Redis(port=shop.port, password=SECRET)
    for topic in ("ok", "events"):
        admin.xadd(topic, {"data": "x"})
    admin.execute_command("XGROUP", "CREATE", "ok", "g", "0") if not admin.xinfo_groups("ok") else None
    wide = "on >eyes allkeys allchannels +psubscribe +xrange".split()
    words = rule.split()
    for lacking in [each for each in words if each != "+xrange"]:
        admin.execute_command("ACL", "SETUSER", "watcher", "reset", *wide, *(each for each in words if each != lacking))
        assert shop.ask("GET", path, Authorization=basic("watcher", "eyes"))[0] == 403
    if path == "/api/topics/ok":
        admin.execute_command("ACL", "SETUSER", "watcher", "reset", *wide, "-xrange", "+@stream", "-xrange")
        assert shop.ask("GET", path, Authorization=basic("watcher", "eyes"))[0] == 403
    admin.execute_command("ACL", "SETUSER", "watcher", "reset", *wide, *words)
    if path != "/api/events":
        assert shop.ask("GET", path, Authorization=basic("watcher", "eyes"))[0] == 200


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/api/topics/ok/pause", "+topic.pause"),
        ("/api/topics/ok/resume", "+topic.resume"),
        ("/api/topics/ok/groups/g/pause", "+topic.pause"),
        ("/api/topics/ok/groups/g/resume", "+topic.resume"),
        ("/api/topics/ok/groups/g/requeue", "+topic.requeue"),
        ("/api/topics/ok/groups/g/redeliver", "+topic.requeue +xclaim"),
    ],
)
def test_hand_on_a_topic_takes_the_rights_of_its_commands(standing: Serve, path: str, rule: str) -> None:
    shop = standing(*FLAGS)
    admin = redis.Redis(port=shop.port, password=SECRET)
    words = rule.split()
    for lacking in words:
        few = [each for each in words if each != lacking]
        admin.execute_command("ACL", "SETUSER", "hand", "reset", "on", ">h", "allkeys", "+xadd", *few)
        assert shop.ask("POST", path, b'{"ids": []}', Authorization=basic("hand", "h"))[0] == 403
    admin.execute_command("ACL", "SETUSER", "hand", "reset", "on", ">h", "allkeys", *words)
    assert shop.ask("POST", path, b'{"ids": []}', Authorization=basic("hand", "h"))[0] != 403


def test_stream_ends_with_the_session_of_the_page_that_opened_it(shop: HttpServer) -> None:
    said = shop.ask("POST", "/api/session", b"", Authorization=basic("alice", "wonder"))
    bearer = f"Bearer {json.loads(said[2])['token']}"
    source = EventSource(shop.http_port, path="/api/channels/news.a", Authorization=bearer)
    assert source.response.status == 200
    shop.ask("POST", "/api/session?end=1", b"", Authorization=bearer)
    assert source.response.read() is not None


def test_whoever_may_read_everything_sees_lists_and_metrics(shop: HttpServer, admin: redis.Redis) -> None:
    admin.execute_command("ACL", "SETUSER", "watcher", "on", ">eyes", "+@all", "-@write", "%R~*", "&*")
    for path in ("/api/channels", "/api/topics", "/metrics", "/"):
        assert shop.ask("GET", path, Authorization=basic("watcher", "eyes"))[0] == 200
    assert shop.ask("POST", "/api/topics/a", b"x", Authorization=basic("watcher", "eyes"))[0] == 403


def test_streams_are_given_to_those_who_may_and_a_query_can_say_who_it_is(
    shop: HttpServer, admin: redis.Redis
) -> None:
    source = EventSource(shop.http_port, "?pattern=news.*&access_token=alice:wonder", path="/api/channels")
    until(lambda: admin.publish("news.a", "x"), "the subscription")
    assert "news.a" in source.next().data
    assert b" user=alice " in admin.execute_command("CLIENT", "LIST", "TYPE", "pubsub")


@pytest.mark.parametrize("path", ["/api/channels/news.a", "/api/topics/orders.a", "/api/events"])
@pytest.mark.parametrize("change", ["ACL DELUSER alice", "ACL SETUSER alice resetchannels resetkeys"])
def test_stream_ends_when_its_user_may_read_it_no_more(
    shop: HttpServer, admin: redis.Redis, path: str, change: str
) -> None:
    source = EventSource(shop.http_port, path=path, Authorization=basic("alice", "wonder"), Accept="text/event-stream")
    assert source.response.status == 200
    admin.execute_command(*change.split())
    assert all(line == b"\n" or line[:1] in (b":", b"r") for line in source.response.read().splitlines(True))
    assert shop.ask("GET", path, Authorization=basic("alice", "wonder"))[0] in (401, 403)


def test_stream_stays_when_its_user_changes_and_may_read_it_yet(shop: HttpServer, admin: redis.Redis) -> None:
    source = EventSource(shop.http_port, Authorization=basic("alice", "wonder"))
    admin.execute_command("ACL", "SETUSER", "alice", ">other", "-publish", "resetchannels")
    admin.execute_command("ACL", "SETUSER", "bob", "on")
    shop.ask("POST", "/api/events?type=t", b"x", Authorization=f"Bearer {SECRET}")
    assert source.next().data == "x"


def test_changed_password_counts_at_once(shop: HttpServer, admin: redis.Redis) -> None:
    def status(password: str) -> int:
        return shop.ask("GET", "/api/topics/shelf", Authorization=basic("alice", password))[0]

    assert (status("wonder"), status("wonder"), status("land")) == (200, 200, 401)
    admin.execute_command("ACL", "SETUSER", "alice", "<wonder", ">land")
    assert (status("wonder"), status("land")) == (401, 200)
    admin.execute_command("ACL", "SETUSER", "alice", "off")
    assert status("land") == 401


def test_what_is_denied_over_http_is_in_the_log_of_all_denials(shop: HttpServer, admin: redis.Redis) -> None:
    shop.ask("GET", "/api/topics/secret", Authorization=basic("alice", "wonder"))
    shop.ask("GET", "/api/topics/secret", Authorization=basic("alice", "guess"))
    entries = admin.acl_log()
    assert [(entry["reason"], entry["object"], entry["username"]) for entry in entries] == [
        ("auth", "HTTP", "alice"),
        ("key", "secret", "alice"),
    ]


def test_open_server_knows_users_by_name_and_its_default_user_by_nothing(serve: Serve) -> None:
    server = serve("--user", "alice", *RULES.split())
    assert server.ask("GET", "/metrics")[0] == 200
    assert server.ask("GET", "/metrics", Authorization="Bearer whatever")[0] == 200
    assert server.ask("GET", "/metrics", Authorization=basic("alice", "wonder"))[0] == 403
    assert server.ask("GET", "/metrics", Authorization=basic("alice", "wrong"))[0] == 401
    server.redis().execute_command("ACL", "SETUSER", "default", "resetchannels", "&news.*")
    assert server.ask("GET", "/metrics")[0] == 403
    assert server.ask("POST", "/api/channels/chat", b"x")[0] == 403
    assert server.ask("POST", "/api/channels/news.a", b"x")[0] == 200


def test_tokens_and_users_stand_side_by_side(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("reader-0123456789abc read chat*\n")
    server = serve("--http-tokens", str(tmp_path / "tokens"), "--user", "alice", *RULES.split())
    assert server.ask("GET", "/api/topics/chat", Authorization="Bearer reader-0123456789abc")[0] == 200
    assert server.ask("GET", "/api/topics/shelf", Authorization=basic("alice", "wonder"))[0] == 200
    assert server.ask("GET", "/api/topics/chat", Authorization=basic("alice", "wonder"))[0] == 403
    for said in ("", "Bearer anything", basic("default", "anything")):  # the default user has no password
        assert server.ask("GET", "/api/topics/chat", **({"Authorization": said} if said else {}))[0] == 401
    stream = EventSource(server.http_port, "?access_token=reader-0123456789abc", path="/api/channels/chat")
    server.redis().execute_command("ACL", "SETUSER", "default", "resetchannels")
    until(lambda: server.redis().execute_command("ACL", "SETUSER", "bob", "on"), "bob")
    server.redis().execute_command("ACL", "SETUSER", "default", "&*")
    server.redis().publish("chat", "still there")
    assert stream.next().data == "still there"
