"""The result of `stats` as one page: plots and tables, light or dark as the reader's system is, without any script or
request to another host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple

from rlite_pubsub.pipeline.jobs.declared import iso


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
_WIDTH, _HEIGHT = 720, 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 10, 22
_TICKS = 4
_ROOM = 1.05
"""Above the highest point."""
_MOST_POINTS = 720


def page(windows: Sequence[Window], topics: Sequence[Window], lags: Sequence[Lag], window_ms: int) -> str:
    """Return the whole page."""
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
            f"{_amount(topic.bytes)}B",
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
    plot = _bars("Entries that are waiting", "", [Bar(_group(one), one.lag or 0) for one in lags])
    return f"<h2>Consumers</h2>{plot}{_table(['group', 'lag', 'pending', 'consumers'], rows)}"


def _group(one: Lag) -> str:
    return f"{one.topic} → {one.group}"


def _topic(topic: Window, windows: Sequence[Window], start: int, end: int, window_ms: int) -> str:
    seconds = window_ms / 1000
    filled = _filled(windows, start, end, window_ms)
    rates = [Curve("entries", [(at, one.entries / seconds if one else 0) for at, one in filled])]
    sizes = [Curve("bytes", [(at, one.bytes / seconds if one else 0) for at, one in filled])]
    plots = [
        _curves_over_time("Entries", "a second", rates, start, end),
        _curves_over_time("Bytes", "a second", sizes, start, end),
        _curves_over_time("Between entries", "ms", _curves(windows, "gap", window_ms), start, end),
    ]
    if topic.latency_p50 is not None:
        plots.append(_curves_over_time("From the producer", "ms", _curves(windows, "latency", window_ms), start, end))
    return f"<h2>{escape(topic.topic)}</h2>{''.join(plots)}"


def _filled(
    windows: Iterable[Window], start: int, end: int, window_ms: int
) -> list[tuple[float, Window | None]]:
    """Return the windows at their middles, adding the empty ones beside those with entries."""
    known = {window.start: window for window in windows}
    wanted = {at for one in known for at in (one - window_ms, one, one + window_ms) if start <= at < end}
    return [(at + window_ms / 2, known.get(at)) for at in sorted(wanted)]


def _curves(windows: Sequence[Window], kind: str, window_ms: int) -> list[Curve]:
    return [
        Curve(
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


# -- plots as SVG text, in colours that the page's style names


class Curve(NamedTuple):
    """One curve: (time in ms, value), where there is a value."""

    label: str
    points: Sequence[tuple[float, float]]


class Bar(NamedTuple):
    """One bar."""

    label: str
    value: float


def _curves_over_time(title: str, unit: str, curves: Sequence[Curve], start_ms: float, end_ms: float) -> str:
    """Curves over time, which begin at zero."""
    curves = [Curve(curve.label, _thinned(curve.points)) for curve in curves if curve.points]
    top = _nice(_ROOM * max((value for curve in curves for _, value in curve.points), default=0.0))
    span = max(end_ms - start_ms, 1.0)

    def x(ms: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (ms - start_ms) / span

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - value / top)

    parts = [_axes(top, start_ms, end_ms)]
    for place, curve in enumerate(curves):
        if len(curve.points) == 1:
            ms, value = curve.points[0]
            parts.append(f'<circle class="fill c{place}" cx="{x(ms):.1f}" cy="{y(value):.1f}" r="3"/>')
        else:
            path = " ".join(f"{x(ms):.1f},{y(value):.1f}" for ms, value in curve.points)
            parts.append(f'<polyline class="line c{place}" points="{path}"/>')
    keys = [f'<span class="key c{place}">{escape(curve.label)}</span>' for place, curve in enumerate(curves)]
    return _figure(f"{title}, {unit}", "".join(parts), _HEIGHT, "".join(keys) if len(keys) > 1 else "")


def _bars(title: str, unit: str, found: Sequence[Bar]) -> str:
    """Bars that lie, the largest first."""
    found = sorted(found, key=lambda bar: -bar.value)
    top = max((bar.value for bar in found), default=0.0) or 1.0
    row, left = 22, 220
    parts = []
    for place, bar in enumerate(found):
        length = (_WIDTH - left - 110) * bar.value / top
        at = place * row
        parts.append(
            f'<text class="label" x="{left - 8}" y="{at + 15}" text-anchor="end">{escape(_short(bar.label))}</text>'
            f'<rect class="fill c0" x="{left}" y="{at + 4}" width="{max(length, 1):.1f}" height="{row - 8}"/>'
            f'<text class="tick" x="{left + length + 6:.1f}" y="{at + 15}">{_amount(bar.value)} {escape(unit)}</text>'
        )
    return _figure(title, "".join(parts), max(row * len(found), row), "")


def _nice(value: float) -> float:
    """Return the next round number."""
    if value <= 0:
        return 1.0
    size = 10.0 ** len(str(int(value))) / 10 if value >= 1 else 0.1
    return next(size * step for step in (1, 2, 2.5, 5, 10) if size * step >= value)


def _amount(value: float | None) -> str:
    """Short, for people."""
    if value is None:
        return "–"
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"


def _time_text(ms: float, span_ms: float) -> str:
    """Return a time as exact as this span needs it."""
    form = "%H:%M:%S" if span_ms < 600_000 else "%H:%M" if span_ms < 86_400_000 else "%m-%d %H:%M"
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return f"{ms:.0f}"


def _axes(top: float, start_ms: float, end_ms: float) -> str:
    parts = []
    for tick in range(_TICKS + 1):
        share = tick / _TICKS
        height = _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - share)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>'
            f'<text class="tick" x="{_LEFT - 6}" y="{height + 4:.1f}" text-anchor="end">{_amount(top * share)}</text>'
        )
        at = _LEFT + (_WIDTH - _LEFT - _RIGHT) * share
        anchor = "start" if not tick else "end" if tick == _TICKS else "middle"
        when = _time_text(start_ms + (end_ms - start_ms) * share, end_ms - start_ms)
        parts.append(f'<text class="tick" x="{at:.1f}" y="{_HEIGHT - 6}" text-anchor="{anchor}">{when}</text>')
    return "".join(parts)


def _figure(title: str, inside: str, height: int, legend: str) -> str:
    drawn = f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title, quote=True)}">{inside}</svg>'
    return f"<figure><figcaption>{escape(title)} {legend}</figcaption>{drawn}</figure>"


def _thinned(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """No more points than a screen has; of those that share one, the highest."""
    step = -(-len(points) // _MOST_POINTS)
    if step < 2:
        return points
    return [max(points[at : at + step], key=lambda point: point[1]) for at in range(0, len(points), step)]


def _short(text: str) -> str:
    return text if len(text) <= 32 else text[:31] + "…"
