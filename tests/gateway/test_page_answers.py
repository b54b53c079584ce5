"""What the page answers: who is slow, what is wrong, and what is in it."""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Callable

from chromium import Look, browser, expect, look, needs_chromium
from http_server import HttpServer
from patience import PATIENCE_S, until
from redis import Redis

pytestmark = needs_chromium
__all__ = ["browser", "look"]  # fixtures
Serve = Callable[..., HttpServer]
SIZES_SAID = """() => {
  window.sizesSaid = [];
  const note = () => window.sizesSaid.push(document.getElementById("connections-size")?.textContent ?? "");
  new MutationObserver(note).observe(document.body, { childList: true, characterData: true, subtree: true });
}"""


def test_connections_of_another_process_are_there_and_one_is_closed_once_that_is_confirmed(
    serve: Serve, look: Look
) -> None:
    server, other = serve(), serve()
    client = Redis(port=other.port, client_name="billing-1")
    pubsub = client.pubsub()
    pubsub.subscribe("news", "weather")
    for _ in range(2):
        assert pubsub.get_message(timeout=PATIENCE_S)
    sight = look(server).open("connections")
    expect(sight.panel.locator("#connections-size")).to_contain_text("2 processes")
    cells = sight.cells("billing-1")
    assert cells[2:4] == ["default", "2"] and cells[-2] == str(other.pid)
    sight.row("billing-1").get_by_role("button", name="Disconnect").click()
    dialog = sight.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Cancel").click()
    assert other.redis().client_list(_type="pubsub")
    sight.row("billing-1").locator(".opens").click()
    dialog.get_by_role("button", name="Disconnect").click()
    dialog.get_by_role("button", name="Disconnect", exact=True).click()
    sight.notice("Disconnected connection")
    expect(sight.row("billing-1")).to_have_count(0)
    assert other.redis().client_list(_type="pubsub") == []


def test_connections_are_listed_whole_where_another_process_has_only_been_asked_how_many_it_has(
    serve: Serve, look: Look
) -> None:
    server, other = serve(), serve()
    clients = [Redis(port=other.port, client_name=f"worker-{number}") for number in range(9)]
    for client in clients:
        assert client.ping()
    sight = look(server).open()
    expect(sight.panel.get_by_role("button", name=re.compile(r"^Connections\s*(9|1\d)$"))).to_be_visible()
    sight.page.evaluate(SIZES_SAID)
    sight.turn_to("connections")
    expect(sight.row("worker-8")).to_have_count(1)
    said = sight.page.evaluate("window.sizesSaid")
    assert any("connection" in each for each in said) and not [each for each in said if " of " in each], said


def test_row_opens_in_full_where_the_screen_has_room_for_three_columns(serve: Serve, look: Look) -> None:
    server = serve()
    client = Redis(port=server.port, client_name="billing-1")
    pubsub = client.pubsub()
    pubsub.subscribe("news")
    assert pubsub.get_message(timeout=PATIENCE_S)
    sight = look(server, viewport={"width": 400, "height": 800}).open("connections")
    assert str(server.pid) not in sight.cells("billing-1")
    sight.row("billing-1").locator(".opens").click()
    dialog = sight.page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name="billing-1")).to_be_visible()
    facts = dict(zip(dialog.locator("dt").all_inner_texts(), dialog.locator("dd").all_inner_texts(), strict=True))
    assert (facts["User"], facts["Subscriptions"], facts["Process"]) == ("default", "1", str(server.pid))
    expect(dialog).to_contain_text("last command subscribe")
    expect(dialog).to_contain_text("Channels: news")
    sight.turn_to("subscribers")  # as Back does
    expect(dialog).to_have_count(0)
    sight.turn_to("subscribers")
    sight.rows.first.locator(".opens").click()
    expect(sight.page.get_by_role("dialog")).to_contain_text(str(server.pid))


def test_lines_to_copy_lead_to_this_server(serve: Serve, look: Look) -> None:
    server = serve()
    sight = look(server).open("keys")
    line = sight.panel.get_by_text(f"redis-cli -p {server.port} SET greeting hello EX 60")
    expect(line).to_be_visible()
    sight.turn_to("connections")
    expect(sight.panel.locator("code").first).to_have_text(f"redis-cli -p {server.port} SUBSCRIBE news")
    sight.turn_to("subscribers")
    expect(sight.panel.locator("code").first).to_have_text(re.compile(f"redis-cli -p {server.port}$"))
    sight.turn_to("groups")
    expect(sight.panel.locator("code").first).to_have_text(re.compile(f"redis-cli -p {server.port} XGROUP CREATE "))
    sight.turn_to("tail")
    expect(sight.panel.locator("code").first).to_have_text(f"redis-cli -p {server.port} PUBLISH news hello")
    sight.turn_to("help")
    expect(sight.panel.locator("code").first).to_have_text(f"redis-cli -p {server.port} SUBSCRIBER.DELETE billing")


