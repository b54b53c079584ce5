"""Live tails in a real Chromium: what comes is there, once and in order, whatever happens to the connection."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
from chromium import Look, Sight, browser, expect, look, needs_chromium
from cutting_proxy import CuttingProxy
from http_server import HttpServer
from patience import until

pytestmark = needs_chromium
__all__ = ["browser", "look"]  # fixtures
Serve = Callable[..., HttpServer]
COUNT = 1000
BODY = "x" * 100


@pytest.fixture
def brisk(serve: Serve) -> HttpServer:
    """Its readers come back at once."""
    return serve("--http-retry", "20")


class Proxy(CuttingProxy):
    """A browser opens connections ahead of time, and may send nothing on one: each is served by itself."""

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve_alone, args=(client,), daemon=True).start()

    def _serve_alone(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, socket.create_connection(("127.0.0.1", self._port)) as server:
            self._serve(client, server)


def hide(sight: Sight, *, is_hidden: bool) -> None:
    """As when another tab is in front."""
    sight.page.evaluate(
        """isHidden => {
            Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        is_hidden,
    )


def through(sight: Sight, proxy: Proxy) -> None:
    """A page at the proxy's origin: its files come from the server itself, and only its streams through the proxy."""
    own = f"http://127.0.0.1:{proxy.port}"

    def serve_file(route: Any) -> None:
        answer = sight.context.request.get(sight.origin + route.request.url.removeprefix(own))
        route.fulfill(response=answer)

    def serve_nothing(route: Any) -> None:
        route.fulfill(body="<!doctype html><title>empty</title>", content_type="text/html")

    sight.context.route(f"{own}/page/**", serve_file)
    sight.context.route(f"{own}/empty", serve_nothing)
    sight.page.goto(f"{own}/empty")


# -- what is followed


def test_tail_of_a_channel_shows_what_comes_and_of_that_what_the_filter_lets_through(
    server: HttpServer, look: Look
) -> None:
    redis = server.redis()
    sight = look(server).open("channels")
    pubsub = redis.pubsub()
    pubsub.subscribe("news/1")
    sight.row("news/1").get_by_role("button", name="Tail").click()
    sight.follows()
    for text in ("red apple", "green apple", "red wine"):
        assert redis.publish("news/1", text) == 2
    sight.becomes(sight.messages, ["red apple", "green apple", "red wine"])
    sight.panel.locator("#tail-filter").fill("RED")
    sight.becomes(sight.messages, ["red apple", "red wine"])
    sight.panel.locator("#tail-filter").fill("apple red")
    sight.becomes(sight.messages, ["red apple"])
    redis.publish("news/1", "another apple, not red enough? it is red")
    redis.publish("news/1", "pear")
    expect(sight.panel.locator("#tail-size")).to_have_text("2 match, 5 received")
    sight.panel.locator("#tail-filter").fill("")
    sight.panel.get_by_role("button", name="Pause", exact=True).click()
    redis.publish("news/1", "later")
    expect(sight.panel.locator("#tail-size")).to_have_text("1 not shown, 6 received")
    assert "later" not in sight.messages()
    sight.panel.get_by_role("button", name="Continue").click()
    sight.becomes(lambda: sight.messages()[-1], "later")
    sight.panel.get_by_role("button", name="Clear").click()
    sight.becomes(sight.messages, [])


def test_tail_of_a_pattern_says_from_which_channel_each_comes(server: HttpServer, look: Look) -> None:
    sight = look(server).open("tail", kind="pattern", name="o*.?")
    sight.follows()
    server.redis().publish("orders.1", "tea")
    server.redis().publish("orders.2", b"\xff")
    sight.becomes(sight.messages, ["tea", '{"base64":"/w=="}'])
    assert sight.cells("tea")[1] == "orders.1"


def test_tail_of_a_topic_begins_where_it_is_told(server: HttpServer, look: Look) -> None:
    redis = server.redis()
    redis.xadd("log", {"message": "before"})
    sight = look(server).open("tail", kind="topic", name="log")
    sight.follows()
    redis.xadd("log", {"message": "after"})
    sight.becomes(sight.messages, ["after"])
    sight.panel.get_by_label("Start", exact=True).select_option("from the oldest")
    sight.panel.get_by_role("button", name="Follow").click()
    sight.becomes(sight.messages, ["before", "after"])
    redis.xadd("log", {"a": "1", "b": "2"})
    sight.becomes(lambda: sight.messages()[-1:], ['{"a": "1", "b": "2"}'])


def test_tail_of_the_events_takes_a_type_and_tells_each(server: HttpServer, look: Look) -> None:
    for type, body in (("order.placed", "1"), ("payment", "2"), ("order.sent", "3")):
        server.post(type, body)
    sight = look(server).open("tail", kind="events", name="^order", **{"from": "earliest"})
    sight.becomes(sight.messages, ["1", "3"])
    assert sight.cells("order.sent")[1] == "order.sent"
    server.redis().xadd("events", {"type": "gap", "body": "an event like any other"})
    sight.turn_to("tail", kind="events", name="", **{"from": "earliest"})
    sight.becomes(sight.messages, ["1", "2", "3", "an event like any other"])
    sight.turn_to("tail", kind="events", name="(")
    expect(sight.panel.locator("#tail-state")).to_have_attribute("data-state", "refused")


