"""Lists of channels, patterns, topics, groups and subscribers, a page at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis
from http_server import HttpServer
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENCE_S, until

from rlite_pubsub.gateway.http import listing
from rlite_pubsub.gateway.http.parameter import ListSpan

Serve = Callable[..., HttpServer]


def get(server: HttpServer, path: str) -> Any:
    status, _, answer = server.ask("GET", path)
    assert status == 200, answer
    return json.loads(answer)


def whole(server: HttpServer, path: str, what: str, count: int) -> list[dict[str, Any]]:
    """All pages of a list."""
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        page = get(server, f"{path}{'&' if '?' in path else '?'}count={count}&after={quote(after, safe='')}")
        found += page[what]
        if page["next"] is None:
            return found
        assert len(page[what]) >= count
        after = page["next"]


@given(st.sets(st.binary(max_size=3) | st.sampled_from([b"\xff", rb"\xff", b"\xfe", "ÿ".encode()])), st.integers(1, 5))
def test_pages_hold_each_name_once_whatever_bytes_it_has(names: set[bytes], count: int) -> None:
    found: list[bytes] = []
    after: str | None = ""
    while after is not None:
        page, after = listing.page(names, ListSpan("*", after, count))
        found += page
        assert len(found) <= len(names)
    assert sorted(found) == sorted(names)


def test_channels_and_patterns_are_listed_page_by_page(server: HttpServer) -> None:
    pubsub, other = server.redis().pubsub(), server.redis().pubsub()
    pubsub.subscribe(*(f"c{number}" for number in range(7)))
    pubsub.psubscribe("a*", "b*", b"\xff*")
    other.psubscribe("a*")
    until(lambda: {"name": "a*", "subscribers": 2} in get(server, "/api/patterns")["patterns"], "subscriptions")
    until(lambda: get(server, "/api/channels")["patterns"] == 3, "subscriptions")
    assert [each["name"] for each in whole(server, "/api/channels", "channels", 3)] == [f"c{n}" for n in range(7)]
    assert [each["name"] for each in whole(server, "/api/patterns", "patterns", 1)] == [r"\xff*", "a*", "b*"]
    assert [each["name"] for each in get(server, "/api/patterns?match=b%5C*")["patterns"]] == ["b*"]


def test_patterns_of_all_processes_of_the_store_are_listed(serve: Serve, server: HttpServer, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    other = serve(folder=folder, store_folder=server.store_folder)
    pubsub = other.redis().pubsub()
    pubsub.psubscribe("p*")
    until(lambda: get(server, "/api/patterns")["patterns"] == [{"name": "p*", "subscribers": 1}], "the other's pattern")
    assert len(get(server, "/api/subscribers")["subscribers"]) == 2


def test_ten_thousand_channels_are_listed_a_thousand_at_a_time(server: HttpServer) -> None:
    pubsub = server.redis().pubsub()
    names = [f"channel-{number:05}" for number in range(10_000)]
    pubsub.subscribe(*names)
    for _ in names:
        pubsub.parse_response(timeout=PATIENCE_S)
    assert [each["name"] for each in whole(server, "/api/channels", "channels", 1000)] == names


def test_groups_of_all_topics_are_listed_with_what_is_in_flight(server: HttpServer) -> None:
    client = server.redis()
    for topic in ("a", "b/c", b"\xff"):
        client.xadd(topic, {"n": 1})
        client.xadd(topic, {"n": 2})
        for group in ("one", "two/three"):
            client.xgroup_create(topic, group, "0")
    client.xadd("alone", {"n": 1})
    client.set("text", "x")
    client.xreadgroup("one", "reader", {"b/c": ">"}, count=1)
    client.execute_command("TOPIC.PAUSE", "a", "one")
    found = {(each["topic"], each["name"]): each for each in whole(server, "/api/groups", "groups", 1)}
    assert list(found) == [(topic, group) for topic in ("a", "b/c", r"\xff") for group in ("one", "two/three")]
    reader = found["b/c", "one"]
    assert (reader["lag"], reader["pending"], reader["consumers"], reader["paused"]) == (1, 1, 1, False)
    assert reader["last_delivered_id"] == client.xrange("b/c")[0][0].decode()
    assert found["a", "one"]["paused"] and not found["a", "two/three"]["paused"]
    assert {each["topic"] for each in get(server, "/api/groups?topic=b*")["groups"]} == {"b/c"}


def test_groups_behind_many_topics_that_have_none_are_found(server: HttpServer) -> None:
    pipeline = server.redis().pipeline(transaction=False)
    for number in range(1000):
        pipeline.xadd(f"t{number:04}", {"n": 1})
    for number in (3, 950, 999):
        pipeline.xgroup_create(f"t{number:04}", "g", "0")
    pipeline.execute()
    assert [each["topic"] for each in whole(server, "/api/groups", "groups", 2)] == ["t0003", "t0950", "t0999"]


def test_subscribers_are_listed_with_what_waits_for_them(server: HttpServer) -> None:
    for name in ("durable:billing", "durable:audit"):
        pubsub = redis.Redis(port=server.port, client_name=name).pubsub()
        pubsub.subscribe("orders")
        until(pubsub.get_message, "the confirmation")
        pubsub.close()
    until(lambda: [each["state"] for each in get(server, "/api/subscribers")["subscribers"]].count("away") == 2, "both")
    server.redis().publish("orders", "12345")
    found = whole(server, "/api/subscribers", "subscribers", 1)
    by_name = {each["name"]: each for each in found}
    assert set(by_name) == {None, "billing", "audit"} and len({each["id"] for each in found}) == 3
    one = by_name["billing"]
    assert (one["kind"], one["alive"], one["names"], one["channels"]) == ("durable", False, 1, ["orders"])
    assert one["backlog_messages"] == 1 and one["backlog_bytes"] > 0 and one["oldest_age_ms"] >= 0
    assert one["expired"] is False and one["last_bell_age_ms"] is None
    process = by_name[None]
    assert (process["kind"], process["alive"], process["pid"]) == ("server", True, server.pid)
    assert process["last_bell_age_ms"] is None or process["last_bell_age_ms"] >= 0


@pytest.mark.parametrize("path", ["channels", "patterns", "topics", "groups", "subscribers"])
@pytest.mark.parametrize(
    "query", ["count=0", "count=1001", "count=-1", "count=", "count=1&count=2", "count=%FF", "after=a&after=b"]
)
def test_bad_span_of_a_list_is_refused(standing_server: HttpServer, path: str, query: str) -> None:
    status, headers, answer = standing_server.ask("GET", f"/api/{path}?{query}")
    assert status == 400 and headers["content-type"] == "application/problem+json"
    assert json.loads(answer)["status"] == 400