def test_slow_reader_comes_first_with_what_waits_for_it(server: HttpServer, look: Look) -> None:
    redis = server.redis()
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(b"CLIENT SETNAME slow\r\nSUBSCRIBE news\r\n")
        until(lambda: redis.pubsub_numsub("news")[0][1] == 1)
        pipeline = redis.pipeline(transaction=False)
        for _ in range(300):
            pipeline.publish("news", b"x" * 50_000)
        pipeline.execute()
        sight = look(server).open("connections")
        expect(sight.row("slow")).to_have_attribute("aria-rowindex", "2")
        cells = sight.cells("slow")
        assert re.search("MB", cells[5]) and re.search(r"ms|s|min", cells[7])
        head = sight.table.get_by_role("columnheader", name="Client")
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", "ascending")
        expect(sight.row("slow")).to_have_attribute("aria-rowindex", str(sight.rows.count() + 1))


def test_warning_leads_to_what_it_is_about_and_to_what_it_means(serve: Serve, look: Look) -> None:
    server = serve("--warn-group-lag", "3")
    redis = server.redis()
    for number in range(5):
        redis.xadd("orders", {"n": number})
    redis.xgroup_create("orders", "billing", "0")
    sight = look(server).open()
    warning = sight.panel.get_by_role("listitem").filter(has_text="Consumer group lagging: billing of orders")
    expect(warning).to_contain_text("5 entries are yet to be read")
    warning.get_by_role("link", name="What it means").click()
    expect(sight.panel.locator("#help-group_lagging")).to_be_focused()
    sight.page.go_back()
    warning.get_by_role("link", name="Open the group").click()
    expect(sight.panel.get_by_role("heading", name="billing")).to_be_visible()
    redis.xreadgroup("billing", "me", {"orders": ">"})
    sight.turn_to("overview")
    expect(sight.panel.get_by_text("No warnings.")).to_be_visible()


def test_entries_are_paged_both_ways_and_searched_and_the_address_says_where(server: HttpServer, look: Look) -> None:
    redis = server.redis()
    pipeline = redis.pipeline(transaction=False)
    for number in range(1, 251):
        pipeline.xadd("log", {"n": number, "json": '{"a": [1]}'}, id=f"{number}-0")
    pipeline.execute()
    sight = look(server).open("topic", name="log")
    entries = sight.panel.get_by_role("grid", name="Entries")
    first = entries.locator(".rows [aria-rowindex='2']")

    def press(button: str, id: str) -> None:
        sight.panel.get_by_role("button", name=button, exact=True).click()
        expect(first).to_contain_text(id)

    expect(first).to_contain_text("1-0")
    press("Newer", "101-0")
    press("Latest", "151-0")
    press("Older", "51-0")
    assert "before=151-0" in sight.page.url
    sight.page.reload()
    expect(first).to_contain_text("51-0")
    sight.panel.get_by_label("From").fill("200")
    press("Search", "200-0")
    sight.panel.get_by_label("From").fill("")
    sight.panel.get_by_label("Field", exact=True).fill("n")
    sight.panel.get_by_label("contains").fill("249")
    press("Search", "249-0")
    expect(sight.panel.locator("#entries-size")).to_have_text("1 match")
    first.locator(".opens").click()
    expect(sight.page.get_by_role("dialog").locator("pre").last).to_have_text('{\n  "a": [\n    1\n  ]\n}')


def test_dead_letter_goes_back_to_its_group(server: HttpServer, look: Look) -> None:
    redis = server.redis()
    id = redis.xadd("orders", {"item": "tea"})
    redis.xgroup_create("orders", "billing", "0")
    redis.execute_command("TOPIC.GROUP", "orders", "billing", "MAXDELIVERIES", 1, "DEADLETTER", "dead")
    redis.xreadgroup("billing", "one", {"orders": ">"})
    redis.execute_command("TOPIC.REQUEUE", "orders", "billing", id)
    redis.xreadgroup("billing", "one", {"orders": ">"})
    until(lambda: redis.xlen("dead") == 1, "a dead letter")
    sight = look(server).open("group", topic="orders", name="billing")
    letters = sight.panel.get_by_role("grid", name="Dead letters").locator(".rows [role=row]")
    expect(letters).to_have_count(1)
    letters.get_by_role("button", name="Requeue").click()
    sight.page.get_by_role("dialog").get_by_role("button", name="Requeue").click()
    sight.notice("Requeued 1 dead letter of billing of orders.")
    assert redis.xlen("dead") == 0
    ((_, entries),) = redis.xreadgroup("billing", "two", {"orders": ">"})
    assert entries == [(id, {b"item": b"tea"})]


