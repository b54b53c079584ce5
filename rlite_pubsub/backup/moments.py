"""Times, as they are shown."""

from __future__ import annotations

from datetime import UTC, datetime


def shown(time_ms: int) -> str:
    """Return a time in UTC, to the millisecond, as `--at` takes it."""
    moment = datetime.fromtimestamp(time_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"
