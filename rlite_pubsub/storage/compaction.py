"""Giving the free pages of a whole store back to the file system, while it is in use (pages/holes.py).

It works in steps, each of which holds the writer's lock for a few milliseconds, and may stop after any of them.
"""

from __future__ import annotations

from rlite_pubsub.storage.pages.holes import BEGINNING, Reached
from rlite_pubsub.storage.store import Store

STEP_SECONDS = 0.003


class Compaction:
    """One pass through the list of free pages of each file. Several processes may run one."""

    def __init__(self, store: Store) -> None:
        self._left = [store.live, store.data]
        self._place: Reached = BEGINNING
        self.given_back = 0

    def step(self) -> bool:
        """Give back some of them; return whether there may be more. Raises StoreError."""
        if not self._left:
            return False
        going_on, size_bytes = self._left[-1].account.give_back(self._place, STEP_SECONDS)
        self.given_back += size_bytes
        if going_on is None:
            self._left.pop()
        self._place = going_on or BEGINNING
        return bool(self._left)
