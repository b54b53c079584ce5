"""Where a reader of HTTP begins who names a time: `since=`, for pages and for streams."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import quote

import pytest
from event_source import EventSource
from http_server import HttpServer

STREAM = "text/event-stream"
MOMENT_MS = 1_700_000_000_000
MOMENT = datetime.fromtimestamp(MOMENT_MS / 1000, UTC)
SPELLED = [
    str(MOMENT_MS),
    MOMENT.isoformat(),
    MOMENT.strftime("%Y-%m-%dT%H:%M:%SZ"),
    MOMENT.strftime("%Y-%m-%dT%H:%M:%S"),
    MOMENT.astimezone(timezone(timedelta(hours=5))).isoformat(),
]


@pytest.fixture
def server(standing_server: HttpServer) -> HttpServer:
    """All tests here change nothing but keys."""
    return standing_server


@pytest.fixture
def fields(server: HttpServer) -> list[str]:
    """The values of entries, a second before, at and a second after the moment."""
    for number in (-1, 0, 1):
        server.redis().xadd("log", {"n": number}, id=f"{MOMENT_MS + 1000 * number}-0")
    return ["0", "1"]


@pytest.mark.parametrize("spelled", SPELLED)
def test_a_page_and_a_stream_begin_with_what_was_added_at_that_time(
    server: HttpServer, fields: list[str], spelled: str
) -> None:
    status, _, answer = server.ask("GET", f"/api/topics/log?since={quote(spelled)}")
    assert status == 200
    assert [each["fields"]["n"] for each in json.loads(answer)["entries"]] == fields
    stream = EventSource(server.http_port, f"?since={quote(spelled)}", path="/api/topics/log", Accept=STREAM)
    assert [json.loads(each.data)["n"] for each in stream.take(2)] == fields
    server.redis().xadd("log", {"n": 9})
    assert [json.loads(each.data)["n"] for each in stream.take(1)] == ["9"]


def test_an_age_is_counted_from_now(server: HttpServer) -> None:
    now_ms = int(time.time() * 1000)
    for minutes in (90, 30, 0):
        server.redis().xadd("log", {"n": minutes}, id=f"{now_ms - minutes * 60_000}-0")
    for since, expected in (("2h", ["90", "30", "0"]), ("1h", ["30", "0"]), ("10m", ["0"])):
        _, _, answer = server.ask("GET", f"/api/topics/log?since={since}")
        assert [each["fields"]["n"] for each in json.loads(answer)["entries"]] == expected


def test_who_comes_back_goes_on_behind_the_last_id_and_a_page_behind_the_later_of_both(
    server: HttpServer, fields: list[str]
) -> None:
    query = f"?since={MOMENT_MS}"
    first = EventSource(server.http_port, query, path="/api/topics/log", Accept=STREAM)
    first.take(1)
    again = EventSource(server.http_port, query, first.last_id, path="/api/topics/log", Accept=STREAM)
    assert [json.loads(each.data)["n"] for each in again.take(1)] == ["1"]
    _, _, answer = server.ask("GET", f"/api/topics/log{query}&after={MOMENT_MS}-0")
    assert [each["fields"]["n"] for each in json.loads(answer)["entries"]] == ["1"]


def test_events_begin_there_too(server: HttpServer) -> None:
    for number in (-1, 0, 1):
        server.redis().xadd("events", {"type": "t", "body": number}, id=f"{MOMENT_MS + number}-0")
    assert [each.data for each in EventSource(server.http_port, f"?since={MOMENT_MS}").take(2)] == ["0", "1"]


PATHS = ["/api/events", "/api/topics/log", "/api/channels/kept"]


@pytest.fixture
def append(standing: Callable[..., HttpServer]) -> Callable[[str, str], None]:
    server = standing("--retain", "kept 7d")

    def add(path: str, body: str) -> None:
        status, _, answer = server.ask("POST", path + "?type=t" * (path == PATHS[0]), body.encode())
        assert status == 200, answer

    return add


@pytest.mark.parametrize("since", ["1h ahead", "now", "1s"])
@pytest.mark.parametrize("path", PATHS)
def test_a_stream_from_a_moment_behind_all_that_there_is_begins_with_what_comes_next(
    standing: Callable[..., HttpServer], append: Callable[[str, str], None], path: str, since: str
) -> None:
    server = standing("--retain", "kept 7d")
    name = path.rpartition("/")[2]
    field = {"events": "body"}.get(name, "message")
    server.redis().xadd(name, {"type": "t", field: "old"} if name == "events" else {field: "old"}, id="1700000000000-0")
    now_ms = int(time.time() * 1000)
    word = {"1h ahead": str(now_ms + 3_600_000), "now": str(now_ms)}.get(since, since)
    accept = {"Accept": STREAM}
    source = EventSource(server.http_port, f"?since={word}", path=path, **accept)
    position = source.response.getheader("last-event-id")
    append(path, "new")
    (found,) = source.take(1)
    assert (found.type, "new" in found.data) == ("t" if name == "events" else "message", True)
    assert position  # who comes back with it before there was anything has lost nothing, whatever the time
    (again,) = EventSource(server.http_port, f"?since={word}", position, path=path, **accept).take(1)
    assert again == found


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_from_a_moment_of_a_topic_that_is_yet_to_come_has_all_of_it(
    standing: Callable[..., HttpServer], append: Callable[[str, str], None], path: str
) -> None:
    server = standing("--retain", "kept 7d")
    source = EventSource(server.http_port, "?since=1h", path=path, Accept=STREAM)
    append(path, "first")
    append(path, "second")
    first, second = source.take(2)
    assert "first" in first.data and "second" in second.data


@pytest.mark.parametrize("path", PATHS)
def test_an_id_that_this_store_never_gave_is_a_gap_whatever_the_moment(
    standing: Callable[..., HttpServer], append: Callable[[str, str], None], path: str
) -> None:
    server = standing("--retain", "kept 7d")
    append(path, "old")
    source = EventSource(server.http_port, "?since=1m", "99999999999999-0", path=path, Accept=STREAM)
    gap, old = source.take(2)
    assert gap.type == "gap" and json.loads(gap.data)["reason"] == "unknown"
    assert "old" in old.data


@pytest.mark.parametrize("word", ["", "yesterday", "1.5h", "-1", "2026-13-01"])
@pytest.mark.parametrize("path", ["/api/topics/log", "/api/events"])
def test_what_is_no_moment_is_refused(server: HttpServer, path: str, word: str) -> None:
    status, _, answer = server.ask("GET", f"{path}?since={word}")
    assert status == 400 and "since" in json.loads(answer)["title"]
