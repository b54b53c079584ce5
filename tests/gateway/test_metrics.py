"""What `/metrics` says: all that operators ask for, in names as Prometheus wants them, and never too much."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from bus import Bus
from http_server import HttpServer
from patience import PATIENCE_S, until
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from rlite_pubsub.gateway import metrics as gateway_metrics
from rlite_pubsub.gateway.figures import figures_of
from rlite_pubsub.gateway.metrics import Metrics, NamedLines, of_topics
from rlite_pubsub.gateway.streams.streams import Streams

Serve = Callable[..., HttpServer]

DASHBOARD = Path(__file__).resolve().parents[2] / "docs" / "grafana.json"
GRAFANA_11 = 39
"""The version of its dashboards' schema."""
GRID_WIDTH = 24
PANELS = {"row", "stat", "timeseries"}
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
METRIC = re.compile(r"\b(?:rlite|process)_[a-z0-9_]+")
OTHER_UNITS = {"ms", "milliseconds", "us", "ns", "minutes", "hours", "kb", "mb", "kilobytes", "megabytes", "percent"}
TYPES = {"counter", "gauge", "histogram", "summary", "metric"}
SUFFIXES = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
}


def families(server: HttpServer) -> list[Metric]:
    return list(text_string_to_metric_families(server.ask("GET", "/metrics")[2].decode()))


def value(server: HttpServer, name: str, **labels: str) -> float:
    (found,) = [
        sample.value
        for family in families(server)
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    ]
    return found


def expressions() -> Iterator[str]:
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


# -- the dashboard


def test_everything_that_the_dashboard_asks_for_is_told(server: HttpServer) -> None:
    told = {family.name + suffix for family in families(server) for suffix in SUFFIXES[family.type]}
    asked = {name for expression in expressions() for name in METRIC.findall(expression)}
    assert len(asked) > 40
    assert asked <= told


def test_dashboard_shows_whatever_operators_must_see() -> None:
    asked = {name for expression in expressions() for name in METRIC.findall(expression)}
    for what in (
        "messages_published_total messages_delivered_total entries_added_total subscribers store_subscribers "
        "store_backlog_messages store_backlog_bytes spilled_bytes store_oldest_age_seconds group_lag "
        "durable_subscriber_backlog_messages commit_seconds_bucket sync_seconds_bucket loop_lag_seconds_bucket "
        "subscribers_reaped_total gaps_total dropped_messages_total store_up"
    ).split():
        assert f"rlite_{what}" in asked


def test_dashboard_can_be_imported_whatever_the_data_source_is_called() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    assert dashboard["schemaVersion"] == GRAFANA_11 and dashboard["title"] and dashboard["uid"]
    assert "datasource" in {variable["name"] for variable in dashboard["templating"]["list"]}
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel["type"] in PANELS and panel["title"]
        place = panel["gridPos"]
        left, top, width, height = (place[side] for side in "xywh")
        cells = {(x, y) for x in range(left, left + width) for y in range(top, top + height)}
        assert left + width <= GRID_WIDTH and not cells & taken
        taken |= cells
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}" and panel["targets"]
            assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])


# -- names


def test_names_are_as_prometheus_wants_them(server: HttpServer) -> None:
    server.redis().xgroup_create("log", "readers", mkstream=True)
    for family in families(server):
        words = set(family.name.split("_"))
        assert NAME.fullmatch(family.name) and family.name.startswith(("rlite_", "process_"))
        assert family.documentation.strip() and family.type in SUFFIXES
        assert not words & (OTHER_UNITS | TYPES)
        assert not family.name.endswith(("_total", "_count", "_sum", "_bucket"))
        if family.type == "histogram":
            assert family.name.endswith("_seconds")
        samples = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in family.samples]
        assert len(set(samples)) == len(samples)
        for name, labels in samples:
            assert name in {family.name + suffix for suffix in SUFFIXES[family.type]}
            assert all(NAME.fullmatch(label) for label, _ in labels)


# -- what is told


@pytest.mark.parametrize("durability", ["always", "everysec"])
def test_syncs_are_timed_whatever_the_durability(serve: Serve, durability: str) -> None:
    server = serve("--appendfsync", durability)
    server.post("t", "x")
    if durability == "everysec":
        until(lambda: "sync_seconds_count" in server.ask("GET", "/metrics")[2].decode())
    assert value(server, "rlite_sync_seconds_count", durability=durability) >= 1
    assert value(server, "rlite_sync_seconds_sum", durability=durability) > 0
    assert value(server, "rlite_commit_seconds_count") >= 1


