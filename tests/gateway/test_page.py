"""The page, in a real Chromium, on a real server: what it shows, what it does, and what it never does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from chromium import Look, Sight, browser, expect, look, needs_chromium
from http_server import HttpServer
from patience import PATIENCE_S, until
from redis import Redis

pytestmark = needs_chromium
__all__ = ["browser", "look"]  # fixtures
Serve = Callable[..., HttpServer]

HOSTILE = "<img src=x onerror=\"document.title='hit'\">"
PASSWORD = "sesame & cö"
ROOT = Path(__file__).parents[2]


def hold(redis: Redis, *channels: str) -> object:
    """Subscribe, and be told of it."""
    pubsub = redis.pubsub()
    pubsub.subscribe(*channels)
    for _ in channels:
        assert pubsub.get_message(timeout=PATIENCE_S)
    return pubsub


def of_topic(server: HttpServer, name: str) -> dict[str, object]:
    fields: dict[str, object] = json.loads(server.ask("GET", f"/api/topics/{name}/info")[2])
    return fields


def of_group(server: HttpServer) -> dict[str, object]:
    (group,) = json.loads(server.ask("GET", "/api/groups")[2])["groups"]
    found: dict[str, object] = group
    return found


# -- its files


def test_files_are_asked_for_again_and_sent_only_when_they_have_changed(server: HttpServer) -> None:
    for path, type in [("/", "text/html"), ("/page/main.js", "text/javascript"), ("/page/page.css", "text/css")]:
        status, headers, content = server.ask("GET", path)
        assert status == 200 and headers["content-type"].startswith(type) and headers["cache-control"] == "no-cache"
        for tag in (headers["etag"], f'"other", W/{headers["etag"]}'):
            assert server.ask("GET", path, If_None_Match=tag)[::2] == (304, b"")
        assert server.ask("GET", path, If_None_Match='"other"')[2] == content
    for path in ("/page/pages.py", "/page/..%2fpages.py", "/page/%2e%2e/pages.py", "/page/", "/page/none.js"):
        assert server.ask("GET", path)[0] == 404


def test_documents_that_the_page_names_exist(server: HttpServer) -> None:
    named = re.findall(rb"docs/[\w/.-]+\w", server.ask("GET", "/page/views/help.js")[2])
    assert named and all((ROOT / path.decode()).is_file() for path in named), named


def test_page_may_load_and_run_nothing_but_its_own_files(server: HttpServer) -> None:
    _, headers, content = server.ask("GET", "/")
    policy = dict(each.strip().split(" ", 1) for each in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["img-src"] == "'self'"
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    files = [path.decode() for path in re.findall(rb'(?:src|href)="([^"]+)"', content)]
    assert files and all(path.startswith("/page/") for path in files)


# -- what it shows


def test_rates_are_live(server: HttpServer, look: Look) -> None:
    redis = server.redis()
    kept = hold(redis, "news")
    sight = look(server).open()
    published = sight.panel.get_by_role("img", name="Published")

    def is_seen() -> bool:
        redis.publish("news", "x")
        return re.fullmatch(r"Published: (?!0/s)[\d.]+k?/s", published.get_attribute("aria-label") or "") is not None

    until(is_seen, "a rate")
    assert published.locator("path.line").get_attribute("d")
    expect(sight.panel.get_by_role("button", name="Channels")).to_have_text("Channels1")
    expect(sight.page.locator("#version")).not_to_be_empty()
    assert kept


def test_ten_thousand_channels_are_few_elements_and_the_filter_answers(server: HttpServer, look: Look) -> None:
    redis = server.redis()
    names = [f"room.{number:05}" for number in range(10_000)]
    kept = hold(redis, *names)
    sight = look(server).open("channels")
    expect(sight.row("room.00000")).to_have_count(1)
    sight.table.focus()
    last = sight.row("room.09999")

    def is_at_the_end() -> int:
        sight.page.keyboard.press("End")
        return last.count()

    until(is_at_the_end, "the last channel")
    expect(sight.panel.locator("#channels-size")).to_have_text("10,000 channels")
    assert last.get_attribute("aria-rowindex") == "10001" == sight.table.get_attribute("aria-rowcount")
    assert sight.rows.count() < 100 and sight.element_count() < 2000
    sight.panel.get_by_role("searchbox").fill("77")
    matching = sum("77" in name for name in names)
    expect(sight.panel.locator("#channels-size")).to_have_text(f"{matching} matching channels")
    sight.panel.get_by_role("searchbox").fill("room.0[0-4]77?")
    expect(sight.panel.locator("#channels-size")).to_have_text("50 matching channels")
    expect(sight.row("room.00770")).to_have_count(1)
    sight.panel.get_by_role("searchbox").fill("nobody")
    expect(sight.panel.get_by_text("No channels with subscribers here")).to_be_visible()
    assert kept


def test_channels_and_patterns_that_come_and_go_are_seen_without_asking(server: HttpServer, look: Look) -> None:
    redis = server.redis()
    pubsub = redis.pubsub()
    sight = look(server).open("patterns")
    expect(sight.panel.locator("#patterns-size")).to_have_text("0 patterns")
    pubsub.psubscribe("orders.*")
    assert pubsub.get_message(timeout=PATIENCE_S)
    expect(sight.row("orders.*")).to_have_count(1)
    assert sight.cells("orders.*")[::2][:2] == ["orders.*", "1"]
    pubsub.close()
    expect(sight.row("orders.*")).to_have_count(0)


def test_topics_have_their_depth_and_what_is_kept_of_them(serve: Serve, look: Look) -> None:
    server = serve("--retain", "orders.* 7d 2mb")
    redis = server.redis()
    for _ in range(1200):
        redis.xadd("orders.eu", {"item": "tea"})
    redis.xadd("audit", {"a": "1"})
    redis.xgroup_create("audit", "readers", "0")
    sight = look(server).open("topics")
    name, entries, size, _, _, kept, groups, state, *_ = sight.cells("orders.eu")
    assert (name, entries, kept, groups, state) == ("orders.eu", "1,200", "7 d, 2.1 MB", "0", "active")
    assert re.fullmatch(r"[\d.]+ kB", size)
    assert sight.cells("audit")[5:7] == ["unlimited", "1"]
    sight.panel.get_by_role("searchbox").fill("audit")
    expect(sight.panel.locator("#topics-size")).to_have_text("1 matching topic")


def test_groups_have_their_lag_and_what_is_in_flight(server: HttpServer, look: Look) -> None:
    redis = server.redis()
    for number in range(30):
        redis.xadd("orders", {"n": number})
    redis.xgroup_create("orders", "billing", "0")
    redis.xreadgroup("billing", "me", {"orders": ">"}, count=12)
    sight = look(server).open("groups")
    group, topic, lag, pending, consumers, dead, last, state, *_ = sight.cells("billing")
    assert (group, topic, lag, pending, consumers, dead, state) == ("billing", "orders", "18", "12", "1", "0", "active")
    assert last == of_group(server)["last_delivered_id"]
    sight.panel.get_by_role("searchbox").fill("ship")
    expect(sight.rows).to_have_count(0)
    sight.panel.get_by_role("searchbox").fill("ORD")
    expect(sight.rows).to_have_count(1)


def test_subscribers_have_what_waits_for_them(server: HttpServer, look: Look) -> None:
    with server.connect() as away:
        assert away.do("CLIENT", "SETNAME", "durable:billing") == b"OK"
        away.do("SUBSCRIBE", "orders")
    sight = look(server).open("subscribers")
    expect(sight.row("billing")).to_contain_text("away")
    for _ in range(3):
        server.redis().publish("orders", "x" * 1000)
    expect(sight.row("billing").locator(".number").nth(2)).to_have_text("3")
    cells = sight.cells("billing")
    assert cells[1:3] == ["durable", "away"] and re.fullmatch(r"3\.\d+ kB", cells[6])
    assert sight.cells("server")[3] == str(server.pid)


# -- what it does


def test_topic_is_paused_and_resumed_once_that_is_confirmed(server: HttpServer, look: Look) -> None:
    server.redis().xadd("orders/eu", {"a": "1"})
    sight = look(server).open("topics")
    dialog = sight.page.get_by_role("dialog")
    pause = sight.row("orders/eu").get_by_role("button", name="Pause orders/eu")
    pause.click()
    expect(dialog.get_by_role("heading")).to_have_text("Pause topic orders/eu?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    expect(pause).to_be_focused()
    assert of_topic(server, "orders%2Feu")["paused"] == 0
    pause.click()
    dialog.get_by_role("button", name="Pause").click()
    sight.notice("Paused topic orders/eu.")
    assert of_topic(server, "orders%2Feu")["paused"] == 1
    expect(sight.row("orders/eu")).to_contain_text("paused")
    sight.row("orders/eu").get_by_role("button", name="Resume").click()
    dialog.get_by_role("button", name="Resume").click()
    sight.notice("Resumed topic orders/eu.")
    assert of_topic(server, "orders%2Feu")["paused"] == 0


def test_group_is_paused_resumed_and_requeued_once_that_is_confirmed(server: HttpServer, look: Look) -> None:
    redis = server.redis()
    ids = [redis.xadd("orders", {"n": number}) for number in range(5)]
    redis.xgroup_create("orders", "billing", "0")
    redis.xreadgroup("billing", "me", {"orders": ">"})
    sight = look(server).open("groups")
    dialog = sight.page.get_by_role("dialog")
    for verb, is_paused in (("Pause", True), ("Resume", False)):
        sight.row("billing").get_by_role("button", name=f"{verb} billing").click()
        dialog.get_by_role("button", name=verb).click()
        sight.notice(f"{verb}d group billing of orders.")
        assert of_group(server)["paused"] is is_paused
    sight.row("billing").get_by_role("button", name="Requeue billing").click()
    expect(dialog).to_contain_text("5 entries are pending")
    sight.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert of_group(server)["pending"] == 5
    sight.row("billing").get_by_role("button", name="Requeue billing").click()
    dialog.get_by_role("button", name="Requeue").click()
    sight.notice("Requeued 5 entries of billing of orders.")
    assert of_group(server)["pending"] == 0
    ((_, entries),) = redis.xreadgroup("billing", "other", {"orders": ">"})
    assert [id for id, _ in entries] == ids


def test_what_is_published_from_the_page_is_what_redis_clients_get(server: HttpServer, look: Look) -> None:
    redis = server.redis()
    pubsub = redis.pubsub()
    pubsub.subscribe("näws/1")
    assert pubsub.get_message(timeout=PATIENCE_S)
    sight = look(server).open("tail")
    form = sight.panel.get_by_role("form", name="Publish")

    def publish(kind: str, name: str, how: str, text: str) -> None:
        form.get_by_label("Publish to").select_option(kind)
        form.get_by_label("Name").fill(name)
        form.get_by_label("Format of the message").select_option(how)
        form.get_by_label("Message", exact=True).fill(text)
        form.get_by_role("button", name="Publish").click()

    publish("Channel", "näws/1", "as text", "grüße\nund mehr")
    sight.notice("Published to näws/1: 1 subscriber received it.")
    message = pubsub.get_message(timeout=PATIENCE_S)
    assert message is not None and message["data"] == "grüße\nund mehr".encode()
    publish("Topic", "log", "as JSON fields", '{"a": "1", "b": {"base64": "/w=="}}')
    sight.notice("Published to log: its id is")
    publish("Topic", "log", "from base64", "AP8=")
    publish("Topic", "log", "as text", "plain")
    until(lambda: redis.xlen("log") == 3, "three entries")
    assert [fields for _, fields in redis.xrange("log")] == [
        {b"a": b"1", b"b": b"\xff"},
        {b"message": b"\x00\xff"},
        {b"message": b"plain"},
    ]
    publish("Event", "order&placed", "as text", "tea")
    until(lambda: redis.exists("events"), "the event")
    assert redis.xrange("events")[0][1] == {b"type": b"order&placed", b"body": b"tea"}
    publish("Topic", "log", "as JSON fields", "no JSON")
    sight.notice("The body is not valid JSON")
    publish("Channel", "..", "as text", "x")
    sight.notice("A browser can't ask for a name of dots only.")


# -- what it never does


def test_names_and_messages_are_text_whatever_is_in_them(server: HttpServer, look: Look) -> None:
    redis = server.redis()
    mirrored = "a\u202eb\n"
    kept = hold(redis, HOSTILE, mirrored)
    redis.xadd(HOSTILE, {HOSTILE: HOSTILE})
    redis.xgroup_create(HOSTILE, HOSTILE, "0")
    sight = look(server).open("channels")
    assert sight.cells("img")[::2][:2] == [HOSTILE, "1"]
    expect(sight.row("a\\u202eb\\u000a")).to_have_count(1)
    sight.turn_to("topics")
    expect(sight.row(HOSTILE)).to_have_count(1)
    sight.turn_to("groups")
    sight.row(HOSTILE).get_by_role("button", name="Requeue").click()
    expect(sight.page.get_by_role("dialog")).to_contain_text(HOSTILE)
    sight.page.keyboard.press("Escape")
    sight.turn_to("tail", kind="topic", name=HOSTILE, **{"from": "earliest"})
    sight.becomes(sight.messages, [json.dumps({HOSTILE: HOSTILE})])
    sight.rows.first.dblclick()
    expect(sight.page.get_by_role("dialog")).to_contain_text("<img src=x onerror=")
    sight.page.keyboard.press("Escape")
    sight.turn_to("tail", kind="channel", name=HOSTILE)
    sight.follows()
    sight.panel.get_by_label("Message", exact=True).fill(HOSTILE)
    sight.panel.get_by_role("button", name="Publish").click()
    sight.notice(HOSTILE)
    sight.becomes(sight.messages, [HOSTILE])
    assert sight.page.locator("img").count() == 0 and sight.page.title() == "Tail & publish – rlite-pubsub"
    assert kept


def test_browser_itself_refuses_markup_and_scripts_that_are_not_the_pages(server: HttpServer, look: Look) -> None:
    sight = look(server).open()
    script = "(() => { try { document.body.innerHTML = '<b>x</b>' } catch (failure) { return failure.name } })()"
    refusal = sight.page.evaluate(script)
    assert refusal == "TypeError"
    sight.errors.clear()  # the browser has told of it


# -- for whom it is


def test_page_is_used_with_the_keyboard_alone(server: HttpServer, look: Look) -> None:
    redis = server.redis()
    for name in ("alpha", "beta", "gamma"):
        redis.xadd(name, {"who": name})
    sight = look(server).open()
    page = sight.page

    def is_outlined() -> bool:
        return bool(page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid")

    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Colors")).to_be_focused()
    assert is_outlined()
    page.keyboard.press("Tab")
    expect(page.get_by_role("tab", name="Overview")).to_be_focused()
    page.keyboard.press("End")
    expect(page.get_by_role("tab", name="Help")).to_be_focused()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", name="Topics")).to_have_attribute("aria-selected", "true")
    assert is_outlined()
    expect(sight.rows).to_have_count(3)
    page.keyboard.press("/")
    expect(sight.panel.get_by_role("searchbox")).to_be_focused()
    page.keyboard.press("Tab")
    expect(sight.table).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = sight.rows.and_(page.locator("[aria-selected=true]"))
    expect(chosen).to_contain_text("beta")
    assert sight.table.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Pause beta")).to_be_focused()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    for name in ("Pause", "Cancel", "Pause"):
        page.keyboard.press("Tab")
        expect(dialog.get_by_role("button", name=name)).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    expect(dialog.get_by_role("button", name="Pause")).to_be_focused()
    page.keyboard.press("Enter")
    sight.notice("Paused topic beta.")
    expect(page.get_by_role("button", name="Resume beta")).to_be_focused()
    sight.table.focus()
    page.keyboard.press("Enter")
    expect(sight.panel.get_by_role("heading", name="beta")).to_be_visible()
    expect(page.get_by_role("tab", name="Topics")).to_have_attribute("aria-selected", "true")
    sight.panel.get_by_role("button", name="Tail", exact=True).click()
    expect(sight.panel.locator("#tail-name")).to_have_value("beta")
    sight.follows()
    page.go_back()
    page.go_back()
    expect(page.get_by_role("tab", name="Topics")).to_have_attribute("aria-selected", "true")


def test_colours_are_the_systems_until_others_are_chosen(server: HttpServer, look: Look) -> None:
    def ground(sight: Sight) -> int:
        colour = sight.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in re.findall(r"\d+", colour)[:3])

    light, dark = look(server, color_scheme="light").open(), look(server, color_scheme="dark").open()
    assert ground(light) > 600 and ground(dark) < 150
    switch = light.page.get_by_role("button", name="Colors")
    switch.click()
    assert ground(light) > 600
    switch.click()
    expect(switch).to_have_accessible_name("Colors: dark")
    assert ground(light) < 150
    light.page.reload()
    assert ground(light) < 150
    switch.click()
    expect(switch).to_have_accessible_name("Colors: system")
    assert ground(light) > 600


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_wider_than_the_window(server: HttpServer, look: Look, width: int) -> None:
    redis = server.redis()
    kept = hold(redis, "c" * 300)
    redis.xadd("t" * 300, {"a": "b" * 3000})
    redis.xgroup_create("t" * 300, "g" * 300, "0")
    sight = look(server, viewport={"width": width, "height": 800}).open()
    too_wide = """() => {
        const inSight = [...document.querySelectorAll("[role=tabpanel]:not([hidden]) *")];
        const scrolls = [document.scrollingElement, ...inSight]
            .filter(each => each.matches("html, .view, .table, .row, .plot, .tile, form, .bar"))
            .filter(each => each.scrollWidth > each.clientWidth && getComputedStyle(each).overflowX !== "hidden");
        const standsOut = inSight.filter(each => each.matches(".actions button")).filter(each => {
            const [inner, outer] = [each.getBoundingClientRect(), each.parentNode.getBoundingClientRect()];
            return inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.right > innerWidth;
        });
        return [...scrolls, ...standsOut].map(each => each.className || each.tagName);
    }"""
    for view in ("overview", "connections", "channels", "patterns", "topics", "groups", "subscribers", "keys", "help"):
        sight.turn_to(view)
        if view not in ("overview", "patterns", "help"):
            expect(sight.rows.first).to_be_visible()
        assert sight.page.evaluate(too_wide) == [], view
    redis.xadd("jobs", {"a": "b" * 3000})
    redis.xgroup_create("jobs", "workers", "0")
    redis.xreadgroup("workers", "w", {"jobs": ">"})
    sight.turn_to("group", topic="jobs", name="workers")
    expect(sight.panel.get_by_role("grid", name="Pending entries").locator(".rows [role=row]")).to_have_count(1)
    assert sight.page.evaluate(too_wide) == []
    sight.turn_to("topic", name="jobs")
    expect(sight.panel.get_by_role("grid", name="Entries").locator(".rows [role=row]")).to_have_count(1)
    assert sight.page.evaluate(too_wide) == []
    sight.turn_to("tail", kind="topic", name="t" * 300, **{"from": "earliest"})
    expect(sight.rows).to_have_count(1)
    assert sight.page.evaluate(too_wide) == []
    assert kept


# -- who may see it


def test_user_logs_in_and_stays_so_in_this_tab_only(serve: Serve, look: Look) -> None:
    server = serve("--requirepass", PASSWORD)
    sight = look(server).open("tail", is_live=False, kind="channel", name="news")
    dialog = sight.page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("Log in")
    sight.page.keyboard.press("Escape")
    dialog.get_by_label("Password or token").fill("wrong")
    dialog.get_by_role("button", name="Log in").click()
    expect(dialog).to_contain_text("is not right")
    dialog.get_by_label("User").fill("default")
    dialog.get_by_label("Password or token").fill("wrong")
    sight.page.keyboard.press("Enter")
    expect(dialog.get_by_label("User")).to_have_value("default")  # asked again, without typing it again
    expect(dialog.get_by_label("Password or token")).to_have_value("")
    dialog.get_by_label("Password or token").fill(PASSWORD)
    sight.page.keyboard.press("Enter")
    sight.is_live()
    sight.follows()
    expect(dialog).to_have_count(0)
    redis = Redis(port=server.port, password=PASSWORD)
    redis.publish("news", "secret")
    sight.becomes(sight.messages, ["secret"])
    sight.page.reload()
    sight.is_live()
    assert sight.page.evaluate("[sessionStorage.length, JSON.stringify(localStorage)]") == [1, "{}"]
    assert PASSWORD not in sight.page.url
    redis.acl_setuser("ann", enabled=True, passwords=["+pw"], categories=["+@all"], keys=["*"], channels=["*"])
    sight.page.get_by_role("button", name="Log out").click()
    dialog.get_by_label("User").fill("ann")
    dialog.get_by_label("Password or token").fill("pw")
    sight.page.keyboard.press("Enter")
    sight.is_live()
    expect(sight.page.locator("#user")).to_have_text("user ann")
    assert "pw" not in str(sight.page.evaluate("JSON.stringify(sessionStorage)")).replace("password", "")


def test_token_that_may_only_read_one_channel_is_offered_nothing_else(
    serve: Serve, look: Look, tmp_path: Path
) -> None:
    (tmp_path / "tokens").write_text("reader-0123456789 read news\n")
    server = serve("--http-tokens", str(tmp_path / "tokens"))
    sight = look(server).open("tail", is_live=False, kind="channel", name="news")
    sight.page.get_by_role("dialog").get_by_label("Password or token").fill("reader-0123456789")
    sight.page.keyboard.press("Enter")
    sight.follows()
    server.redis().publish("news", "x")
    sight.becomes(sight.messages, ["x"])
    assert sight.page.get_by_role("tab").all_inner_texts() == ["Tail & publish", "Help"]
    expect(sight.panel.get_by_role("form", name="Publish")).to_have_count(0)