def test_flood_leaves_the_newest_and_few_elements(server: HttpServer, look: Look) -> None:
    redis = server.redis()
    sight = look(server).open("tail", kind="channel", name="flood")
    sight.follows()
    for start in range(0, 20_000, 1000):
        pipeline = redis.pipeline(transaction=False)
        for number in range(start, start + 1000):
            pipeline.publish("flood", f"message {number}")
        pipeline.execute()
    expect(sight.panel.locator("#tail-size")).to_have_text("20,000 received")
    sight.becomes(lambda: sight.messages()[-1], "message 19999")
    expect(sight.table).to_have_attribute("aria-rowcount", "5001")
    assert sight.rows.count() < 100 and sight.element_count() < 2000
    numbers = [int(text.split()[1]) for text in sight.messages()]
    assert numbers == list(range(numbers[0], 20_000))


# -- what happens to the connection


def test_browsers_event_source_gets_each_event_once_and_in_order_however_often_it_is_cut_off(
    brisk: HttpServer, look: Look
) -> None:
    ids = [json.loads(brisk.ask("POST", "/api/events?type=t", f"{n} {BODY}".encode())[2])["id"] for n in range(COUNT)]
    sight = look(brisk)
    with Proxy(brisk.http_port, 7, 30_000) as proxy:
        through(sight, proxy)
        sight.page.evaluate(
            """() => {
                window.got = [];
                window.opened = 0;
                const source = new EventSource("/api/events");
                source.onopen = () => { window.opened += 1 };
                source.addEventListener("t", (event) => window.got.push([event.lastEventId, parseInt(event.data)]));
            }"""
        )
        until(lambda: sight.page.evaluate("got.length") >= COUNT, "all events")
        assert sight.page.evaluate("got") == [[id, number] for number, id in enumerate(ids)]
        assert proxy.cuts >= 3 and sight.page.evaluate("opened") >= 3
        sight.context.close()


def test_pages_own_stream_gets_each_entry_once_and_in_order_however_often_it_is_cut_off(
    brisk: HttpServer, look: Look
) -> None:
    redis = brisk.redis()
    pipeline = redis.pipeline(transaction=False)
    for number in range(COUNT):
        pipeline.xadd("log", {"n": number, "body": BODY})
    ids = [id.decode() for id in pipeline.execute()]
    sight = look(brisk)
    with Proxy(brisk.http_port, 8, 30_000) as proxy:
        through(sight, proxy)
        sight.page.evaluate(
            """async () => {
                const { follow } = await import("/page/ask/api.js");
                window.got = [];
                window.states = [];
                follow("/api/topics/log?last_event_id=0", {
                    take: (events) => window.got.push(...events.map((event) => event.id)),
                    state: (state) => window.states.push(state),
                });
            }"""
        )
        until(lambda: sight.page.evaluate("got.length") >= COUNT, "all entries")
        assert sight.page.evaluate("got") == ids
        assert proxy.cuts >= 3 and sight.page.evaluate("states.filter(each => each === 'waiting').length") >= 3
        sight.context.close()


def test_tail_goes_on_where_it_was_after_the_server_was_killed(serve: Serve, look: Look) -> None:
    flags = ("--http-retry", "20", "--appendfsync", "always")
    server = serve(*flags)
    sight = look(server).open("tail", kind="topic", name="log", **{"from": "earliest"})
    sight.follows()
    for number in range(300):
        server.redis().xadd("log", {"message": number})
    sight.becomes(lambda: sight.messages()[-1:], ["299"])
    server.end(signal.SIGKILL)
    expect(sight.page.locator("#state")).to_have_text("reconnecting")
    expect(sight.panel.locator("#tail-state")).to_have_text("reconnecting")
    again = serve(*flags, http_port=server.http_port)
    for number in range(300, 320):
        again.redis().xadd("log", {"message": number})
    sight.is_live()
    sight.becomes(lambda: sight.messages()[-1:], ["319"])
    expect(sight.panel.locator("#tail-size")).to_have_text("320 received")
    numbers = [int(text) for text in sight.messages()]
    assert numbers == list(range(numbers[0], 320))


def test_tail_of_a_channel_says_where_something_may_be_missing(serve: Serve, look: Look) -> None:
    server = serve("--http-retry", "20")
    sight = look(server).open("tail", kind="channel", name="news")
    sight.follows()
    server.redis().publish("news", "one")
    sight.becomes(sight.messages, ["one"])
    server.end(signal.SIGKILL)
    expect(sight.panel.locator("#tail-state")).to_have_text("reconnecting")
    again = serve("--http-retry", "20", http_port=server.http_port)
    sight.follows()
    again.redis().publish("news", "two")
    sight.becomes(
        sight.messages, ["one", "The connection was lost; messages published meanwhile are missing here.", "two"]
    )


def test_page_that_nobody_sees_asks_for_nothing(server: HttpServer, look: Look) -> None:
    sight = look(server).open("channels")
    expect(sight.panel.locator("#channels-size")).to_have_text("0 channels")
    hide(sight, is_hidden=True)
    expect(sight.page.locator("#state")).to_have_text("paused")
    asked: list[str] = []
    sight.page.on("request", lambda request: asked.append(request.url))
    server.redis().publish("news", "x")
    until(lambda: server.ask("GET", "/readyz")[0] == 200)
    assert not asked
    hide(sight, is_hidden=False)
    sight.is_live()
    until(lambda: any("/api/channels" in url for url in asked), "a list")
