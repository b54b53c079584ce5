"""Where a reader of HTTP begins who names a time: `since=`, for pages and for streams."""

from __future__ import annotations

import json
import time
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


@pytest.mark.parametrize("word", ["", "yesterday", "1.5h", "-1", "2026-13-01"])
@pytest.mark.parametrize("path", ["/api/topics/log", "/api/events"])
def test_what_is_no_moment_is_refused(server: HttpServer, path: str, word: str) -> None:
    status, _, answer = server.ask("GET", f"{path}?since={word}")
    assert status == 400 and "since" in json.loads(answer)["title"]
