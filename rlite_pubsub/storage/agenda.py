"""The order of a turn's end: its stages, one a line, the first first. engine/turn.py runs them.

Law 11: a turn asks nobody. A part that has something to do at the turn's end sets the bit of its stage in `due`; a
stage that is not due costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

POSTED: Final = 1 << 0
"""Turn what came over HTTP into entries."""
STRETCHES: Final = 1 << 1
"""Turn what XADDs have gathered into entries."""
READY: Final = 1 << 2
"""Keys are ready, or sessions are released: serve, and let them go on."""
CREDITS: Final = 1 << 3
"""Push to consumers that have credit again."""
CHANGED_KEYS: Final = 1 << 4
"""Notify clients that track a prefix of the keys that have changed."""
KEYS: Final = 1 << 5
"""Commit changes to keys, and wake other processes that wait for them."""
WAITS: Final = 1 << 6
"""Tell other processes which keys are waited for, and look at these once more."""
FOLLOWED: Final = 1 << 7
"""Send new entries to those who follow a topic."""
REPLICAS: Final = 1 << 8
"""Send replicas what was committed."""
RUN: Final = 1 << 9
"""Close the run of messages: put them into the outboxes."""
NAMES: Final = 1 << 10
"""Commit which subscriber holds which names."""
LETTERS: Final = 1 << 11
"""Commit messages to other processes and to durable subscribers, and ring."""
FEEDS: Final = 1 << 12
"""Send what waits for durable subscribers."""
CUT_OFF: Final = 1 << 13
"""Close the sessions that have missed an unknown number of messages."""
OUTBOXES: Final = 1 << 14
"""Flush."""
SUSPECTS: Final = 1 << 15
"""Look at subscribers that did not answer the bell, and go on emptying the mailboxes of those cut off."""
SPILL: Final = 1 << 16
"""Move to disk what has piled up for slow readers."""
COUNT: Final = 1 << 17
"""Count what was not counted one by one."""

OF_KEYS: Final = RUN - 1
"""All stages of the commit of keys."""
ALL: Final = (1 << 18) - 1


class Agenda:
    """The stages that are due at the end of a thread's turn."""

    __slots__ = ("due", "later", "steps")

    def __init__(self) -> None:
        self.due = 0
        self.later = 0  # stages of the next turn
        self.steps: dict[int, Callable[[], None]] = {}

    def at(self, stage: int, step: Callable[[], None]) -> None:
        """Call `step` in every turn in which this stage is due."""
        self.steps[stage] = step

    def begin_next(self) -> None:
        """Begin the next turn: what was put off is due."""
        self.due |= self.later
        self.later = 0