def test_subscribers_are_told_by_kind(server: HttpServer) -> None:
    listeners = [server.redis().pubsub() for _ in range(3)]
    listeners[0].subscribe("a", "b")
    listeners[1].psubscribe("p*")
    listeners[2].subscribe("a")
    listeners[2].psubscribe("p*")
    for listener, confirmations in zip(listeners, (2, 1, 2), strict=True):
        for _ in range(confirmations):
            assert listener.get_message(timeout=PATIENCE_S)
    kinds = ("channels", "patterns", "shards", "topics")
    held = {kind: value(server, "rlite_subscribers", kind=kind) for kind in kinds}
    assert held == {"channels": 2, "patterns": 2, "shards": 0, "topics": 0}
    assert value(server, "rlite_subscriptions", kind="channels") == 3
    assert value(server, "rlite_store_subscribers", kind="server") == 1


def test_durable_subscriber_that_is_away_has_its_backlog_told(server: HttpServer) -> None:
    client = redis.Redis(port=server.port, client_name="durable:billing")
    listener = client.pubsub()
    listener.subscribe("orders")
    assert listener.get_message(timeout=PATIENCE_S)
    listener.close()
    client.close()
    publisher = server.redis()
    until(lambda: value(server, "rlite_store_subscribers_away") == 1)
    for number in range(3):
        publisher.publish("orders", str(number))
    assert value(server, "rlite_durable_subscriber_backlog_messages", subscriber="billing") == 3
    assert value(server, "rlite_durable_subscriber_backlog_bytes", subscriber="billing") > 0
    assert value(server, "rlite_store_subscribers", kind="durable") == 1


def test_dead_neighbour_that_is_cleaned_up_after_is_counted(server: HttpServer, serve: Serve) -> None:
    other = serve()
    assert value(server, "rlite_subscribers_reaped_total") == 0
    held = other.redis().pubsub()
    held.subscribe("news")
    assert held.get_message(timeout=PATIENCE_S)
    other.end(signal.SIGKILL)
    server.redis().publish("news", "is anybody there?")
    until(lambda: value(server, "rlite_subscribers_reaped_total") == 1)


def test_entries_are_counted_whichever_way_they_came(server: HttpServer) -> None:
    client = server.redis()
    client.xadd("log", {"a": "1"})
    pipeline = client.pipeline(transaction=False)
    for _ in range(10):
        pipeline.xadd("log", {"a": "1"})
    pipeline.execute()
    server.post("t", "x")
    assert value(server, "rlite_entries_added_total") == 12


# -- never too much


def test_names_without_a_line_of_their_own_are_counted(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_metrics, "MAX_TOPICS", 2)
    for name in (b"a", b"b", b"c", b"d"):
        bus.keyspace.create_topic(0, name)
    bus.commit()
    found = {family.name: family for family in of_topics(bus.keyspace)}
    bus.keyspace.end_turn()
    assert [sample.labels["topic"] for sample in found["rlite_topic_entries"].samples] == ["a", "b"]
    assert [sample.value for sample in found["rlite_topic_untold"].samples] == [2]


def test_names_that_look_alike_as_text_do_not_become_one_line_twice() -> None:
    lines = NamedLines("thing", ["thing"], 10, size="Its size.")
    assert lines.add([b"\xff"], size=1)
    assert not lines.add([rb"\xff"], size=2)
    assert lines.untold == 1 and len(lines.families["size"].samples) == 1


def test_store_that_cannot_be_read_leaves_the_rest_to_be_told(bus: Bus) -> None:
    engine = bus.house.engine
    streams = Streams(bus.log, lambda: 1.0, lambda: 1)
    metrics = Metrics(figures_of(engine), bus.keyspace, bus.posting(), streams, lambda: b"no")
    assert b"\nrlite_store_up 1.0\n" in metrics.text()
    bus.keyspace.end_turn()
    bus.keyspace.environment.condemn()
    text = metrics.text()
    assert b"\nrlite_store_up 0.0\n" in text and b"\nrlite_commands_total 0.0\n" in text
