"""The event bus, as its clients see it: a server process, HTTP and Redis clients."""

from __future__ import annotations

import http.client
import json
import signal
import threading
from collections.abc import Callable
from uuid import UUID

import pytest
from cutting_proxy import CuttingProxy
from event_source import EventSource
from http_server import HttpServer
from patience import PATIENCE_S, until
from redis.exceptions import ResponseError

from rlite_pubsub.storage.topics import uuid6

Serve = Callable[..., HttpServer]


def bodies(source: EventSource, count: int) -> list[str]:
    return [event.data for event in source.take(count)]


# -- posting


def test_event_that_is_posted_is_an_entry_of_the_topic_events(server: HttpServer) -> None:
    status, headers, answer = server.ask("POST", "/api/events?type=order%20paid", "zwölf\r\nmal\n".encode())
    assert status == 200 and headers["content-type"] == "application/json"
    id = json.loads(answer)["id"]
    ms, seq = uuid6.parse(id) or (0, 0)
    assert UUID(id).version == 6
    assert server.redis().xrange("events") == [
        (f"{ms}-{seq}".encode(), {b"type": b"order paid", b"body": "zwölf\r\nmal\n".encode()})
    ]


def test_ids_grow_with_every_post(server: HttpServer) -> None:
    ids = [server.post("t", str(number)) for number in range(50)]
    assert ids == sorted(set(ids))


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/events", b"x", 400),
        ("/api/events?type=", b"x", 400),
        ("/api/events?type=a&type=b", b"x", 400),
        ("/api/events?type=a%0Aid:%205", b"x", 400),
        ("/api/events?type=a%00", b"x", 400),
        ("/api/events?type=%ff", b"x", 400),
        ("/api/events?type=gap", b"x", 400),
        ("/api/events?type=error", b"x", 400),
        ("/api/events?type=open", b"x", 400),
        ("/api/events?type=t&topic=u", b"x", 400),
        ("/api/events?type=" + "x" * 1025, b"x", 400),
        ("/api/events?type=t", b"\xff\xfe", 415),
        ("/api/events?type=t", b"x" * (1 << 20) + b"x", 413),
    ],
)
def test_event_that_is_refused_is_not_stored(
    standing_server: HttpServer, path: str, body: bytes, status: int
) -> None:
    answered, headers, problem = standing_server.ask("POST", path, body)
    assert answered == status and headers["content-type"] == "application/problem+json"
    assert json.loads(problem)["status"] == status
    assert not standing_server.redis().exists("events")


def test_body_that_is_no_text_is_refused_with_a_hint(server: HttpServer) -> None:
    _, _, problem = server.ask("POST", "/api/events?type=t", b"\xff")
    assert "base64" in json.loads(problem)["detail"]


def test_chunked_body_that_grows_too_large_is_refused(serve: Serve) -> None:
    server = serve("--http-max-body", "1000")
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=PATIENCE_S)
    connection.request("POST", "/api/events?type=t", iter([b"x" * 600] * 2), encode_chunked=True,
                       headers={"Transfer-Encoding": "chunked"})  # fmt: skip
    assert connection.getresponse().status == 413
    connection.close()


def test_key_that_is_no_topic_is_left_alone(server: HttpServer) -> None:
    server.redis().set("events", "mine")
    assert server.ask("POST", "/api/events?type=t", b"x")[0] == 409
    assert server.redis().get("events") == b"mine"
    server.redis().delete("events")
    server.post("t", "x")


def test_posts_wait_while_writes_are_paused(server: HttpServer) -> None:
    redis = server.redis()
    redis.client_pause(60_000, all=False)
    answered: list[str] = []
    thread = threading.Thread(target=lambda: answered.append(server.post("t", "x")))
    thread.start()
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=PATIENCE_S)
    connection.request("GET", "/readyz")
    assert connection.getresponse().status == 200
    connection.close()
    assert not answered and not redis.exists("events")
    redis.client_unpause()
    thread.join(PATIENCE_S)
    assert len(answered) == 1


