"""All shapes, in the order of the table."""

from __future__ import annotations

from ..shape import Shape
from . import (
    append,
    backup,
    cold,
    embedded,
    fanout,
    frameworks,
    gateway,
    groups,
    keys,
    latency,
    links,
    memory,
    patterns,
    pipeline,
    publish,
    replay,
    restart,
    slow,
    start,
    strings,
    wakeups,
)

SHAPES: tuple[Shape, ...] = (
    *publish.SHAPES,
    *fanout.SHAPES,
    *latency.SHAPES,
    *patterns.SHAPES,
    *memory.SHAPES,
    *start.SHAPES,
    *slow.SHAPES,
    *strings.SHAPES,
    *keys.SHAPES,
    *append.SHAPES,
    *replay.SHAPES,
    *groups.SHAPES,
    *restart.SHAPES,
    *embedded.SHAPES,
    *wakeups.SHAPES,
    *links.SHAPES,
    *backup.SHAPES,
    *frameworks.SHAPES,
    *gateway.SHAPES,
    *cold.SHAPES,
    *pipeline.SHAPES,
)
