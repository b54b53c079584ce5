"""The results as a Markdown table, and as JSON with every round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .comparison import Comparison, Result
from .contestant import OURS, REDIS

COLUMNS = ("shape", "figure", "better", "Redis", "ours", "ratio", "range", "CPU µs/op Redis", "ours", "CPU ratio",
           "busy Redis", "ours", "target", "met")  # fmt: skip
NOTHING = "–"
DISTURBED = 0.03  # share of a round from which its figures are in doubt


def markdown(results: Sequence[Result], facts: Mapping[str, str]) -> str:
    lines = [_row(COLUMNS), _row(["---", "---", "---"] + ["---:"] * 10 + ["---"])]
    for result in results:
        lines += [_row(_cells(result, comparison)) for comparison in result.figures()]
    failures = [
        f"- **{result.shape.name}**, {name}: {why}" for result in results for name, why in result.failures.items()
    ]
    disturbed = [line for result in results for line in _disturbances(result)]
    notes = ["", *(f"- {name}: {fact}" for name, fact in facts.items())]
    legend = [
        "",
        "Medians. `range`: lowest and highest ratio of single rounds (where there is none: ours). `CPU`: the server's"
        " user and system time per publish or, for deliveries, per delivery. `busy`: that time, as a share of the"
        " round.",
    ]
    if disturbed:
        notes += [
            "",
            "Disturbed: other processes had the cores while the server or the generator (added up) could have run.",
            *disturbed,
        ]
    lacking = [f"- {result.shape.name}: {result.lacks}" for result in results if result.lacks]
    if lacking:
        notes += ["", "Not measured, for this machine lacks what is needed:", *lacking]
    if failures:
        notes += ["", "Failed:", *failures]
    return "\n".join([*lines, *legend, *notes])


def as_json(results: Sequence[Result], facts: Mapping[str, str]) -> dict[str, Any]:
    return {
        "facts": dict(facts),
        "shapes": [
            {
                "name": result.shape.name,
                "sentence": result.shape.sentence,
                "failures": result.failures,
                "lacks": result.lacks,
                "figures": [_figure(comparison) for comparison in result.figures()],
            }
            for result in results
        ],
    }


def _figure(comparison: Comparison) -> dict[str, Any]:
    figure = comparison.figure
    return {
        "name": figure.name,
        "unit": figure.unit,
        "higher_is_better": figure.higher_is_better,
        "target": figure.target_text(),
        "met": comparison.met(),
        "ratio": comparison.ratio(),
        "spread": comparison.spread(),
        "cpu_ratio": comparison.cpu_ratio(),
        "servers": {
            name: {
                "median": comparison.value(name),
                "cpu_us_per_operation": comparison.cpu_us(name),
                "busy": comparison.busy(name),
                "waited": comparison.waited(name),
                "rounds": [reading.value for reading in readings],
            }
            for name, readings in comparison.readings.items()
        },
    }


def _cells(result: Result, comparison: Comparison) -> list[str]:
    figure = comparison.figure
    span = comparison.spread()
    met = comparison.met()
    return [
        result.shape.name,
        f"{figure.name}, {figure.unit}",
        "higher" if figure.higher_is_better else "lower",
        *(_value(result, comparison, name) for name in (REDIS, OURS)),
        _times(comparison.ratio()),
        f"{span[0]:.2f}–{span[1]:.2f}" if span else NOTHING,
        *(_number(comparison.cpu_us(name)) for name in (REDIS, OURS)),
        _times(comparison.cpu_ratio()),
        *(_share(comparison.busy(name)) for name in (REDIS, OURS)),
        figure.target_text() or NOTHING,
        NOTHING if met is None else "yes" if met else "**no**",
    ]


def _disturbances(result: Result) -> list[str]:
    shares = {name: result.figures()[0].waited(name) for name in result.rounds}
    said = [f"{name} {share:.0%} of a round" for name, share in shares.items() if share and share > DISTURBED]
    return [f"- {result.shape.name}: {', '.join(said)}"] if said else []


def _value(result: Result, comparison: Comparison, name: str) -> str:
    return "failed" if name in result.failures else _number(comparison.value(name))


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _number(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _times(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}x"


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.0%}"
