"""`rlite-pubsub events`, as a user runs it, against a server that speaks HTTP."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from http_server import HttpServer
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENCE_S

from rlite_pubsub.cli.following.events import Event, EventStream
from rlite_pubsub.gateway.http import sse

COMMAND = [sys.executable, "-m", "rlite_pubsub", "events"]
Serve = Callable[..., HttpServer]


def url_of(server: HttpServer) -> str:
    return f"http://127.0.0.1:{server.http_port}"


def run(*words: str, data: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *words], input=data, capture_output=True, timeout=PATIENCE_S, env=os.environ | environment
    )


def test_posted_event_is_shown_with_its_id_type_and_body(serve_http: Serve, tmp_path: Path) -> None:
    (tmp_path / "body").write_text("from a file")
    url = url_of(serve_http())
    posts = [
        run("post", "a.b", "hello", "--url", url),
        run("post", "a.c", "--url", url, data=b"two\nlines"),
        run("post", "c&d=", f"@{tmp_path}/body", "--url", url + "/"),
    ]
    ids = [posted.stdout.decode().strip() for posted in posts]

    shown = run("tail", "--url", url, "-n", "3").stdout.decode().splitlines()
    assert shown == [f"{ids[0]} a.b hello", f"{ids[1]} a.c two\\nlines", f"{ids[2]} c&d= from a file"]
    assert run("tail", "--url", url, "-n", "1", "--raw", "--last-event-id", ids[0]).stdout == b"two\nlines\n"
    matchers = ("--type-matcher", "^c", "--type-matcher", "^d")
    about = json.loads(run("tail", "--url", url, "-n", "1", "--json", *matchers).stdout)
    assert about == {"id": ids[2], "type": "c&d=", "data": "from a file"}


def test_killed_server_costs_no_event_and_doubles_none(serve_http: Serve) -> None:
    server = serve_http("--http-retry", "50")
    ids = [server.post("t", str(number)) for number in range(30)]
    process = subprocess.Popen(
        [*COMMAND, "tail", "--url", url_of(server)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    told: list[str] = []
    listening = threading.Thread(target=lambda: told.extend(process.stderr or ()))
    listening.start()
    try:
        seen = [process.stdout.readline() for _ in range(10)]
        for round in range(2):
            server.end(signal.SIGKILL)
            server = serve_http("--http-retry", "50", http_port=server.http_port, port=server.port)
            ids += [server.post("t", f"{round} {number}") for number in range(20)]
        seen += [process.stdout.readline() for _ in range(len(ids) - 10)]
        assert [line.split()[0] for line in seen] == ids
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
        listening.join(PATIENCE_S)
        assert told and all(line.endswith("coming back\n") for line in told)
    finally:
        process.kill()
        process.wait()
        listening.join(PATIENCE_S)


def test_id_that_is_not_there_any_more_is_told_as_a_gap(serve_http: Serve) -> None:
    server = serve_http()
    ids = [server.post("t", str(number)) for number in range(10)]
    server.redis().xtrim("events", maxlen=4, approximate=False)
    ended = run("tail", "--url", url_of(server), "--last-event-id", ids[2], "-n", "4")
    assert [line.split()[0].decode() for line in ended.stdout.splitlines()] == ids[6:]
    assert ended.stderr.startswith(b"rlite-pubsub: gap: {") and b'"expired"' in ended.stderr


@pytest.mark.parametrize("type", ["gap", "error", "open"])
def test_event_of_a_type_that_notices_have_is_refused(serve_http: Serve, type: str) -> None:
    refused = run("post", type, "x", "--url", url_of(serve_http()))
    assert refused.returncode == 1
    assert b"no event's type" in refused.stderr


def test_token_comes_from_a_file_or_the_environment_and_from_no_argument(serve_http: Serve, tmp_path: Path) -> None:
    url = url_of(serve_http("--requirepass", "secret"))
    (tmp_path / "token").write_text("secret\n")
    assert run("post", "t", "x", "--url", url, "--token-file", str(tmp_path / "token")).returncode == 0
    assert run("post", "t", "x", "--url", url, RLITE_TOKEN="secret").returncode == 0
    for words in (["post", "t", "x"], ["tail", "-n", "1"]):
        refused = run(*words, "--url", url, RLITE_TOKEN="")
        assert refused.returncode == 1 and b"the server answers 401" in refused.stderr
    in_url = run("post", "t", "x", "--url", url.replace("://", "://:secret@"))
    assert in_url.returncode == 1 and b"others can see a URL" in in_url.stderr and b"secret" not in in_url.stderr
    assert run("post", "t", "x", "--url", url, RLITE_TOKEN="a\nb").returncode == 1


@pytest.mark.parametrize(
    ("words", "data", "told"),
    [
        (["post", "", "x"], b"", "400: An event has one type"),
        (["post", "t"], b"\xff", "415: The body of an event is UTF-8"),
        (["tail", "--type-matcher", "("], b"", "400: "),
    ],
)
def test_what_the_server_refuses_is_told_in_its_words(
    serve_http: Serve, words: list[str], data: bytes, told: str
) -> None:
    ended = run(*words, "--url", url_of(serve_http()), data=data)
    assert ended.returncode == 1
    assert f"the server answers {told}" in ended.stderr.decode() and b"Traceback" not in ended.stderr


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense", "http://127.0.0.1:99999", "redis://127.0.0.1"])
def test_place_where_no_server_is_is_one_clear_error(url: str) -> None:
    for words in (["post", "t", "x"], ["tail"]):
        ended = run(*words, "--url", url)
        assert ended.returncode == 1 and re.fullmatch(rb"rlite-pubsub: .+\n", ended.stderr)


def test_reader_that_goes_away_ends_it_silently(serve_http: Serve) -> None:
    server = serve_http("--http-heartbeat", "1")
    server.post("t", "x")
    command = f"unset PYTHONUNBUFFERED; {' '.join(COMMAND)} tail --url {url_of(server)} | head -n 1; "
    command += 'echo "${PIPESTATUS[0]}"'
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.stdout.endswith(" t x\n0\n") and ended.stderr == ""


words_of_a_line = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), min_size=1)


@given(
    st.lists(st.tuples(words_of_a_line, words_of_a_line, st.text(st.characters(exclude_categories=["Cs"])))),
    st.integers(1, 7),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
)
def test_events_are_the_same_however_their_bytes_are_cut(
    events: list[tuple[str, str, str]], size: int, end: bytes
) -> None:
    data = sse.retry(1234) + b"".join(
        [sse.event(type.encode(), id.encode(), body.encode()) + sse.HEARTBEAT for type, id, body in events]
    )
    data = data.replace(b"\n", end) + b":"
    stream = EventStream(None, 1)
    found = [event for at in range(0, len(data), size) for event in stream.feed(data[at : at + size])]
    assert found == [
        Event(type, id, body.replace("\r\n", "\n").replace("\r", "\n")) for type, id, body in events
    ]
    assert stream.retry_ms == 1234
    assert stream.last_id == (events[-1][1] if events else None)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_event_that_is_not_whole_counts_for_nothing(end: bytes) -> None:
    whole = end.join([b"id: 1", b"data: a", b"", b""])
    for cut in range(len(whole) - len(end)):
        stream = EventStream("0", 1)
        assert stream.feed(whole[:cut]) == [] and stream.last_id == "0"
    stream = EventStream("0", 1)
    stream.feed(whole + b":" + end)
    assert stream.last_id == "1"