def test_keys_are_browsed_by_type_with_their_values_and_expiry(server: HttpServer, look: Look) -> None:
    redis = server.redis()
    redis.set("greeting", '{"a": 1}', ex=5000)
    redis.hset("user", mapping={"name": "ann"})
    redis.zadd("scores", {"a": 1.5})
    redis.set("elsewhere", "x")
    redis.move("elsewhere", 3)
    sight = look(server).open("keys")
    size = sight.panel.locator("#keys-size")
    expect(sight.rows).to_have_count(3)
    expect(size).to_have_text("3 keys")
    assert sight.cells("greeting") == ["greeting", "string", "8 bytes", "in 1 h"]
    sight.panel.get_by_label("Type").select_option("zset")
    expect(sight.rows).to_have_count(1)
    expect(size).to_have_text("1 key · 3 keys in database 0")
    sight.row("scores").locator(".opens").click()
    assert sight.cells("1.5") == ["1.5", "a"]
    sight.turn_to("key", name="greeting", db="0")
    expect(sight.panel.locator("pre.whole")).to_have_text('{\n  "a": 1\n}')
    sight.turn_to("keys")
    sight.panel.get_by_label("Type").select_option("")
    sight.panel.get_by_label("Database").select_option("3")
    expect(sight.row("elsewhere")).to_have_count(1)


def test_tail_that_nobody_sees_ends_and_says_so_when_it_goes_on(server: HttpServer, look: Look) -> None:
    redis = server.redis()
    sight = look(server).open("tail", kind="channel", name="news")
    sight.follows()
    assert redis.publish("news", "seen") == 1
    sight.becomes(sight.messages, ["seen"])
    sight.turn_to("overview")
    until(lambda: redis.publish("news", "unseen") == 0, "nobody who listens")
    sight.turn_to("tail")
    sight.follows()
    redis.publish("news", "seen again")
    sight.becomes(lambda: len(sight.messages()), 3)
    assert "Not followed for" in sight.messages()[1] and sight.messages()[2] == "seen again"
    sight.panel.get_by_role("button", name="Stop").click()
    expect(sight.page.locator("#tail-state")).to_have_text("stopped")
    until(lambda: redis.publish("news", "unseen") == 0, "nobody who listens")


def test_page_says_that_the_server_is_away_and_since_when_and_what_is_old_is_grey(serve: Serve, look: Look) -> None:
    server = serve("--http-retry", "20")
    sight = look(server).open()
    server.end(signal.SIGKILL)
    alert = sight.page.get_by_role("alert")
    expect(alert).to_contain_text("does not answer. What you see is from")
    assert float(sight.page.evaluate("getComputedStyle(document.querySelector('main')).opacity")) < 1
    again = serve("--http-retry", "20", http_port=server.http_port)
    sight.is_live()
    expect(alert).to_be_hidden()
    assert again.ask("GET", "/readyz")[0] == 200


def test_page_that_comes_late_sees_the_time_before_it(server: HttpServer, look: Look) -> None:
    server.redis().publish("news", "x")
    sight = look(server).open()
    sight.panel.get_by_role("button", name="1 hour").click()
    plot = sight.panel.locator("figure").first
    expect(plot.locator(".times span").first).to_have_text(re.compile(r"\d\d:\d\d"))
    status, _, answer = server.ask("GET", "/api/stats/history")
    assert status == 200 and b'"interval_ms": 10000' in answer and b'"memory_bytes"' in answer


def test_user_is_not_offered_what_its_rules_forbid(serve: Serve, look: Look) -> None:
    server = serve("--requirepass", "sesame")
    redis = Redis(port=server.port, password="sesame")
    rules = {"keys": ["%R~*", "~orders.*"], "channels": ["*"], "categories": ["+@all", "-@dangerous", "-@admin"]}
    redis.acl_setuser("ann", enabled=True, passwords=["+pw"], commands=["-publish"], **rules)
    redis.xadd("orders.eu", {"a": "1"})
    redis.xadd("audit", {"a": "1"})
    sight = look(server).open("topics", is_live=False)
    dialog = sight.page.get_by_role("dialog")
    dialog.get_by_label("User").fill("ann")
    dialog.get_by_label("Password or token").fill("pw")
    sight.page.keyboard.press("Enter")
    expect(sight.row("orders.eu").get_by_role("button", name="Pause")).to_be_visible()
    expect(sight.row("audit").get_by_role("button", name="Pause")).to_be_hidden()
    expect(sight.page.get_by_role("tab", name="Connections")).to_be_hidden()
    redis.acl_setuser("ann", enabled=False)
    sight.page.reload()
    expect(dialog).to_contain_text("Your session has ended")


def test_durable_subscriber_is_shown_with_its_names_its_limits_and_what_can_be_done(serve: Serve, look: Look) -> None:
    server = serve()
    with server.connect() as away:
        away.do("SUBSCRIBER.ATTACH", "bill's", "TTL", "3600", "MAXLEN", "50")
        away.do("SUBSCRIBE", "orders", "invoices")
    sight = look(server).open("overview")
    sight.turn_to("subscribers")
    sight.row("bill's").locator(".opens").click()
    dialog = sight.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Channels: ")
    for text in ("orders", "invoices", "stays for 1 h", "keeps 50 messages"):
        expect(dialog).to_contain_text(text)
    quoted = "'bill'\\''s'"
    for verb in ("INFO", "DELETE", "ATTACH"):
        expect(dialog).to_contain_text(f"redis-cli -p {server.port} SUBSCRIBER.{verb} {quoted}")
    sight.page.go_back()
    expect(dialog).to_have_count(0)
    expect(sight.page.get_by_role("tab", name="Overview")).to_have_attribute("aria-selected", "true")
