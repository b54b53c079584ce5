"""Channels over HTTP: published to, listed and followed."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from event_source import EventSource
from http_server import HttpServer
from patience import PATIENCE_S, until

import rlite_pubsub

Serve = Callable[..., HttpServer]


def get(server: HttpServer, path: str) -> Any:
    status, _, answer = server.ask("GET", path)
    assert status == 200, answer
    return json.loads(answer)


def post(server: HttpServer, path: str, body: bytes) -> Any:
    status, _, answer = server.ask("POST", path, body)
    assert status == 200, answer
    return json.loads(answer)


def follow(server: HttpServer, path: str) -> EventSource:
    return EventSource(server.http_port, path=f"/api/channels{path}")


def test_what_is_published_after_the_answer_has_begun_is_in_the_stream(server: HttpServer) -> None:
    for number in range(20):
        source = follow(server, "/news%2Fa")
        assert server.redis().publish("news/a", f"{number}\nmore") == 1
        assert source.next().data == f"{number}\nmore"
        source.close()
        until(lambda: not server.redis().pubsub_numsub("news/a")[0][1], "the end of the subscription")


def test_body_that_is_posted_is_received_by_redis_clients_whatever_bytes_it_is(server: HttpServer) -> None:
    pubsub = server.redis().pubsub(ignore_subscribe_messages=True)
    pubsub.subscribe("news")
    pubsub.get_message(timeout=PATIENCE_S)
    assert post(server, "/api/channels/news", b"\xff\0\r\n") == {"receivers": 1}
    assert post(server, "/api/channels/news?encoding=base64", b64encode(b"\xfe")) == {"receivers": 1}
    received = []
    while len(received) < 2:
        message = pubsub.get_message(timeout=PATIENCE_S)
        if message is not None:
            received.append(message["data"])
    assert received == [b"\xff\0\r\n", b"\xfe"]
    assert post(server, "/api/channels/nobody", b"x") == {"receivers": 0}


def test_patterns_several_on_one_stream_tell_channel_and_pattern(server: HttpServer) -> None:
    source = follow(server, "?pattern=a*&pattern=*z")
    redis = server.redis()
    assert redis.publish("abc", "1") == 1 and redis.publish("az", b"\xff") == 2 and redis.publish("b", "3") == 0
    found = [json.loads(source.next().data) for _ in range(3)]
    assert found[0] == {"pattern": "a*", "channel": "abc", "data": "1"}
    raw = {"base64": "/w=="}
    assert [(each["pattern"], each["data"]) for each in found[1:]] == [("a*", raw), ("*z", raw)]


def test_binary_payloads_are_base64_on_request(server: HttpServer) -> None:
    one, other = follow(server, "/c?encoding=base64"), follow(server, "?pattern=c&encoding=base64")
    server.redis().publish("c", b"\0\xff")
    assert one.next().data == "AP8=" == json.loads(other.next().data)["data"]
    plain = follow(server, "/c")
    server.redis().publish("c", b"\0\xff")
    assert json.loads(plain.next().data) == {"base64": "AP8="}


def test_message_cannot_make_events_of_its_own(server: HttpServer) -> None:
    source = follow(server, "/c")
    server.redis().publish("c", "x\n\nevent: fake\rid: 7\r\n\r\ndata: y")
    server.redis().publish("c", "next")
    first, second = source.take(2)
    assert first.data == "x\n\nevent: fake\nid: 7\n\ndata: y" and first.type == "message" and not first.id
    assert second.data == "next"


def test_what_is_held_is_listed_and_streams_are_sessions_like_others(server: HttpServer) -> None:
    sources = [follow(server, "/a"), follow(server, "/a"), follow(server, "/b"), follow(server, "?pattern=x*")]
    assert get(server, "/api/channels") == {
        "channels": [{"name": "a", "subscribers": 2}, {"name": "b", "subscribers": 1}],
        "patterns": 1,
        "total": 2,
        "next": None,
    }
    assert [each["name"] for each in get(server, "/api/channels?match=b*")["channels"]] == ["b"]
    redis = server.redis()
    assert len([client for client in redis.client_list() if client["sub"] == "1" or client["psub"] == "1"]) == 4
    redis.client_kill_filter(_type="pubsub")
    for source in sources:
        assert source.rest() == []
    assert get(server, "/api/channels") == {"channels": [], "patterns": 0, "total": 0, "next": None}


@pytest.mark.parametrize("path", ["/c?encoding=hex", "?since=", "?pattern=" + "&pattern=".join("x" * 101)])
def test_bad_request_is_refused(server: HttpServer, path: str) -> None:
    assert server.ask("GET", f"/api/channels{path}")[0] == 400


def test_silent_stream_says_that_it_lives(serve: Serve) -> None:
    source = follow(serve("--http-heartbeat", "1"), "/c")
    assert [source.line() for _ in range(4)] == [b"retry: 2000\n", b"\n", b":\n", b"\n"]


def test_slow_reader_costs_bounded_memory_and_gets_all_in_order(serve: Serve) -> None:
    server = serve("--spill-threshold", "64kb")
    source = follow(server, "/c")
    redis = server.redis()
    before = server.memory_bytes()
    pad = "x" * 10_000
    for start in range(0, 4000, 100):
        pipeline = redis.pipeline(transaction=False)
        for number in range(start, start + 100):
            pipeline.publish("c", f"{number} {pad}")
        pipeline.execute()
    assert int(redis.info("subscribers")["spilled_bytes"]) > 20_000_000
    assert server.memory_bytes() - before < 25 << 20
    assert [event.data.split()[0] for event in source.take(4000)] == [str(number) for number in range(4000)]
    redis.publish("c", "live")
    assert source.next().data == "live"
    until(lambda: not int(redis.info("subscribers")["spilled_bytes"]), "an empty mailbox")


def test_a_stream_obeys_the_limit_also_on_what_a_single_turn_says(serve: Serve) -> None:
    server = serve("--client-output-buffer-limit", "pubsub 1mb 0 0")
    source = follow(server, "/c")
    redis = server.redis()
    redis.publish("c", "x" * 1_000_000)
    assert len(source.next().data) == 1_000_000
    assert redis.publish("c", "x" * 1_100_000) == 1
    assert int(redis.info("subscribers")["slow_subscribers_disconnected"]) == 1
    assert source.rest() == []
    assert redis.publish("c", "x") == 0


def test_slow_reader_that_loses_messages_is_told_how_many(serve: Serve) -> None:
    server = serve("--spill-threshold", "64kb", "--slow-subscriber-policy", "drop-oldest",
                   "--client-output-buffer-limit", "pubsub 3mb 0 0")  # fmt: skip
    source = follow(server, "/c")
    redis = server.redis()
    pad = "x" * 10_000
    for number in range(3000):
        redis.publish("c", f"{number} {pad}")
    redis.publish("c", "last")
    seen, lost = 0, 0
    while (event := source.next()).data != "last":
        if event.type == "gap":
            lost += json.loads(event.data)["lost"]
        else:
            seen += 1
            assert int(event.data.split()[0]) == seen + lost - 1
    assert lost and seen + lost == 3000


def test_retained_channel_that_is_posted_to_is_kept(serve: Serve) -> None:
    server = serve("--retain", "kept* 1d")
    assert post(server, "/api/channels/kept", b"x") == {"receivers": 0}
    assert [fields for _, fields in server.redis().xrange("kept")] == [{b"message": b"x"}]


def test_reader_of_a_retained_channel_that_comes_back_gets_what_it_missed_once_and_in_order(serve: Serve) -> None:
    server = serve("--retain", "kept* 1d")
    redis = server.redis()
    redis.publish("kept", "before")
    source = follow(server, "/kept")
    seen, sent = [], 0
    for round in range(5):
        for _ in range(3):
            assert redis.publish("kept", f"{sent}\nmore") == 1
            sent += 1
        seen += source.take(3 if round == 0 else 5)
        source.close()
        until(lambda: not redis.pubsub_numsub("kept")[0][1], "the end of the subscription")
        for _ in range(2):
            assert redis.publish("kept", f"{sent}\nmore") == 0
            sent += 1
        source = EventSource(server.http_port, path="/api/channels/kept", last_id=source.last_id)
    seen += source.take(2)
    assert [each.data for each in seen] == [f"{number}\nmore" for number in range(sent)]
    assert [each.id.encode() for each in seen] == [id for id, _ in redis.xrange("kept")[1:]]


def test_reader_of_a_retained_channel_that_had_nothing_yet_has_a_place_too(serve: Serve) -> None:
    server = serve("--retain", "kept* 1d")
    server.redis().publish("kept", "before")
    source = follow(server, "/kept?encoding=base64")
    assert source.response.headers["last-event-id"] == server.redis().xinfo_stream("kept")["last-generated-id"].decode()
    assert [source.line().split(b":")[0] for _ in range(3)] == [b"retry", b"\n", b"id"]
    last_id = source.response.headers["last-event-id"]
    source.close()
    server.redis().publish("kept", b"\xff")
    came_back = EventSource(server.http_port, path="/api/channels/kept", last_id=last_id)
    assert came_back.next().data == '{"base64": "/w=="}'


def test_trimmed_messages_are_said_to_be_lost(serve: Serve) -> None:
    server = serve("--retain", "kept* 1d")
    for number in range(3):
        server.redis().publish("kept", number)
    first = server.redis().xrange("kept")[0][0].decode()
    server.redis().xtrim("kept", maxlen=1, approximate=False)
    source = EventSource(server.http_port, path="/api/channels/kept", last_id=first)
    gap, message = source.take(2)
    assert gap.type == "gap" and json.loads(gap.data)["reason"] == "expired" and message.data == "2"


def test_message_of_another_process_has_an_id_too(serve: Serve) -> None:
    server = serve("--retain", "kept* 1d")
    source = follow(server, "/kept")
    with rlite_pubsub.Redis(server.store_folder) as program:
        assert program.publish("kept", "x") == 1
    assert source.next() == ("message", server.redis().xrange("kept")[0][0].decode(), "x")


def test_who_asks_an_unretained_channel_for_the_past_is_told_that_there_is_none(server: HttpServer) -> None:
    for query, last_id in (("?since=10m", ""), ("?last_event_id=earliest", ""), ("", "1-1")):
        source = EventSource(server.http_port, query, last_id, path="/api/channels/c")
        gap = source.next()
        assert gap.type == "gap" and json.loads(gap.data)["reason"] == "not retained"
        source.close()
    source = follow(server, "/c?last_event_id=latest")
    server.redis().publish("c", "x")
    assert source.next() == ("message", "", "x")


def test_reader_of_patterns_that_comes_back_is_told_that_it_has_missed_what_was_published(serve: Serve) -> None:
    server = serve("--retain", "news.* 7d")
    began_ms = int(time.time() * 1000)
    source = follow(server, "?pattern=news.*")
    server.redis().publish("news.a", "1")
    first = source.next()
    ms = int(first.id.removesuffix("-0"))
    assert json.loads(first.data)["data"] == "1" and began_ms <= ms <= int(time.time() * 1000)
    source.close()
    server.redis().publish("news.a", "2")
    source = EventSource(server.http_port, last_id=first.id, path="/api/channels?pattern=news.*")
    gap = source.next()
    assert gap.type == "gap" and json.loads(gap.data) == {"reason": "not retained", "last_event_id": first.id}
    server.redis().publish("news.a", "3")
    assert json.loads(source.next().data)["data"] == "3"
    # and each channel has what was missed, from when the first stream began
    again = follow(server, f"/news.a?since={ms}")
    assert [each.data for each in again.take(3)] == ["1", "2", "3"]
    assert follow(server, "?pattern=news.*&since=10m").next().type == "gap"


def test_stream_ends_where_its_channel_is_retained_no_longer_and_comes_back_without_ids(serve: Serve) -> None:
    server = serve("--retain", "kept* 1d")
    redis = server.redis()
    source = follow(server, "/kept")
    redis.publish("kept", "a")
    assert source.next().data == "a"
    redis.delete("kept")
    redis.set("kept", "no topic")
    redis.publish("kept", "b")
    assert source.rest() == []
    source = EventSource(server.http_port, path="/api/channels/kept", last_id=source.last_id)
    assert source.next().type == "gap"
    redis.publish("kept", "c")
    assert source.next().data == "c"


def test_events_of_keys_are_live_whatever_rule_matches_their_channels(serve: Serve) -> None:
    server = serve("--retain", "* 1d", "--notify-keyspace-events", "KEA")
    source = follow(server, "/__keyspace@0__%3Ak")
    server.redis().set("k", 1)
    assert source.next() == ("message", "", "set")


def test_shutdown_ends_streams_of_channels_too(server: HttpServer) -> None:
    source = follow(server, "/c")
    assert server.end() == 0
    assert source.rest() == [] and source.response.readline() == b""
