"""What must still be sent over one port: in order, in batches, and bounded.

Law 7: publishers wait for nobody. What a port does not take is dropped, the oldest first; law 8: it is counted. The
more is queued, the larger the batches.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from rlite_pubsub.links.envelope import Envelope

MOST_BYTES: Final = 64 << 20
AT_ONCE: Final = 2000
AT_ONCE_BYTES: Final = 1 << 20
_RUN_BYTES: Final = 64


class Outlet:
    """Of one port."""

    def __init__(self, write: Callable[[list[Envelope]], Awaitable[None]]) -> None:
        """`write` sends a batch, and returns when there may be another one."""
        self.dropped = 0
        self._write = write
        self._queue: deque[Envelope] = deque()
        self._bytes = 0
        self._more = asyncio.Event()

    def put(self, messages: Envelope) -> None:
        """Let them go out."""
        self._queue.append(messages)
        self._bytes += _size(messages)
        while self._bytes > MOST_BYTES and len(self._queue) > 1:
            dropped = self._queue.popleft()
            self._bytes -= _size(dropped)
            self.dropped += dropped.length
        if len(self._queue) == 1:
            self._more.set()

    async def run(self) -> None:
        """Write what is queued, until cancelled or `write` fails."""
        while True:
            await self._more.wait()
            self._more.clear()
            while self._queue:
                await self._write(self._take())

    def give_up(self) -> None:
        """Nothing goes out any more."""
        self.dropped += count_of(self._queue)
        self._queue.clear()
        self._bytes = 0

    def _take(self) -> list[Envelope]:
        queue = self._queue
        batch: list[Envelope] = []
        size = count = 0
        while queue and count < AT_ONCE and size < AT_ONCE_BYTES:
            messages = queue.popleft()
            size += _size(messages)
            count += messages.length
            batch.append(messages)
        self._bytes -= size
        return batch


def count_of(batch: Iterable[Envelope]) -> int:
    """Return how many messages they hold."""
    return sum([messages.length for messages in batch])


def _size(messages: Envelope) -> int:
    return len(messages.run) + len(messages.channel) + _RUN_BYTES
