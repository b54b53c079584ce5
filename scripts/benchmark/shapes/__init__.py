"""All shapes, in the order of the table."""

from __future__ import annotations

from ..shape import Shape
from . import embedded, fanout, latency, memory, patterns, publish, slow, start, wakeups

SHAPES: tuple[Shape, ...] = (
    *publish.SHAPES,
    *fanout.SHAPES,
    *latency.SHAPES,
    *patterns.SHAPES,
    *memory.SHAPES,
    *start.SHAPES,
    *slow.SHAPES,
    *embedded.SHAPES,
    *wakeups.SHAPES,
)
