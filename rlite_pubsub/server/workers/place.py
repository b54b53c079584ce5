"""A worker's place among those of its server: what the supervisor gives it, and how it tells it that it serves."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class WorkerPlace:
    """A worker's knowledge of itself and the others."""

    number: int
    paths: Sequence[str]
    """The private unix sockets of all workers, in order."""
    is_replacement: bool
    """Of one that has died: the others may have been told something meanwhile."""
    tells: int
    """A pipe to the supervisor."""
    lives: int
    """A pipe that the supervisor holds open as long as it lives."""

    def begin(self, loop: asyncio.AbstractEventLoop, end: Callable[[], None]) -> None:
        """Begin to serve; if the supervisor is gone, it calls `end`, and removes what the supervisor cannot remove."""
        os.write(self.tells, bytes([self.number]))

        def end_alone() -> None:
            loop.remove_reader(self.lives)
            shutil.rmtree(os.path.dirname(self.paths[0]), ignore_errors=True)
            end()

        loop.add_reader(self.lives, end_alone)
