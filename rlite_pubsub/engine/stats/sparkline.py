"""A row of bars in plain text, each with its label written downwards beneath it."""

from __future__ import annotations

from collections.abc import Sequence

_TOPS = "_o#"
_COLUMNS = 80
_ROWS = 4


def sparkline(samples: Sequence[tuple[int, str]]) -> str:
    """(value, label) from left to right; the lowest is the smallest bar, the highest the full four rows."""
    values = [value for value, _ in samples]
    low, high = min(values), max(values)
    parts = [_part(samples[start : start + _COLUMNS], low, high) for start in range(0, len(samples), _COLUMNS)]
    return "\n".join(parts)


def _part(samples: Sequence[tuple[int, str]], low: int, high: int) -> str:
    steps = len(_TOPS) * _ROWS
    heights = [min((value - low) * steps // ((high - low) or 1), steps - 1) for value, _ in samples]
    lines = []
    for row in reversed(range(_ROWS)):
        tops = [height - row * len(_TOPS) for height in heights]
        lines.append("".join(" " if top < 0 else _TOPS[top] if top < len(_TOPS) else "|" for top in tops))
    lines.append(" " * len(samples))
    depth = max(len(label) for _, label in samples)
    lines += ["".join(label[row] if row < len(label) else " " for _, label in samples) for row in range(depth)]
    return "".join(f"{line}\n" for line in lines)
