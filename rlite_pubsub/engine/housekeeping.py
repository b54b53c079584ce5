"""What becomes of keys without anybody asking: they expire, and what was deleted is swept up. And who hears of changes.

Both go on ten times a second, in steps that end with a commit, for at most `STEP_MS` in all: what is not finished then
goes on the next time.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.topics import stages

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.keyspace.keyspace import Keyspace

STEP_MS = 5
KEYS_PER_STEP = 50
RECORDS_PER_STEP = 200
STAGES_SECONDS = 60.0
STAGES_PER_STEP = 1000


class Housekeeping:
    """Of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._keyspace: Keyspace | None = None
        self.expires = True  # DEBUG SET-ACTIVE-EXPIRE
        self.failure: StoreError | None = None  # of the last step
        self._stages_swept_at = 0.0

    def tend(self, keyspace: Keyspace) -> None:
        """Keep these keys, and tell of what happens to them."""
        self._keyspace = keyspace
        keyspace.coarse_now = self._engine.clock()
        keyspace.on_expired = self._on_expired
        keyspace.on_added = self._on_added
        keyspace.on_modified = self._on_modified
        keyspace.on_appended = self._on_appended

    def _on_expired(self, database: int, key: bytes) -> None:
        engine = self._engine
        engine.stats.expired_keys += 1
        engine.notifications.tell("x", b"expired", database, key)
        engine.watching.expired(database, key)
        engine.tracked.changed(key, None)

    def _on_added(self, database: int, key: bytes) -> None:
        self._engine.notifications.tell("n", b"new", database, key)

    def _on_appended(self, database: int, key: bytes) -> None:
        self._engine.notifications.tell("t", b"xadd", database, key)

    def _on_modified(self, database: int, key: bytes) -> None:
        engine = self._engine
        if engine.watching.watchers:
            engine.watching.changed(database, key)
        tracked = engine.tracked
        if tracked.readers or tracked.listeners:
            tracked.changed(key, engine.executing)

    def step(self, now: float) -> None:
        """Some of both."""
        keyspace = self._keyspace
        if keyspace is None or self._engine.sampler.paused:
            return
        keyspace.coarse_now = now
        self._engine.tracked.limit()
        deadline = perf_counter() + STEP_MS / 1000
        try:
            if self.expires and keyspace.may_expire:
                self._go_on(keyspace.expire_some, KEYS_PER_STEP, deadline)
            self._go_on(keyspace.sweep_some, RECORDS_PER_STEP, deadline)
            if not self._stages_swept_at <= now < self._stages_swept_at + STAGES_SECONDS:
                self._stages_swept_at = now
                self._sweep_stages(keyspace)
            self._engine.tracked.elsewhere.look(keyspace, deadline)
            self._engine.commit()
        except StoreError as failure:
            keyspace.fail(failure)
            self.failure = failure
            self._engine.commit()
        else:
            self.failure = None

    def _sweep_stages(self, keyspace: Keyspace) -> None:
        """What was staged and is committed, or given up, goes, though nobody stages anything more."""
        if stages.exist(keyspace.settle()):
            now_ms = keyspace.clock_ms()
            stages.sweep(keyspace.writing(), now_ms - stages.KEPT_MS, now_ms, STAGES_PER_STEP)

    def _go_on(self, work: Callable[[int], int], limit: int, deadline: float) -> None:
        while True:
            done = work(limit)
            self._engine.commit()
            if done < limit or perf_counter() > deadline:
                return
