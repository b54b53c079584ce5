"""appendfsync everysec: once a second the durable half of the store is brought to the disk, in a thread of its own, for
the loop must not wait for a disk."""

from __future__ import annotations

import asyncio
import logging

from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.errors import StoreClosed, StoreError

log = logging.getLogger("rlite_pubsub")

SYNC_SECONDS = 1.0


class Syncing:
    """One sync at a time, and none where nothing was committed since the last."""

    def __init__(self, data: Environment) -> None:
        self._data = data
        self._synced = data.last_commit()
        self._due_at = 0.0
        self._under_way: asyncio.Future[None] | None = None

    def look(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        """Called by the cron."""
        if now < self._due_at <= now + SYNC_SECONDS or (self._under_way is not None and not self._under_way.done()):
            return
        self._due_at = now + SYNC_SECONDS
        commit = self._data.last_commit()
        if commit != self._synced:
            self._synced = commit
            self._under_way = loop.run_in_executor(None, self._sync)

    def _sync(self) -> None:
        try:
            self._data.sync()
        except StoreClosed:
            pass  # its closing came first, and LMDB syncs then
        except StoreError as failure:
            self._synced = -1
            log.warning("Can't bring the store to the disk: %s", failure)
