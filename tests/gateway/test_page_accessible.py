"""The page by WCAG 2.2 AA, as far as axe can tell: every view, light and dark, empty and busy, wide and narrow.

axe-core is a development dependency of compat_tests (npm); where that is not installed this is skipped, with a line.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chromium import Look, Sight, browser, expect, look, needs_chromium
from http_server import HttpServer
from patience import PATIENCE_S

AXE = Path(__file__).parents[2] / "compat_tests" / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = [
    needs_chromium,
    pytest.mark.skipif(not AXE.exists(), reason="no axe-core: accessibility was not checked (npm ci in compat_tests)"),
]
__all__ = ["browser", "look"]  # fixtures
Serve = Callable[..., HttpServer]
LISTS = ("connections", "channels", "patterns", "topics", "groups", "subscribers", "keys")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def faults(sight: Sight) -> list[str]:
    """What axe finds, a line each."""
    if not sight.page.evaluate("typeof window.axe === 'object'"):
        sight.page.evaluate(AXE.read_text())
    script = "rules => axe.run({ runOnly: rules, resultTypes: ['violations'] })"
    found: dict[str, Any] = sight.page.evaluate(script, RULES)
    return [
        f"{each['id']}: {node['target']} {json.dumps(node['any'] or node['all'] or node['none'])[:300]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 400)])
def test_axe_finds_no_fault_in_any_view(serve: Serve, look: Look, scheme: str, width: int) -> None:
    server = serve("--warn-group-lag", "1", "--warn-mailbox-age", "0")
    size = {"width": width, "height": 800}
    sight = look(server, color_scheme=scheme, viewport=size, bypass_csp=True).open("topics")
    expect(sight.panel.get_by_text("No topics here")).to_be_visible()
    found = {"empty": faults(sight)}
    redis = server.redis()
    for number in range(5):
        redis.xadd("orders", {"item": "tea", "n": number})
    redis.xgroup_create("orders", "billing", "0")
    redis.xreadgroup("billing", "worker", {"orders": ">"}, count=2)
    redis.hset("user", mapping={"name": "ann"})
    pubsub = redis.pubsub()
    pubsub.subscribe("news")
    pubsub.psubscribe("n*")
    for _ in range(2):
        assert pubsub.get_message(timeout=PATIENCE_S)
    sight.turn_to("overview")
    expect(sight.panel.get_by_text("Consumer group lagging")).to_be_visible()
    found["overview"] = faults(sight)
    for view in LISTS:
        sight.turn_to(view)
        expect(sight.rows.first).to_be_visible()
        found[view] = faults(sight)
    sight.turn_to("connections")
    sight.rows.first.locator(".opens").click()
    expect(sight.page.get_by_role("dialog")).to_be_visible()
    found["a connection"] = faults(sight)
    sight.page.get_by_role("dialog").get_by_role("button", name="Close").click()
    sight.turn_to("topic", name="orders")
    expect(sight.panel.get_by_role("grid", name="Entries").locator(".rows [role=row]")).to_have_count(5)
    found["topic"] = faults(sight)
    sight.turn_to("group", topic="orders", name="billing")
    expect(sight.panel.get_by_role("grid", name="Pending").locator(".rows [role=row]")).to_have_count(2)
    found["group"] = faults(sight)
    sight.turn_to("key", name="user", db="0")
    expect(sight.rows.first).to_be_visible()
    found["key"] = faults(sight)
    sight.turn_to("help", about="group_lagging")
    found["help"] = faults(sight)
    sight.turn_to("tail", kind="topic", name="orders", **{"from": "earliest"})
    expect(sight.rows).to_have_count(5)
    found["tail"] = faults(sight)
    sight.rows.first.locator(".opens").click()
    expect(sight.page.get_by_role("dialog")).to_be_visible()
    found["a message"] = faults(sight)
    assert {view: each for view, each in found.items() if each} == {}
