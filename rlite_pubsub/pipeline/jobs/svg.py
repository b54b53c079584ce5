"""Plots as SVG text, in colours that the page's style names. Nothing is fetched, and nothing runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 720, 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 10, 22
_TICKS = 4
_ROOM = 1.05
"""Above the highest point."""
_MOST_POINTS = 720


class Line(NamedTuple):
    """One curve: (time in ms, value), where there is a value."""

    label: str
    points: Sequence[tuple[float, float]]


class Bar(NamedTuple):
    """One bar."""

    label: str
    value: float


def lines(title: str, unit: str, curves: Sequence[Line], start_ms: float, end_ms: float) -> str:
    """Curves over time, which begin at zero."""
    curves = [Line(curve.label, _thinned(curve.points)) for curve in curves if curve.points]
    top = nice(_ROOM * max((value for curve in curves for _, value in curve.points), default=0.0))
    span = max(end_ms - start_ms, 1.0)

    def x(ms: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (ms - start_ms) / span

    def y(value: float) -> float:
        return _TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - value / top)

    parts = [_axes(top, start_ms, end_ms)]
    for place, curve in enumerate(curves):
        if len(curve.points) == 1:
            ms, value = curve.points[0]
            parts.append(f'<circle class="fill c{place}" cx="{x(ms):.1f}" cy="{y(value):.1f}" r="3"/>')
        else:
            path = " ".join(f"{x(ms):.1f},{y(value):.1f}" for ms, value in curve.points)
            parts.append(f'<polyline class="line c{place}" points="{path}"/>')
    keys = [f'<span class="key c{place}">{escape(curve.label)}</span>' for place, curve in enumerate(curves)]
    return _figure(f"{title}, {unit}", "".join(parts), HEIGHT, "".join(keys) if len(keys) > 1 else "")


def bars(title: str, unit: str, found: Sequence[Bar]) -> str:
    """Bars that lie, the largest first."""
    found = sorted(found, key=lambda bar: -bar.value)
    top = max((bar.value for bar in found), default=0.0) or 1.0
    row, left = 22, 220
    parts = []
    for place, bar in enumerate(found):
        length = (WIDTH - left - 110) * bar.value / top
        at = place * row
        parts.append(
            f'<text class="label" x="{left - 8}" y="{at + 15}" text-anchor="end">{escape(_short(bar.label))}</text>'
            f'<rect class="fill c0" x="{left}" y="{at + 4}" width="{max(length, 1):.1f}" height="{row - 8}"/>'
            f'<text class="tick" x="{left + length + 6:.1f}" y="{at + 15}">{amount(bar.value)} {escape(unit)}</text>'
        )
    return _figure(title, "".join(parts), max(row * len(found), row), "")


def nice(value: float) -> float:
    """The next round number."""
    if value <= 0:
        return 1.0
    size = 10.0 ** len(str(int(value))) / 10 if value >= 1 else 0.1
    return next(size * step for step in (1, 2, 2.5, 5, 10) if size * step >= value)


def amount(value: float | None) -> str:
    """Short, for people."""
    if value is None:
        return "–"
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"


def time_text(ms: float, span_ms: float) -> str:
    """As exact as this span needs it."""
    form = "%H:%M:%S" if span_ms < 600_000 else "%H:%M" if span_ms < 86_400_000 else "%m-%d %H:%M"
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return f"{ms:.0f}"


def _axes(top: float, start_ms: float, end_ms: float) -> str:
    parts = []
    for tick in range(_TICKS + 1):
        share = tick / _TICKS
        height = _TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - share)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>'
            f'<text class="tick" x="{_LEFT - 6}" y="{height + 4:.1f}" text-anchor="end">{amount(top * share)}</text>'
        )
        at = _LEFT + (WIDTH - _LEFT - _RIGHT) * share
        anchor = "start" if not tick else "end" if tick == _TICKS else "middle"
        when = time_text(start_ms + (end_ms - start_ms) * share, end_ms - start_ms)
        parts.append(f'<text class="tick" x="{at:.1f}" y="{HEIGHT - 6}" text-anchor="{anchor}">{when}</text>')
    return "".join(parts)


def _figure(title: str, inside: str, height: int, legend: str) -> str:
    drawn = f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title, quote=True)}">{inside}</svg>'
    return f"<figure><figcaption>{escape(title)} {legend}</figcaption>{drawn}</figure>"


def _thinned(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """No more points than a screen has; of those that share one, the highest."""
    step = -(-len(points) // _MOST_POINTS)
    if step < 2:
        return points
    return [max(points[at : at + step], key=lambda point: point[1]) for at in range(0, len(points), step)]


def _short(text: str) -> str:
    return text if len(text) <= 32 else text[:31] + "…"
