"""`stats`: the same numbers as plain Python makes of XRANGE."""

from __future__ import annotations

import random
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
import redis

from rlite_pubsub.pipeline.jobs import stats
from rlite_pubsub.pipeline.jobs.report import Window, page
from rlite_pubsub.pipeline.jobs.stats import PERCENTILES, Stats

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WINDOW_MS = 1000


def fill(client: redis.Redis, topics: list[str]) -> None:
    """Busy and quiet times, ids within one millisecond, entries without the field and with one that is no number."""
    chance = random.Random(7)
    pipe = client.pipeline(transaction=False)
    for topic in topics:
        ms = 1_700_000_000_000
        for number in range(400):
            ms += chance.choice((0, 0, 1, 3, 40, 1500))
            fields: dict[Any, Any] = {"value": b"v" * chance.randrange(50)}
            if number % 9:
                fields["at"] = ms - chance.randrange(200) if number % 17 else "yesterday"
            pipe.xadd(topic, fields, id=f"{ms}-{number}")
    pipe.execute()


def percentile(values: list[float], share: float) -> float | None:
    """Linear between neighbours."""
    if not values:
        return None
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def expected(client: redis.Redis, topic: str, window_ms: int | None) -> dict[int | None, dict[str, Any]]:
    """By the beginning of the window."""
    entries = [(int(entry_id.split(b"-")[0]), fields) for entry_id, fields in client.xrange(topic)]
    gaps = [None, *(other - one for (one, _), (other, _) in pairwise(entries))]
    groups: dict[int | None, list[int]] = {}
    for place, (ms, _) in enumerate(entries):
        groups.setdefault(None if window_ms is None else ms - ms % window_ms, []).append(place)
    found: dict[int | None, dict[str, Any]] = {}
    for start, places in groups.items():
        late = [
            float(entries[place][0] - int(said))
            for place in places
            if (said := entries[place][1].get(b"at")) is not None and said.isdigit()
        ]
        between = [float(gap) for place in places if (gap := gaps[place]) is not None]
        found[start] = {
            "entries": len(places),
            "bytes": sum(len(name) + len(value) for place in places for name, value in entries[place][1].items()),
            **{f"gap_{name}": percentile(between, share) for name, share in PERCENTILES.items()},
            **{f"latency_{name}": percentile(late, share) for name, share in PERCENTILES.items()},
        }
    return found


def test_they_are_the_numbers_that_plain_python_makes_of_xrange(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    topics = ["a", "b<&>"]
    fill(client, topics)
    client.xgroup_create("a", "workers", "0")
    client.xreadgroup("workers", "one", {"a": ">"}, count=30)
    options = Stats(
        url=url,
        window_ms=WINDOW_MS,
        time_field="at",
        to=str(tmp_path / "windows"),
        report=str(tmp_path / "report.html"),
    )
    outcome = stats.run(spark, options)

    assert {str(row["topic"]) for row in outcome.rows} == set(topics)
    for row in outcome.rows:
        wanted = expected(client, str(row["topic"]), None)[None]
        assert {name: row[name] for name in wanted} == pytest.approx(wanted)
    rows = pq.read_table(tmp_path / "windows").to_pylist()
    for topic in topics:
        wanted_windows = expected(client, topic, WINDOW_MS)
        got = {round(row["start"].timestamp() * 1000): row for row in rows if row["topic"] == topic}
        assert got.keys() == wanted_windows.keys()
        for start, wanted in wanted_windows.items():
            assert {name: got[start or 0][name] for name in wanted} == pytest.approx(wanted)
    assert outcome.totals["entries"] == stats.plan(options).totals["rows"] == 800
    assert outcome.totals["lag"] == [
        {"topic": "a", "group": "workers", "lag": 370, "pending": 30, "consumers": 1}
    ]
    text = (tmp_path / "report.html").read_text()
    assert "b&lt;&amp;&gt;" in text and "workers" in text and "<svg" in text


def test_where_there_is_nothing_the_result_is_empty(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    client.execute_command("TOPIC.CREATE", "empty")
    options = Stats(url=url, report=str(tmp_path / "report.html"))
    assert stats.plan(options).totals["rows"] == 0
    outcome = stats.run(spark, options)
    assert not outcome.rows and outcome.totals["entries"] == 0
    assert "There is nothing." in (tmp_path / "report.html").read_text()


class Fetched(HTMLParser):
    """What a page would have a browser fetch or run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [tag] * (tag in ("script", "link", "img", "iframe", "object"))
        self.found += [name for name, _ in attrs if name in ("src", "href", "srcset") or name.startswith("on")]


def test_the_report_asks_no_host_for_anything_and_knows_light_and_dark() -> None:
    window = Window("orders", 1_700_000_000_000, 5, 500, 1.0, 2.0, 3.0, 4.0, None, None, None, None)
    text = page([window, window._replace(start=window.start + 5000)], [window._replace(start=0)], [], 1000)
    parser = Fetched()
    parser.feed(text)
    assert not parser.found
    assert "http:" not in text and "https:" not in text and "url(" not in text and "@import" not in text
    assert "prefers-color-scheme: dark" in text
    assert page([], [], [], 1000)  # of nothing there is a page, too
