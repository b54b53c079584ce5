"""What `stats` has found, as one page: plots and tables, light or dark as the reader's system is, without any script,
and without asking any host for anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from rlite_pubsub.pipeline.jobs import svg
from rlite_pubsub.pipeline.jobs.declared import iso
from rlite_pubsub.pipeline.jobs.svg import Bar, Line, amount


class Window(NamedTuple):
    """A topic in a time window; or, with start 0, a whole topic."""

    topic: str
    start: int
    """In ms."""
    entries: int
    bytes: int
    gap_p50: float | None
    gap_p95: float | None
    gap_p99: float | None
    gap_max: float | None
    latency_p50: float | None
    latency_p95: float | None
    latency_p99: float | None
    latency_max: float | None


class Lag(NamedTuple):
    """A group of a topic."""

    topic: str
    group: str
    lag: int | None
    """Entries that it has not been given yet; None: not known."""
    pending: int
    consumers: int


_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #1b1f24; --soft: #667; --grid: #e3e6ea;
  --c0: #2563eb; --c1: #d97706; --c2: #dc2626; --c3: #059669; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --ink: #e6e8ea; --soft: #99a; --grid: #2b3036;
  --c0: #7aa2ff; --c1: #f5b041; --c2: #ff7b72; --c3: #4ade80; } }
body { background: var(--ground); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto;
  max-width: 780px; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; overflow-wrap: anywhere; }
p, figcaption { color: var(--soft); } figure { margin: 1rem 0; } svg { width: 100%; height: auto; display: block; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; text-align: right; border-bottom: 1px solid var(--grid); }
th { color: var(--soft); font-weight: 500; }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; }
.line { fill: none; stroke-width: 1.5; } .grid { stroke: var(--grid); }
.tick, .label { fill: var(--soft); font-size: 11px; } .label { fill: var(--ink); }
.line.c0 { stroke: var(--c0); } .line.c1 { stroke: var(--c1); } .line.c2 { stroke: var(--c2); }
.line.c3 { stroke: var(--c3); } .fill.c0 { fill: var(--c0); } .fill.c1 { fill: var(--c1); }
.fill.c2 { fill: var(--c2); } .fill.c3 { fill: var(--c3); }
.key { margin-left: .8rem; } .key::before { content: "■ "; } .key.c0::before { color: var(--c0); }
.key.c1::before { color: var(--c1); } .key.c2::before { color: var(--c2); } .key.c3::before { color: var(--c3); }
"""
_MOST_TOPICS = 50
"""With plots of their own: those with most entries."""


def page(windows: Sequence[Window], topics: Sequence[Window], lags: Sequence[Lag], window_ms: int) -> str:
    """The whole page."""
    by_topic: dict[str, list[Window]] = {}
    for window in windows:
        by_topic.setdefault(window.topic, []).append(window)
    start = min((window.start for window in windows), default=0)
    end = max((window.start + window_ms for window in windows), default=0)
    entries = sum(topic.entries for topic in topics)
    plotted = sorted(topics, key=lambda topic: (-topic.entries, topic.topic))[:_MOST_TOPICS]
    parts = [
        f"<h1>{len(topics)} topics, {entries:,} entries</h1>",
        f"<p>{iso(start)} to {iso(end)}, in windows of {window_ms / 1000:g} s; times are UTC, percentiles exact.</p>"
        if windows
        else "<p>There is nothing.</p>",
        _topics_table(topics),
        _lag(lags),
        *(_topic(topic, by_topic[topic.topic], start, end, window_ms) for topic in plotted if topic.topic in by_topic),
    ]
    if len(plotted) < len(topics):
        parts.append(f"<p>{len(topics) - len(plotted)} smaller topics have no plots.</p>")
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Topics</title>'
    body = "".join(parts)
    return f"<!doctype html><html lang=en><head>{head}<style>{_STYLE}</style></head><body>{body}</body></html>\n"


def _topics_table(topics: Sequence[Window]) -> str:
    heads = ["topic", "entries", "bytes", "gap p50", "gap p99", "latency p50", "latency p99"]
    rows = [
        [
            topic.topic,
            f"{topic.entries:,}",
            f"{amount(topic.bytes)}B",
            *(_ms(value) for value in (topic.gap_p50, topic.gap_p99, topic.latency_p50, topic.latency_p99)),
        ]
        for topic in topics
    ]
    return _table(heads, rows)


def _lag(lags: Sequence[Lag]) -> str:
    if not lags:
        return ""
    rows = [
        [_group(one), "unknown" if one.lag is None else f"{one.lag:,}", f"{one.pending:,}", str(one.consumers)]
        for one in lags
    ]
    plot = svg.bars("Entries that are waiting", "", [Bar(_group(one), one.lag or 0) for one in lags])
    return f"<h2>Consumers</h2>{plot}{_table(['group', 'lag', 'pending', 'consumers'], rows)}"


def _group(one: Lag) -> str:
    return f"{one.topic} → {one.group}"


def _topic(topic: Window, windows: Sequence[Window], start: int, end: int, window_ms: int) -> str:
    seconds = window_ms / 1000
    filled = _filled(windows, start, end, window_ms)
    rates = [Line("entries", [(at, one.entries / seconds if one else 0) for at, one in filled])]
    sizes = [Line("bytes", [(at, one.bytes / seconds if one else 0) for at, one in filled])]
    plots = [
        svg.lines("Entries", "a second", rates, start, end),
        svg.lines("Bytes", "a second", sizes, start, end),
        svg.lines("Between entries", "ms", _curves(windows, "gap", window_ms), start, end),
    ]
    if topic.latency_p50 is not None:
        plots.append(svg.lines("From the producer", "ms", _curves(windows, "latency", window_ms), start, end))
    return f"<h2>{escape(topic.topic)}</h2>{''.join(plots)}"


def _filled(
    windows: Iterable[Window], start: int, end: int, window_ms: int
) -> list[tuple[float, Window | None]]:
    """In the middle of each window; next to those with entries, also those without any."""
    known = {window.start: window for window in windows}
    wanted = {at for one in known for at in (one - window_ms, one, one + window_ms) if start <= at < end}
    return [(at + window_ms / 2, known.get(at)) for at in sorted(wanted)]


def _curves(windows: Sequence[Window], kind: str, window_ms: int) -> list[Line]:
    return [
        Line(
            name,
            [
                (window.start + window_ms / 2, value)
                for window in windows
                if (value := getattr(window, f"{kind}_{name}")) is not None
            ],
        )
        for name in ("p50", "p95", "p99")
    ]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:,.4g} ms"
