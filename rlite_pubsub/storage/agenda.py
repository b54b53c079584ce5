"""The order of a turn: what is to be done at its end, a stage a line, the first first. engine/turn.py does it.

Law 11: a turn asks nobody. A part that has something to do at its end sets the bit of its stage in `due`; what is not
due
costs neither a call nor a look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

POSTED: Final = 1 << 0
"""What came over HTTP becomes entries."""
STRETCHES: Final = 1 << 1
"""What XADDs have gathered becomes entries."""
READY: Final = 1 << 2
"""Keys are ready, or sessions are released: serve, and let them go on."""
CREDITS: Final = 1 << 3
"""Give those who consume what they have credit for again."""
CHANGED_KEYS: Final = 1 << 4
"""Clients that track a prefix are notified of the keys that have changed."""
KEYS: Final = 1 << 5
"""Commit what was done to keys, and wake other processes that wait for them."""
WAITS: Final = 1 << 6
"""Let other processes know which keys are waited for, and look at these once more."""
FOLLOWED: Final = 1 << 7
"""Say what has come to who follows a topic."""
REPLICAS: Final = 1 << 8
"""Send replicas what was committed."""
RUN: Final = 1 << 9
"""Close the run of messages: into the outboxes with it."""
NAMES: Final = 1 << 10
"""Commit who holds which names."""
LETTERS: Final = 1 << 11
"""Commit messages to other processes and to durable subscribers, and ring."""
FEEDS: Final = 1 << 12
"""Say what waits for durable subscribers."""
CUT_OFF: Final = 1 << 13
"""Close the sessions that have missed an unknown amount."""
OUTBOXES: Final = 1 << 14
"""Flush."""
SUSPECTS: Final = 1 << 15
"""Look at who did not answer the bell, and go on emptying the mailboxes of who was cut off."""
SPILL: Final = 1 << 16
"""Move to disk what has piled up for slow readers."""
COUNT: Final = 1 << 17
"""Count what was not counted one by one."""

OF_KEYS: Final = RUN - 1
"""All that belongs to the commit of keys."""
ALL: Final = (1 << 18) - 1


class Agenda:
    """What a thread has to do at the end of its turn."""

    __slots__ = ("due", "later", "steps")

    def __init__(self) -> None:
        self.due = 0
        self.later = 0  # stages of the next turn
        self.steps: dict[int, Callable[[], None]] = {}

    def at(self, stage: int, step: Callable[[], None]) -> None:
        """Have `step` called in every turn in which this stage is due."""
        self.steps[stage] = step

    def begin_next(self) -> None:
        """The turn is over: what was put off is due."""
        self.due |= self.later
        self.later = 0
