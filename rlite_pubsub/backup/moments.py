"""Times, as they are shown."""

from __future__ import annotations

from datetime import UTC, datetime


def shown(time_ms: int) -> str:
    """In UTC, to the millisecond: what `--at` takes."""
    moment = datetime.fromtimestamp(time_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"
