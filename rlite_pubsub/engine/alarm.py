"""Has what is due done (groups/punctuality.py): ten times a second, and in between at the very time if it is
known. Any number of processes may do so."""

from __future__ import annotations

import logging
from time import perf_counter
from typing import TYPE_CHECKING

from rlite_pubsub.groups.punctuality import Punctuality

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.keyspace.keyspace import Keyspace

log = logging.getLogger("rlite_pubsub")

STEP_MS = 3
"""After so long it is committed, and others have their turns."""
AHEAD_MS = 1500
"""What is due so soon gets a timer: a process without a loop of its own looks about once a second."""


class Alarm:
    """One engine's."""

    def __init__(self, engine: Engine, keyspace: Keyspace) -> None:
        self._engine = engine
        self._keyspace = keyspace
        self._punctuality = Punctuality(keyspace)
        self._set_for_ms: int | None = None  # when the timer goes off
        self._has_failed = False
        keyspace.on_deadline = self._set

    def cron(self) -> None:
        """Do what is due, to be committed with the turn, and have the rest done at its time."""
        keyspace = self._keyspace
        if keyspace.failure is not None or not keyspace.may_expire:
            return
        try:
            next_ms = self._work()
        except Exception as failure:
            level = logging.DEBUG if self._has_failed else logging.WARNING
            log.log(level, "Can't do what is due of topics: %s", keyspace.fail(failure))
            self._has_failed = True
            return
        self._has_failed = False
        if next_ms is not None:
            self._set(next_ms)

    def _work(self) -> int | None:
        """Do what is due, for a while; when something is due next."""
        deadline = perf_counter() + STEP_MS / 1000
        while self._punctuality.step():
            if perf_counter() > deadline:
                break
        return self._punctuality.next_ms()

    def _set(self, at_ms: int) -> None:
        now_ms = self._keyspace.clock_ms()
        if self._set_for_ms is not None and now_ms <= self._set_for_ms <= at_ms:
            return
        if at_ms - now_ms <= AHEAD_MS:
            self._set_for_ms = max(at_ms, now_ms + STEP_MS)  # who is late rests as long as it works
            self._engine.call_later((self._set_for_ms - now_ms) / 1000, self._go_off)

    def _go_off(self) -> None:
        self._set_for_ms = None
        self.cron()
