"""Streams take turns: each does a limited amount of work in each round of the event loop, in order.

Others live in that loop. A publish that thousands of streams are to be told of, or thousands of readers who come back
and replay, would keep a Redis client's PING waiting until the last of them is served; so it waits for a round's part.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

ROUND = 64
"""What a round has room for, in the work of telling one stream something that is at hand."""
READING = 8
"""To read what is to be told is so much more."""


class Waves:
    """All of one loop."""

    def __init__(self) -> None:
        self._due: deque[tuple[asyncio.Future[None], int]] = deque()
        self._is_rolling = False

    def wake(self, waiting: Iterable[asyncio.Future[None]]) -> None:
        """Each of these is done when its turn has come."""
        self._due.extend([(each, 1) for each in waiting])
        self._roll_soon()

    async def turn(self, weight: int = READING) -> None:
        """Returns when it is one's turn."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._due.append((mine, weight))
        self._roll_soon()
        await mine

    def _roll_soon(self) -> None:
        if not self._is_rolling and self._due:
            self._is_rolling = True
            asyncio.get_running_loop().call_soon(self._roll)

    def _roll(self) -> None:
        self._is_rolling = False
        due, room = self._due, ROUND
        while due and room > 0:
            waiting, weight = due.popleft()
            if not waiting.done():
                waiting.set_result(None)
                room -= weight
        self._roll_soon()