def test_full_store_is_said_and_what_was_stored_stays(serve: Serve) -> None:
    server = serve("--store-quota", "2mb")
    stored, status = [], 200
    while status == 200:
        status, _, answer = server.ask("POST", "/api/events?type=t", b"x" * 50_000)
        if status == 200:
            stored.append(json.loads(answer)["id"])
        assert len(stored) < 1000
    assert status == 507 and stored
    assert [event.id for event in EventSource(server.http_port).take(len(stored))] == stored


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_every_post_is_answered_whatever_the_durability(serve: Serve, policy: str) -> None:
    server = serve("--appendfsync", policy)
    threads = [threading.Thread(target=lambda: [server.post("t", "x") for _ in range(20)]) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert server.redis().xlen("events") == 100


# -- streaming


def test_stream_has_what_was_posted_and_then_what_is_posted(server: HttpServer) -> None:
    ids = [server.post(f"type {number % 3}".replace(" ", "%20"), f"line 1\nline {number}") for number in range(10)]
    source = EventSource(server.http_port)
    ids += [server.post("live", "x") for _ in range(10)]
    assert [event.id for event in source.take(20)] == ids
    assert source.response.getheader("content-type") == "text/event-stream; charset=utf-8"
    assert source.response.getheader("cache-control") == "no-store"
    assert source.response.getheader("x-accel-buffering") == "no"


def test_what_redis_clients_append_is_streamed_in_the_same_order(server: HttpServer) -> None:
    source = EventSource(server.http_port)
    redis = server.redis()
    server.post("a", "1")
    redis.xadd("events", {"type": "b", "body": "2"})
    redis.xadd("events", {"colour": "red"})
    server.post("c", "4")
    assert [(event.type, event.data) for event in source.take(4)] == [
        ("a", "1"),
        ("b", "2"),
        ("message", '{"colour": "red"}'),
        ("c", "4"),
    ]


def test_no_event_can_be_taken_for_what_the_stream_says_of_itself(server: HttpServer) -> None:
    redis = server.redis()
    for type in ("gap", "error", "open", "gap ", "Gap", "opened"):
        redis.xadd("events", {"type": type, "body": type})
    source = EventSource(server.http_port, last_id="99999999999999-0")
    assert source.next().type == "gap"
    seen = [(event.type, event.data) for event in source.take(6)]
    assert seen == [("message", "gap"), ("message", "error"), ("message", "open"),
                    ("gap ", "gap "), ("Gap", "Gap"), ("opened", "opened")]  # fmt: skip
    rare = EventSource(server.http_port, "?typeMatcher=%5Egap%24")
    assert rare.next().data == "gap"  # by its type, whatever it is called


def test_line_ends_are_kept_where_the_topic_is_read(server: HttpServer) -> None:
    body = "a\r\nb\rc\n"
    server.post("t", body)
    assert EventSource(server.http_port).next().data == "a\nb\nc\n"
    stream = EventSource(server.http_port, path="/api/topics/events", Accept="text/event-stream")
    assert json.loads(stream.next().data)["body"] == body


def test_what_another_process_appends_is_streamed(server: HttpServer, serve: Serve) -> None:
    other = serve()
    source = EventSource(server.http_port)
    server.post("here", "1")
    assert bodies(source, 1) == ["1"]
    other.post("there", "2")
    assert bodies(source, 1) == ["2"]


def test_reader_that_comes_back_gets_what_it_has_missed_and_no_more(server: HttpServer) -> None:
    ids = [server.post("t", str(number)) for number in range(10)]
    assert bodies(EventSource(server.http_port, last_id=ids[3]), 6) == list("456789")
    assert bodies(EventSource(server.http_port, f"?last_event_id={ids[6]}"), 3) == list("789")
    both = EventSource(server.http_port, f"?last_event_id={ids[1]}", last_id=ids[8])
    assert bodies(both, 1) == ["9"]
    assert both.response.getheader("last-event-id") == ids[8]


def test_reader_may_begin_at_the_end_and_knows_its_place_there(server: HttpServer) -> None:
    last = server.post("t", "old")
    source = EventSource(server.http_port, "?last_event_id=latest")
    assert source.response.getheader("last-event-id") == last
    assert [source.line() for _ in range(3)] == [b"retry: 2000\n", b"\n", b"id: " + last.encode() + b"\n"]
    server.post("t", "new")
    assert bodies(source, 1) == ["new"]


def test_types_are_filtered_by_patterns_of_which_one_must_match(server: HttpServer) -> None:
    source = EventSource(server.http_port, "?typeMatcher=%5Eorder%5C.&typeMatcher=paid%24")
    for number, type in enumerate(["order.new", "invoice", "invoice.paid", "reorder.", "order.paid"]):
        server.post(type, str(number))
    assert bodies(source, 3) == ["0", "2", "4"]
    again = EventSource(server.http_port, "?typeMatcher=%5Einvoice%24")
    assert bodies(again, 1) == ["1"]


def test_bad_pattern_is_refused(server: HttpServer) -> None:
    for pattern in ("(", "(%3F=x)", r"(a)%5C1"):
        assert server.ask("GET", f"/api/events?typeMatcher={pattern}")[0] == 400


@pytest.mark.parametrize("asked", ["nonsense", "1ec9414c-232a-6b00-b3c8-9f6bdeced846", "99999999999999-0"])
def test_unknown_id_replays_from_the_earliest_and_says_so(server: HttpServer, asked: str) -> None:
    first = server.post("t", "1")
    source = EventSource(server.http_port, last_id=asked)
    assert source.response.getheader("last-event-id") == "earliest"
    gap = source.next()
    about = json.loads(gap.data)
    assert gap.type == "gap" and about == {
        "reason": "unknown", "last_event_id": asked, "earliest": first, "lost_at_most": None
    }  # fmt: skip
    assert bodies(source, 1) == ["1"]


def test_expired_id_replays_from_the_earliest_and_says_how_much_is_lost(server: HttpServer) -> None:
    ids = [server.post("t", str(number)) for number in range(10)]
    server.redis().xtrim("events", maxlen=4, approximate=False)
    source = EventSource(server.http_port, last_id=ids[2])
    assert source.response.getheader("last-event-id") == "earliest"
    about = json.loads(source.next().data)
    assert about == {"reason": "expired", "last_event_id": ids[2], "earliest": ids[6], "lost_at_most": 6}
    assert bodies(source, 4) == list("6789")


def test_last_id_before_what_is_left_is_no_gap(server: HttpServer) -> None:
    ids = [server.post("t", str(number)) for number in range(10)]
    server.redis().xtrim("events", maxlen=4, approximate=False)
    source = EventSource(server.http_port, last_id=ids[5])
    assert source.response.getheader("last-event-id") == ids[5]
    assert bodies(source, 4) == list("6789")


def test_stream_goes_on_after_its_topic_was_deleted(server: HttpServer) -> None:
    server.post("t", "1")
    source = EventSource(server.http_port)
    assert bodies(source, 1) == ["1"]
    server.redis().delete("events")
    server.post("t", "2")
    assert bodies(source, 1) == ["2"]


def test_every_stream_has_every_event_once_and_in_one_order_while_many_post(server: HttpServer) -> None:
    ids: list[str] = []
    posters = [
        threading.Thread(target=lambda: ids.extend([server.post("t", "x") for _ in range(60)])) for _ in range(6)
    ]
    sources = []
    for poster in posters:
        poster.start()
        sources.append(EventSource(server.http_port))
    seen = [[event.id for event in source.take(360)] for source in sources]
    for poster in posters:
        poster.join(PATIENCE_S)
    assert all(each == sorted(ids) for each in seen)


def test_silent_stream_says_that_it_lives(serve: Serve) -> None:
    server = serve("--http-heartbeat", "1", "--http-retry", "1234")
    source = EventSource(server.http_port)
    assert [source.line() for _ in range(4)] == [b"retry: 1234\n", b"\n", b":\n", b"\n"]
    server.post("t", "x")
    assert bodies(source, 1) == ["x"]


def stored_bytes(server: HttpServer) -> int:
    return int(server.redis().execute_command("TOPIC.INFO", "events")[b"bytes"])


def test_segments_are_kept_and_the_oldest_events_go(serve: Serve) -> None:
    server = serve("--events-segments", "4", "--events-segment-size", "10kb")
    redis = server.redis()
    for number in range(100):
        server.post("t", f"{number} " + "x" * 1000)
    kept = redis.xlen("events")
    assert 30 <= kept <= 40
    assert bodies(EventSource(server.http_port), 1)[0].startswith(f"{100 - kept} ")


def test_events_never_exceed_their_segments_at_any_commit_however_many_post(serve: Serve) -> None:
    server = serve("--events-segments", "4", "--events-segment-size", "100kb")
    is_over = threading.Event()
    most = 0

    def watch() -> None:
        nonlocal most
        client = server.redis()
        while not is_over.is_set():
            if client.exists("events"):
                most = max(most, int(client.execute_command("TOPIC.INFO", "events")[b"bytes"]))

    def post(size: int) -> None:
        for _ in range(40):
            server.post("t", "x" * size)

    watcher = threading.Thread(target=watch)
    posters = [threading.Thread(target=post, args=(size,)) for size in (60_000, 40_000, 20_000, 100, 5000, 60_000)]
    for thread in (watcher, *posters):
        thread.start()
    for thread in posters:
        thread.join(PATIENCE_S)
    is_over.set()
    watcher.join(PATIENCE_S)
    assert 200_000 < most <= 400 * 1024


def test_event_that_is_larger_than_all_segments_is_refused_and_the_others_stay(serve: Serve) -> None:
    server = serve("--events-segments", "2", "--events-segment-size", "1kb")
    large = b"x" * 3000
    refused = [("/api/events?type=t", large), ("/api/topics/events", large)]
    for path, body in refused:
        status, _, problem = server.ask("POST", path, body)
        assert status == 413 and "events-segment" in json.loads(problem)["detail"]
    assert not server.redis().exists("events")
    ids = [server.post("t", f"{number}") for number in range(3)]
    for path, body in refused:
        assert server.ask("POST", path, body)[0] == 413
    with pytest.raises(ResponseError, match="TOOLARGE"):
        server.redis().xadd("events", {"type": "t", "body": large})
    server.redis().config_set("events-segments", 4)
    ids.append(server.post("t", large.decode()))
    assert [event.id for event in EventSource(server.http_port).take(4)] == ids
    largest = b"x" * 1919
    server.redis().config_set("events-segments", 2)
    last = server.post("t", largest.decode())
    assert [event.id for event in EventSource(server.http_port).take(1)] == [last]


def test_what_redis_clients_append_beyond_the_segments_goes_soon(serve: Serve) -> None:
    server = serve("--events-segments", "4", "--events-segment-size", "10kb")
    server.post("t", "x")
    pipeline = server.redis().pipeline(transaction=False)
    for _ in range(1000):
        pipeline.xadd("events", {"type": "t", "body": "x" * 1000})
    pipeline.execute()
    until(lambda: stored_bytes(server) <= 40 * 1024, "retention")
    assert stored_bytes(server) > 30 * 1024


# -- comings and goings


def test_reader_that_is_slow_costs_bounded_memory_and_gets_everything(server: HttpServer) -> None:
    source = EventSource(server.http_port)
    redis = server.redis()
    before = server.own_memory_bytes()
    for _ in range(40):
        pipeline = redis.pipeline(transaction=False)
        for _ in range(100):
            pipeline.xadd("events", {"type": "t", "body": "x" * 10_000})
        pipeline.execute()
    assert server.own_memory_bytes() - before < 30 << 20
    last = redis.xrevrange("events", count=1)[0][0].decode()
    seen = [uuid6.parse(event.id) for event in source.take(4000)]
    assert seen == sorted(set(seen)) and uuid6.parse(last) == seen[-1]


def test_reader_that_leaves_leaves_nothing_behind(server: HttpServer) -> None:
    server.post("t", "x")
    descriptors = server.descriptors()
    sources = [EventSource(server.http_port) for _ in range(20)]
    for source in sources:
        source.take(1)
        source.close()
    until(lambda: server.descriptors() <= descriptors, "the end of the streams")
    server.post("t", "y")


def test_shutdown_ends_streams_in_order_and_answers_posts(server: HttpServer) -> None:
    ids = [server.post("t", "x") for _ in range(5)]
    source = EventSource(server.http_port)
    assert [event.id for event in source.take(5)] == ids
    server.process.send_signal(signal.SIGTERM)
    assert source.response.readline() == b""  # raises IncompleteRead where the stream is cut short
    assert server.exit_code() == 0
    assert "Traceback" not in server.log() + server.output()


def test_killed_server_loses_no_answered_post_and_readers_go_on_where_they_were(serve: Serve) -> None:
    server = serve()
    source = EventSource(server.http_port)
    answered: list[str] = []
    seen: list[str] = []

    def post(to: HttpServer) -> None:
        try:
            while len(answered) < 3000:
                answered.append(to.post("t", str(len(answered))))
        except (OSError, http.client.HTTPException):
            return

    for _ in range(3):
        poster = threading.Thread(target=post, args=(server,))
        poster.start()
        wanted = len(answered) + 50
        until(lambda: len(answered) > wanted, "posts")  # noqa: B023  it is called here and now
        server.end(signal.SIGKILL)
        poster.join(PATIENCE_S)
        seen += [event.id for event in source.rest()]
        last = source.last_id
        server = serve(http_port=server.http_port)
        source = EventSource(server.http_port, last_id=last)
        assert source.response.getheader("last-event-id") == (last or None)
    final = server.post("t", "final")
    while not seen or seen[-1] != final:
        seen.append(source.next().id)
    assert seen == sorted(set(seen))
    assert set(answered) <= set(seen)
    stored = [uuid6.parse(id.decode()) for id, _ in server.redis().xrange("events")]
    assert [uuid6.parse(id) for id in seen] == stored


@pytest.mark.parametrize("seed", range(4))
def test_reader_behind_a_proxy_that_cuts_connections_has_every_event_once_and_in_order(
    server: HttpServer, seed: int
) -> None:
    expected: list[str] = []

    def post() -> None:
        for number in range(300):
            expected.append(server.post(f"type{number % 3}", f"{number}\n" * (number % 7)))

    poster = threading.Thread(target=post)
    poster.start()
    seen: list[str] = []
    last = ""
    with CuttingProxy(server.http_port, seed, 6000) as proxy:
        while len(seen) < 300:
            try:
                source = EventSource(proxy.port, last_id=last)
            except (OSError, http.client.HTTPException):
                continue  # it was cut within the headers
            try:
                while len(seen) < 300:
                    seen.append(source.next().id)
            except (OSError, http.client.HTTPException, StopIteration):
                pass
            last = source.last_id
            source.close()
        assert proxy.cuts > 3
    poster.join(PATIENCE_S)
    assert seen == expected
