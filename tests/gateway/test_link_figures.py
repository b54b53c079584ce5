"""What is said of links at /metrics, /api/stats and /api/warnings, by `rlite-pubsub top` and on the page; never a
password."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from chromium import Look, browser, expect, look, needs_chromium
from http_server import HttpServer
from patience import until
from ports import free_port
from server_process import Serve

__all__ = ["browser", "look"]  # fixtures
SECRET = "opensesame"


@pytest.fixture
def linked(server: HttpServer, serve: Serve, tmp_path: Path) -> HttpServer:
    """With a link that is up, and one that leads nowhere."""
    (tmp_path / "other").mkdir()
    other = serve(folder=tmp_path / "other")
    client = server.redis()
    client.execute_command("LINK", "CREATE", "near", f"redis://127.0.0.1:{other.port}", "TOPICS", "orders")
    client.execute_command("LINK", "CREATE", "lost", f"redis://u:{SECRET}@127.0.0.1:{free_port()}?socket_keepalive=1")
    return server


def asked(server: HttpServer, path: str) -> str:
    status, _, answer = server.ask("GET", path)
    assert status == 200
    assert SECRET not in answer.decode()
    return answer.decode()


def links(server: HttpServer) -> dict[str, Any]:
    return {each["name"]: each for each in json.loads(asked(server, "/api/stats"))["links"]}


def is_told(server: HttpServer) -> None:
    """Both links are as they will stay."""

    def states() -> bool:
        return {name: each["state"] for name, each in links(server).items()} == {"near": "up", "lost": "down"}

    until(states, "the states")


def test_the_figures_of_each_link_are_told_by_its_name(linked: HttpServer) -> None:
    is_told(linked)
    for number in range(20):
        linked.redis().xadd("orders", {"n": number})
    until(lambda: links(linked)["near"]["entries_out"] == 20, "the entries")
    near, lost = (links(linked)[name] for name in ("near", "lost"))
    assert near["bytes_out"] > 0 and near["lag"] == 0 and near["error"] == ""
    assert "refused" in lost["error"].lower() and lost["bytes_out"] == 0

    def has(*lines: str) -> bool:
        return set(lines) <= set(asked(linked, "/metrics").splitlines())

    until(
        lambda: has(
            'rlite_link_state{link="near",state="up"} 1.0',
            'rlite_link_state{link="lost",state="up"} 0.0',
            'rlite_link_state{link="lost",state="down"} 1.0',
            'rlite_link_entries_out_total{link="near"} 20.0',
            'rlite_link_lag_entries{link="near"} 0.0',
            'rlite_link_bytes_out_total{link="lost"} 0.0',
        ),
        "the lines",
    )


def test_a_server_without_links_says_nothing_of_them(server: HttpServer) -> None:
    assert 'link="' not in asked(server, "/metrics")
    assert links(server) == {}


def test_a_link_that_is_down_is_a_warning_after_the_time_that_is_set(linked: HttpServer) -> None:
    def told() -> list[list[str]]:
        found = json.loads(asked(linked, "/api/warnings"))["warnings"]
        return [each["subject"] for each in found if each["code"] == "link_down"]

    client = linked.redis()
    client.config_set("warn-link-down", 1_000_000)
    is_told(linked)
    assert told() == []
    client.config_set("warn-link-down", 1)
    until(lambda: told() == [["lost"]], "the warning")
    client.config_set("warn-link-down", 0)
    assert told() == []


def test_top_has_a_table_of_links(linked: HttpServer) -> None:
    is_told(linked)
    command = [sys.executable, "-m", "rlite_pubsub", "top", "-s", f"redis://127.0.0.1:{linked.port}", "-i", "0.1"]
    said = subprocess.run([*command, "--once", "--json"], capture_output=True, text=True, check=True).stdout
    shown = subprocess.run([*command, "--once"], capture_output=True, text=True, check=True).stdout
    assert SECRET not in said + shown
    rows = {row["name"]: row for row in json.loads(said)["links"]}
    assert (rows["near"]["state"], rows["lost"]["state"]) == ("up", "down")
    assert rows["lost"]["url"].endswith("?socket_keepalive=...") and "refused" in rows["lost"]["error"].lower()
    assert "u@127.0.0.1" in shown


@needs_chromium
def test_the_overview_has_a_table_of_links_while_there_are_any(linked: HttpServer, look: Look) -> None:
    is_told(linked)
    sight = look(linked).open()
    table = sight.panel.get_by_role("grid", name="Links")
    lost = table.get_by_role("row").filter(has_text="lost")
    expect(lost).to_contain_text("down")
    expect(table.get_by_role("row").filter(has_text="near")).to_contain_text("up")
    assert SECRET not in sight.page.content()
    linked.redis().execute_command("LINK", "DELETE", "near")
    linked.redis().execute_command("LINK", "DELETE", "lost")
    expect(table).to_be_hidden()
    assert sight.errors == []
