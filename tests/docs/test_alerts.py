"""The alerts of docs/operations/monitoring.md ask for metrics that a server has."""

from __future__ import annotations

import re
import socket
import urllib.request

import pytest
import redis
from blocks import ROOT, blocks_of

from rlite_pubsub import Server

yaml = pytest.importorskip("yaml", reason="mkdocs-material, which brings PyYAML, is not installed")
PAGE = ROOT / "docs/operations/monitoring.md"
SUFFIXES = re.compile(r"_(bucket|count|sum)$")


@pytest.fixture(scope="module")
def metrics() -> set[str]:
    """The names at /metrics."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with Server(http_port=port) as server:
        redis.Redis(port=server.port).xgroup_create("orders", "billing", mkstream=True)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            names = re.findall(r"^(?:# HELP )?(\w+)", answer.read().decode(), re.M)
    return {SUFFIXES.sub("", name) for name in names}


def test_every_alert_asks_for_metrics_that_there_are(metrics: set[str]) -> None:
    [text] = [block.text for block in blocks_of(PAGE) if block.file == "rlite-alerts.yaml"]
    rules = yaml.safe_load(text)["groups"][0]["rules"]
    assert len(rules) > 10
    for rule in rules:
        assert rule["annotations"]["summary"] and rule["expr"], rule["alert"]
        asked = {SUFFIXES.sub("", name) for name in re.findall(r"rlite_\w+", rule["expr"])}
        assert asked and asked <= metrics, f"{rule['alert']} asks for {asked - metrics}"


def test_every_metric_that_the_page_names_is_there(metrics: set[str]) -> None:
    named = {name for name in re.findall(r"`(rlite_\w+)`", PAGE.read_text()) if not name.endswith("_")}
    assert named <= metrics
