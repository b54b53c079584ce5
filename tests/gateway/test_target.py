"""What a path is about: pure, and over HTTP for names that are hard to say."""

from __future__ import annotations

import json
from urllib.parse import quote_from_bytes

import pytest
from http_server import HttpServer
from hypothesis import given
from hypothesis import strategies as st

from rlite_pubsub.gateway.http.request import Problem
from rlite_pubsub.gateway.http.target import MAX_NAME_BYTES, RequestTarget, target_of

names = st.binary(min_size=1, max_size=40)
TOPIC = "/api/topics/{name}"


def quoted(name: bytes) -> bytes:
    return quote_from_bytes(name, safe="").encode()


@given(names, names)
def test_name_of_any_bytes_is_the_one_that_was_encoded(name: bytes, group: bytes) -> None:
    topic = b"/api/topics/" + quoted(name)
    assert target_of(b"/api/channels/" + quoted(name)) == ("/api/channels/{name}", name, b"")
    assert target_of(topic) == (TOPIC, name, b"")
    assert target_of(topic + b"/info") == (f"{TOPIC}/info", name, b"")
    of_group = target_of(topic + b"/groups/" + quoted(group) + b"/requeue")
    assert of_group == (f"{TOPIC}/groups/{{group}}/requeue", name, group)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        (b"/api/topics", RequestTarget("/api/topics")),
        (b"/api/topics/", RequestTarget("/api/topics")),
        (b"/api/%74opics/a", RequestTarget(TOPIC, b"a")),
        (b"/api/topics/a/b", RequestTarget(TOPIC, b"a/b")),
        (b"/api/topics/a/b/info", RequestTarget(f"{TOPIC}/info", b"a/b")),
        (b"/api/topics/a%2Finfo", RequestTarget(TOPIC, b"a/info")),
        (b"/api/topics/info", RequestTarget(TOPIC, b"info")),
        (b"/api/topics/a/%69nfo", RequestTarget(TOPIC, b"a/info")),
        (b"/api/topics/a/b/groups/g/pause", RequestTarget(f"{TOPIC}/groups/{{group}}/pause", b"a/b", b"g")),
        (b"/api/topics/a/pause", RequestTarget(f"{TOPIC}/pause", b"a")),
        (b"/api/topics/a/requeue", RequestTarget(TOPIC, b"a/requeue")),
        (b"/api/channels/a/b/info", RequestTarget("/api/channels/{name}", b"a/b/info")),
        (b"/api/events", RequestTarget("/api/events", b"events")),
        (b"/api/%65vents", RequestTarget("/api/events", b"events")),
        (b"/api/events/", RequestTarget("/api/events/")),
        (b"/api%2Ftopics/a", RequestTarget("/api/topics/a")),
        (b"/metrics", RequestTarget("/metrics")),
    ],
)
def test_slash_that_is_not_encoded_belongs_to_the_name_where_that_leaves_no_doubt(
    path: bytes, target: RequestTarget
) -> None:
    assert target_of(path) == target


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (b"/api/topics/%", 400),
        (b"/api/topics/%z0", 400),
        (b"/%f", 400),
        (b"/api/topics//info", 404),
        (b"/api/topics/a/groups//pause", 404),
        (b"/api/channels/" + b"x" * (MAX_NAME_BYTES + 1), 400),
    ],
)
def test_path_that_cannot_be_read_is_refused(path: bytes, status: int) -> None:
    with pytest.raises(Problem) as refused:
        target_of(path)
    assert refused.value.status == status


@pytest.mark.parametrize("name", [b"a/b", b"a/info", b"\xff\xfe", b"\0", b"%41", b"+ ?#&", b"x" * 8000, b"."])
def test_name_that_is_hard_to_say_reaches_its_topic(standing_server: HttpServer, name: bytes) -> None:
    path = f"/api/topics/{quote_from_bytes(name, safe='')}"
    if name == b".":
        path = "/api/topics/%2E"
    assert standing_server.ask("POST", path, b"x")[0] == 200
    assert standing_server.redis().xlen(name) == 1
    assert len(json.loads(standing_server.ask("GET", path)[2])["entries"]) == 1
    assert json.loads(standing_server.ask("GET", f"{path}/info")[2])["length"] == 1
