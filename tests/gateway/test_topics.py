"""Topics over HTTP: entries as JSON and as streams, posted alone and in batches, and lists."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from event_source import EventSource
from http_server import HttpServer

Serve = Callable[..., HttpServer]
STREAM = "text/event-stream"
JSON = "application/json"


def get(server: HttpServer, path: str) -> Any:
    status, _, answer = server.ask("GET", path)
    assert status == 200, answer
    return json.loads(answer)


def post(server: HttpServer, path: str, body: bytes, **headers: str) -> Any:
    status, _, answer = server.ask("POST", path, body, **headers)
    assert status == 200, answer
    return json.loads(answer)


def test_entry_that_is_posted_is_what_a_redis_client_reads(server: HttpServer) -> None:
    fields = {"colour": "röd", "raw": {"base64": "/wA="}, "size": 5, "tags": ["a"]}
    first = post(server, "/api/topics/a%2Fb", json.dumps(fields).encode(), Content_Type=f"{JSON}; charset=utf-8")["id"]
    second = post(server, "/api/topics/a/b", b"\xff\r\n")["id"]
    third = post(server, "/api/topics/a/b?encoding=base64", b64encode(b"\0"))["id"]
    assert server.redis().xrange("a/b") == [
        (first.encode(), {b"colour": "röd".encode(), b"raw": b"\xff\0", b"size": b"5", b"tags": b'["a"]'}),
        (second.encode(), {b"message": b"\xff\r\n"}),
        (third.encode(), {b"message": b"\0"}),
    ]


def test_entries_are_read_a_page_at_a_time(server: HttpServer) -> None:
    redis = server.redis()
    ids = [redis.xadd("log", {"n": number, "raw": b"\xff"}).decode() for number in range(10)]
    page = get(server, "/api/topics/log?count=4")
    assert page == {
        "entries": [{"id": id, "fields": {"n": str(n), "raw": {"base64": "/w=="}}} for n, id in enumerate(ids[:4])],
        "next": ids[3],
        "previous": None,
    }
    rest = get(server, f"/api/topics/log?after={page['next']}")
    assert [each["id"] for each in rest["entries"]] == ids[4:] and rest["next"] is None
    binary = get(server, "/api/topics/log?count=1&encoding=base64")["entries"][0]["fields"]
    assert binary == {"n": {"base64": "MA=="}, "raw": {"base64": "/w=="}}
    assert get(server, "/api/topics/nothing") == {"entries": [], "next": None, "previous": None}


def test_batch_is_stored_whole_and_in_order_in_one_commit(server: HttpServer) -> None:
    lines = b"\n".join(json.dumps({"n": number}).encode() for number in range(500)) + b"\n\n"
    ids = post(server, "/api/topics/log/batch", lines)["ids"]
    assert [id.decode() for id, _ in server.redis().xrange("log")] == ids
    assert [int(fields[b"n"]) for _, fields in server.redis().xrange("log")] == list(range(500))
    array = json.dumps([{"n": 500}, {"n": 501}], indent=1).encode()
    assert len(post(server, "/api/topics/log/batch", array, Content_Type=JSON)["ids"]) == 2
    assert [int(fields[b"n"]) for _, fields in server.redis().xrange("log")] == list(range(502))


@pytest.mark.parametrize(
    ("path", "body", "type"),
    [
        ("/api/topics/log/batch", b'{"a": 1}\n{"a"', ""),
        ("/api/topics/log/batch", b'{"a": 1}\n[]', ""),
        ("/api/topics/log/batch", b"\n", ""),
        ("/api/topics/log", b"{}", JSON),
        ("/api/topics/log", b"[" * 100_000, JSON),
        ("/api/topics/log", b'{"a": NaN}', JSON),
        ("/api/topics/log", b'{"a": {"base64": 1}}', JSON),
        ("/api/topics/log/batch", b"[]", JSON),
        ("/api/topics/log/batch", b'[{"a": 1}, 2]', JSON),
        ("/api/topics/log", b'{"a": "\\ud800"}', JSON),
        ("/api/topics/log", b'{"a": {"base64": "?"}}', JSON),
        ("/api/topics/log?encoding=base64", b"?", ""),
        ("/api/topics/log?encoding=hex", b"00", ""),
    ],
)
def test_what_cannot_be_read_is_refused_and_nothing_of_it_stored(
    standing_server: HttpServer, path: str, body: bytes, type: str
) -> None:
    assert standing_server.ask("POST", path, body, Content_Type=type or "text/plain")[0] == 400
    assert not standing_server.redis().exists("log")


def test_key_that_is_something_else_is_said(server: HttpServer) -> None:
    server.redis().set("text", "x")
    assert server.ask("POST", "/api/topics/text", b"x")[0] == 409
    assert server.ask("GET", "/api/topics/text/info")[0] == 409
    assert server.ask("GET", "/api/topics/nothing/info")[0] == 404
    assert server.ask("DELETE", "/api/topics/text")[0] == 405


def test_stream_of_a_topic_goes_on_from_an_id_and_is_live(server: HttpServer) -> None:
    redis = server.redis()
    ids = [redis.xadd("log", {"n": number}).decode() for number in range(5)]
    source = EventSource(server.http_port, path="/api/topics/log", last_id=ids[1], Accept=STREAM)
    other = EventSource(server.http_port, path="/api/topics/log", Accept=STREAM)
    elsewhere = EventSource(server.http_port, path="/api/topics/empty", Accept=STREAM)
    ids.append(post(server, "/api/topics/log", b"live")["id"])
    assert [event.id for event in source.take(4)] == ids[2:]
    events = other.take(6)
    assert [event.id for event in events] == ids
    assert [json.loads(event.data) for event in events] == [{"n": str(n)} for n in range(5)] + [{"message": "live"}]
    post(server, "/api/topics/empty", b"first")
    assert json.loads(elsewhere.next().data) == {"message": "first"}
    source.close()
    post(server, "/api/topics/log", b"more")
    assert json.loads(other.next().data) == {"message": "more"}


def test_lists_tell_what_there_is_page_by_page_with_groups_and_lags(server: HttpServer) -> None:
    redis = server.redis()
    for number in range(5):
        redis.xadd(f"log{number}", {"n": number})
    redis.xadd("other", {"n": 1})
    redis.xgroup_create("log0", "readers", "0")
    page = get(server, "/api/topics?match=log*&count=3")
    assert [each["name"] for each in page["topics"]] == ["log0", "log1", "log2"] and page["next"] == "log2"
    rest = get(server, f"/api/topics?match=log*&after={page['next']}")
    assert [each["name"] for each in rest["topics"]] == ["log3", "log4"] and rest["next"] is None
    assert get(server, "/api/topics/log0/info")["length"] == 1
    (group,) = get(server, "/api/topics/log0/groups")
    assert group["name"] == "readers" and group["lag"] == 1 and group["pending"] == 0
    assert server.ask("GET", "/api/topics?count=0")[0] == server.ask("GET", "/api/topics?count=x")[0] == 400


def test_shutdown_ends_streams_of_topics_too(server: HttpServer) -> None:
    source = EventSource(server.http_port, path="/api/topics/log", Accept=STREAM)
    post(server, "/api/topics/log", b"x")
    source.next()
    assert server.end() == 0
    assert source.response.readline() == b""
