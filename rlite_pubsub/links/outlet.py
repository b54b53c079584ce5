"""What must still be sent over one port: in order, in batches, and bounded.

Law 7: publishers wait for nobody. What a port does not take is dropped, the oldest first; law 8: it is counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from rlite_pubsub.links.envelope import Envelope

MOST_BYTES: Final = 64 << 20
AT_ONCE: Final = 1000
AT_ONCE_BYTES: Final = 1 << 20
_MESSAGE_BYTES: Final = 64


class Outlet:
    """Of one port."""

    def __init__(self, write: Callable[[list[Envelope]], Awaitable[None]]) -> None:
        """`write` sends a batch, and returns when there may be another one."""
        self.dropped = 0
        self._write = write
        self._queue: deque[Envelope] = deque()
        self._bytes = 0
        self._more = asyncio.Event()

    def put(self, message: Envelope) -> None:
        """Let it go out."""
        self._queue.append(message)
        self._bytes += _size(message)
        while self._bytes > MOST_BYTES and len(self._queue) > 1:
            self._bytes -= _size(self._queue.popleft())
            self.dropped += 1
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
        self.dropped += len(self._queue)
        self._queue.clear()
        self._bytes = 0

    def _take(self) -> list[Envelope]:
        queue = self._queue
        batch: list[Envelope] = []
        size = 0
        while queue and len(batch) < AT_ONCE and size < AT_ONCE_BYTES:
            message = queue.popleft()
            size += _size(message)
            batch.append(message)
        self._bytes -= size
        return batch


def _size(message: Envelope) -> int:
    return len(message.payload) + len(message.channel) + _MESSAGE_BYTES
