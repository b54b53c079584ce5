"""Requests over HTTP are sessions like others: seen by whoever watches, counted, and held to the limits on output."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from event_source import EventSource
from http_server import HttpServer
from patience import until

Serve = Callable[..., HttpServer]

POSTS = {
    "/api/channels/news": (b"publish", b"news", b"x"),
    "/api/events?type=t": (b"XADD", b"events", b"*", b"type", b"t", b"body", b"x"),
    "/api/topics/jobs": (b"XADD", b"jobs", b"*", b"message", b"x"),
    "/api/topics/jobs/pause": (b"topic.pause", b"jobs"),
}
"""What is posted, and what is executed for it."""


def posted(server: HttpServer) -> str:
    """Post all of it; the address that it came from."""
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=30)
    connection.connect()
    host, port = connection.sock.getsockname()
    for path in POSTS:
        connection.request("POST", path, b"x", {"Content-Type": "text/plain"})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        response.read()
    connection.close()
    return f"{host}:{port}"


def test_post_is_seen_by_monitor_with_the_address_of_who_posts(server: HttpServer) -> None:
    with server.redis().monitor() as monitor:
        address = posted(server)
        for words in POSTS.values():
            seen = monitor.next_command()
            assert seen["command"].encode() == b" ".join(words)
            assert f"{seen['client_address']}:{seen['client_port']}" == address


def test_what_is_read_is_seen_by_monitor_too(server: HttpServer) -> None:
    server.redis().xadd("jobs", {"a": "1"})
    with server.redis().monitor() as monitor:
        for path in ("/api/topics/jobs?after=5-0", "/api/topics", "/api/channels"):
            assert server.ask("GET", path)[0] == 200
        seen = [monitor.next_command()["command"] for _ in range(4)]
    assert seen == ["xrange jobs 5-1 + COUNT 100", "topic.list", "topic.info jobs", "pubsub numpat"]


def test_post_is_counted_as_its_command_and_is_in_the_slow_log(server: HttpServer) -> None:
    client = server.redis()
    client.config_set("slowlog-log-slower-than", 0)
    client.slowlog_reset()
    before = client.info("stats")["total_commands_processed"]
    address = posted(server)
    counts = {name: fields["calls"] for name, fields in client.info("commandstats").items()}
    assert (counts["cmdstat_xadd"], counts["cmdstat_publish"], counts["cmdstat_topic.pause"]) == (2, 1, 1)
    assert client.info("stats")["total_commands_processed"] - before >= len(POSTS)
    assert "latency_percentiles_usec_xadd" in client.info("latencystats")
    slow = [entry for entry in client.slowlog_get(20) if entry["client_address"].decode() == address]
    assert [entry["command"] for entry in reversed(slow)] == [b" ".join(words) for words in POSTS.values()]


def test_refusal_counts_as_a_failed_call_and_leaves_the_others_of_its_turn_alone(server: HttpServer) -> None:
    client = server.redis()
    client.set("text", "x")
    assert server.ask("POST", "/api/topics/text", b"x")[0] == 409
    assert server.ask("POST", "/api/topics/jobs", b"x")[0] == 200
    counts = client.info("commandstats")["cmdstat_xadd"]
    assert (counts["calls"], counts["failed_calls"]) == (2, 1)
    assert json.loads(server.ask("GET", "/api/stats")[2])["entries_posted"] == 1


def test_rules_of_the_default_user_do_not_bind_who_shows_a_token(serve: Serve, tmp_path: Path) -> None:
    token = "poster-0123456789abcdef"
    (tmp_path / "tokens").write_text(f"{token} write events news\n")
    rules = "on >sesame -@all +acl|setuser"
    server = serve("--http-tokens", str(tmp_path / "tokens"), "--user", "default", *rules.split())
    for path, status in (("/api/events?type=t", 200), ("/api/channels/news", 200), ("/api/topics/jobs", 403)):
        assert server.ask("POST", path, b"x", Authorization=f"Bearer {token}")[0] == status
        assert server.ask("POST", path, b"x")[0] == 401


def test_lists_are_answered_while_clients_are_paused_and_changes_are_not(server: HttpServer) -> None:
    client = server.redis()
    client.xadd("jobs", {"a": "1"})
    client.client_pause(60_000, all=True)
    assert server.ask("GET", "/api/topics")[0] == 200
    assert json.loads(server.ask("GET", "/api/topics/jobs")[2])["entries"][0]["fields"] == {"a": "1"}
    assert server.ask("POST", "/api/channels/news", b"x")[0] == 503


# -- limits on output


def limited(server: HttpServer, kind: str) -> redis.Redis:
    client = server.redis()
    client.config_set("client-output-buffer-limit", f"{kind} 100000 0 0")
    return client


def test_answer_beyond_the_limit_on_output_is_refused_and_counted(server: HttpServer) -> None:
    client = limited(server, "normal")
    for number in range(30):
        client.xadd("jobs", {"n": b"x" * 4000})
        if number == 10:
            assert server.ask("GET", "/api/topics/jobs")[0] == 200
    status, headers, answer = server.ask("GET", "/api/topics/jobs")
    assert status == 503 and headers["content-type"] == "application/problem+json"
    assert "client-output-buffer-limit" in json.loads(answer)["detail"]
    assert server.ask("GET", "/api/topics/jobs?count=5")[0] == 200
    assert client.info("subscribers")["slow_subscribers_disconnected"] == 1


@pytest.mark.parametrize("path", ["/api/channels/news", "/api/channels?pattern=n*"])
def test_stream_that_is_told_more_at_once_than_the_limit_allows_ends(server: HttpServer, path: str) -> None:
    client = limited(server, "pubsub")
    source = EventSource(server.http_port, path=path)
    client.publish("news", b"x" * 50_000)
    assert "x" * 50_000 in source.next().data
    client.publish("news", b"y" * 150_000)
    assert b"y" not in source.response.read()
    until(lambda: not client.pubsub_numpat() and not client.pubsub_channels(), "the end of the subscription")
    assert client.info("subscribers")["slow_subscribers_disconnected"] == 1
