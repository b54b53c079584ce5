"""Waiting for a condition, bounded, instead of for a time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

PATIENCE_SECONDS = 15


def eventually(holds: Callable[[], Any], receive_from: Any = None) -> None:
    """Returns once `holds()` is true. A PubSub given is read meanwhile, so that it can reconnect."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it never came to that"
        if receive_from is not None:
            receive_from.get_message(timeout=0.01)
        time.sleep(0.002)


async def eventually_async(holds: Callable[[], Awaitable[Any]]) -> None:
    """As `eventually`, for what must be awaited."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not await holds():
        assert time.monotonic() < deadline, "it never came to that"
