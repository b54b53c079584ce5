"""Once a second (appendfsync everysec), or now and then (no), the durable half of the store is brought to the disk: in
a thread of its own, for the loop must not wait for a disk.

Under `always` safekeeping.py has synced what was acknowledged; what is left is synced here. Without a sync the pages
that the last checkpoint needs are not used again, so one is due, too, when the file has grown much.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import perf_counter

from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.errors import StoreClosed, StoreError

log = logging.getLogger("rlite_pubsub")

SYNC_SECONDS = 1.0
SELDOM_SECONDS = 30.0
"""Where the kernel is to decide when to write, as it would by itself."""
GROWN_BYTES = 64 << 20


class Syncing:
    """One sync at a time, and none where nothing was committed since the last."""

    def __init__(self, data: Environment) -> None:
        self._data = data
        self._synced = data.last_commit()
        self._size = data.used_bytes()
        self._last_at = 0.0
        self._under_way: asyncio.Future[None] | None = None
        self._timed: Callable[[float], None] = _nobody

    def time_syncs(self, timed: Callable[[float], None]) -> None:
        """Call `timed`, in the thread, with the seconds that each sync takes."""
        self._timed = timed

    def look(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        """Called by the cron."""
        if self._under_way is not None and not self._under_way.done():
            return
        commit = self._data.last_commit()
        if commit == self._synced or not self._is_due(now):
            return
        self._last_at = now
        self._synced = commit
        self._size = self._data.used_bytes()
        self._under_way = loop.run_in_executor(None, self._sync)

    def _is_due(self, now: float) -> bool:
        seconds = SELDOM_SECONDS if self._data.durability == "no" else SYNC_SECONDS
        return not self._last_at <= now < self._last_at + seconds or self._data.used_bytes() > self._size + GROWN_BYTES

    def _sync(self) -> None:
        began = perf_counter()
        try:
            self._data.sync()
            self._timed(perf_counter() - began)
        except StoreClosed:
            pass  # its closing came first, and syncs
        except StoreError as failure:
            self._synced = -1
            log.warning("Can't bring the store to the disk: %s", failure)


def _nobody(seconds: float) -> None:
    """Nobody wants to know."""
