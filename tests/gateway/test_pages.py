"""Probes and metrics."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from event_source import EventSource
from http_server import HttpServer
from patience import until
from prometheus_client.parser import text_string_to_metric_families
from stopped_writer import StoppedWriter

Serve = Callable[..., HttpServer]


def metrics(server: HttpServer) -> dict[tuple[str, ...], float]:
    """(name, label values, by the names of the labels) -> value."""
    status, headers, text = server.ask("GET", "/metrics")
    assert status == 200 and headers["content-type"].startswith("text/plain")
    return {
        (sample.name, *[value for _, value in sorted(sample.labels.items())]): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_metrics_count_what_has_happened(server: HttpServer) -> None:
    redis = server.redis()
    source = EventSource(server.http_port)
    listener = EventSource(server.http_port, path="/api/channels/news")
    redis.publish("news", "1")
    redis.xadd("log", {"a": "1"})
    redis.xadd("log", {"a": "2"})
    redis.xgroup_create("log", "readers", "0")
    redis.xreadgroup("readers", "me", {"log": ">"}, count=1)
    server.post("t", "x")
    source.next()
    listener.next()
    found = metrics(server)
    assert found["rlite_messages_published_total",] == 1 == found["rlite_messages_delivered_total",]
    assert found["rlite_topic_entries", "log"] == 2 and found["rlite_topic_entries", "events"] == 1
    assert found["rlite_group_lag", "readers", "log"] == 1 == found["rlite_group_pending", "readers", "log"]
    assert found["rlite_subscriptions", "channels"] == 1 == found["rlite_http_posted_total",]
    assert found["rlite_http_event_streams",] == 1
    assert found["rlite_commit_seconds_count",] >= 5
    assert found["rlite_store_subscribers", "server"] == 1
    assert found["process_resident_memory_bytes",] > 0
    again = metrics(server)
    assert again["rlite_loop_lag_seconds_count",] >= found["rlite_loop_lag_seconds_count",]


def test_warnings_are_told_by_what_they_are_about_and_counted_as_metrics(serve: Serve) -> None:
    server = serve("--warn-group-lag", "2", "--warn-mailbox-age", "0", "--warn-mailbox-bytes", "100")
    redis = server.redis()
    for number in range(3):
        redis.xadd("orders", {"n": number})
    redis.xgroup_create("orders", "billing", "0")
    with server.connect() as away:
        assert away.do("CLIENT", "SETNAME", "durable:letters") == b"OK"
        away.do("SUBSCRIBE", "news")
    listed = lambda: json.loads(server.ask("GET", "/api/subscribers")[2])["subscribers"]  # noqa: E731
    until(lambda: any(each["state"] == "away" for each in listed()), "the end of the session")
    redis.publish("news", "x" * 200)

    def found() -> dict[str, dict[str, object]]:
        warnings = json.loads(server.ask("GET", "/api/warnings")[2])["warnings"]
        return {each["code"]: each for each in warnings}

    until(lambda: found().keys() == {"group_lagging", "subscriber_away"}, "two warnings")
    assert found()["group_lagging"]["subject"] == ["orders", "billing"]
    assert found()["subscriber_away"]["subject"] == ["letters"]
    told = metrics(server)
    assert told["rlite_warnings", "group_lagging"] == 1 and told["rlite_warnings", "store_full"] == 0
    info = redis.info("warnings")
    assert info["warnings"] == 2 and {info["warning0"]["code"], info["warning1"]["code"]} == found().keys()
    redis.config_set("warn-group-lag", 0)
    redis.config_set("warn-mailbox-bytes", 0)
    until(lambda: not found(), "no warning")


def test_process_that_is_stopped_while_it_writes_is_a_warning_that_names_it(server: HttpServer) -> None:
    with StoppedWriter(server.store_folder) as stopped:
        (warning,) = json.loads(server.ask("GET", "/api/warnings")[2])["warnings"]
        assert warning["code"] == "writer_stopped" and warning["severity"] == "critical"
        assert str(stopped.pid) in warning["text"]
    assert json.loads(server.ask("GET", "/api/warnings")[2])["warnings"] == []


def test_alerts_to_copy_name_warnings_that_there_are(server: HttpServer) -> None:
    text = (Path(__file__).parents[2] / "docs" / "operations" / "monitoring.md").read_text()
    told = server.ask("GET", "/metrics")[2].decode()
    codes = set(re.findall(r"rlite_warnings\{code=\"([a-z_]+)\"\}", told))
    alerted = set(re.findall(r"[a-z]+_[a-z_]+", " ".join(re.findall(r'code[!=]~"([^"]+)"', text))))
    assert alerted and alerted <= codes


def test_asking_for_metrics_changes_nothing_in_the_store(server: HttpServer) -> None:
    server.post("t", "x")
    redis = server.redis()
    before = redis.execute_command("TOPIC.INFO", "events")
    metrics(server)
    assert redis.execute_command("TOPIC.INFO", "events") == before


def test_health_is_that_of_the_last_write(serve: Serve) -> None:
    server = serve("--store-quota", "2mb")
    assert server.ask("GET", "/healthz")[0] == 200
    while server.ask("POST", "/api/events?type=t", b"x" * 50_000)[0] == 200:
        pass
    status, _, answer = server.ask("GET", "/healthz")
    assert status == 503 and b"quota" in answer
    assert server.ask("GET", "/readyz")[0] == 200
    server.redis().delete("events")
    until(lambda: server.ask("GET", "/healthz")[0] == 200, "room, once what was deleted is swept")


@pytest.mark.parametrize("path", ["/nowhere", "/metrics/", "/healthz/", "/page/", "/page/nothing.js", "//metrics"])
def test_what_is_not_there_is_not_found(standing_server: HttpServer, path: str) -> None:
    status, headers, answer = standing_server.ask("GET", path)
    assert status == 404 and headers["content-type"] == "application/problem+json"
    assert json.loads(answer)["status"] == 404
