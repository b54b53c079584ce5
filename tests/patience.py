"""Waiting for a condition. No test depends on how long anything takes: the one limit is there so that a hang ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

PATIENCE_S = 200.0
"""More than a machine takes whose processors are busy with other programs, and less than pytest's `timeout`, which
cannot say what did not come."""


def until(condition: Callable[[], object], what: str = "it") -> None:
    """Returns once the condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come"
        time.sleep(0.005)


async def until_async(condition: Callable[[], Awaitable[object]], what: str = "it") -> None:
    """As `until`, for what must be awaited."""
    deadline = time.monotonic() + PATIENCE_S
    while not await condition():
        assert time.monotonic() < deadline, f"{what} did not come"
        await asyncio.sleep(0.005)
