"""Background work on keys: they expire, and what was deleted is swept up; and who is told of changes.

Both happen ten times a second, and in between as long as anything is left: see pace.py. If one chore fails, the others
still run.
"""

from __future__ import annotations

import logging
from functools import partial
from itertools import count
from time import perf_counter, thread_time
from typing import TYPE_CHECKING

from rlite_pubsub.engine.pace import Pace
from rlite_pubsub.keyspace.news import KeyListener
from rlite_pubsub.keyspace.sweeping import expire_here, sweep_some
from rlite_pubsub.storage.errors import DiskFull, StoreError, StoreHeld, StoreRemoved
from rlite_pubsub.storage.room import data_bytes
from rlite_pubsub.storage.topics import stages

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.engine.counters import Stats
    from rlite_pubsub.engine.eviction.memory_limit import MemoryLimit
    from rlite_pubsub.engine.expiry import Expiry
    from rlite_pubsub.engine.shards.sharding import Sharding
    from rlite_pubsub.engine.stats.latency import LatencyMonitor
    from rlite_pubsub.engine.stats.sampler import Sampler
    from rlite_pubsub.engine.tracking.announcing import Announcing
    from rlite_pubsub.engine.tracking.invalidation import TrackedKeys
    from rlite_pubsub.engine.tracking.notifications import Notifications
    from rlite_pubsub.engine.tracking.watching import Watching
    from rlite_pubsub.engine.waits.alarm import CallLater
    from rlite_pubsub.keyspace.keyspace import Keyspace

log = logging.getLogger("rlite_pubsub")

LOOK_MS = 5
"""How long it may look for what trackers elsewhere have changed."""
KEYS_PER_STEP = 50
STEPS_PER_COMMIT = 10
LEAST_EVICTING_S = 0.001
LOOKS_PER_STEP = 1000
RECORDS_PER_STEP = 200
ROOM_MS = 50
"""How long an addition to a full store may wait until what was deleted is swept."""
STAGES_SECONDS = 60.0
STAGES_PER_STEP = 1000


class Chores:
    """Runs the regular chores of an engine. Each kind of error is logged once per chore, until the chore succeeds
    again."""

    def __init__(self, undo: Callable[[Exception], None]) -> None:
        """`undo` undoes the work of a chore that failed halfway."""
        self._undo = undo
        self._told: dict[str, set[str]] = {}  # by the chore's name

    def do(self, name: str, work: Callable[[], object]) -> None:
        """Run one chore."""
        try:
            work()
        except StoreRemoved:
            pass  # the store itself says so, once
        except StoreHeld:
            pass  # another process is writing, and nothing was done: it is with the next run
        except Exception as failure:
            self._tell(name, failure)
            try:
                self._undo(failure)
            except Exception as another:
                self._tell(f"{name}, and to undo it", another)
        else:
            if self._told:
                self._told.pop(name, None)

    def _tell(self, name: str, failure: Exception) -> None:
        kind = type(failure).__name__
        told = self._told.setdefault(name, set())
        level = logging.DEBUG if kind in told else logging.WARNING
        told.add(kind)
        if isinstance(failure, StoreError):
            log.log(level, "Failed %s: %s", name, failure)
        else:
            log.log(level, "Failed %s", name, exc_info=failure)


class Housekeeping(KeyListener):
    """The background work of one engine."""

    def __init__(
        self,
        keyspace: Keyspace,
        stats: Stats,
        sampler: Sampler,
        notifications: Notifications,
        watching: Watching,
        tracked: TrackedKeys,
        expiry: Expiry,
        memory_limit: MemoryLimit,
        commit: Callable[[], None],
        chores: Chores,
        latency: LatencyMonitor,
        stopwatch: Callable[[], float],
        call_later: CallLater,
        announcing: Announcing | None,
        drop_mail: Callable[[], bool],
        sharding: Sharding,
    ) -> None:
        """`drop_mail` makes a durable mailbox that fills the store drop some of its oldest messages; it returns False
        if none does."""
        self._drop_mail = drop_mail
        self._keyspace = keyspace
        self._stats = stats
        self._sampler = sampler
        self._notifications = notifications
        self._watching = watching
        self._tracked = tracked
        self._expiry = expiry
        self._chores = chores
        self._latency = latency
        self._pace = Pace(self._work, stopwatch, call_later)
        self._first = 0  # which chore begins the next slice
        self._memory_limit = memory_limit
        self._commit = commit
        self._announcing = announcing
        self._sharding = sharding
        self.failure: StoreError | None = None  # of the last step
        self._stages_swept_at = 0.0
        keyspace.news.tell(self)

    # -- what happens to keys

    def expired(self, database: int, name: bytes) -> None:
        self._stats.expired_keys += 1
        self._notifications.tell("x", b"expired", database, name)
        self._watching.expired(database, name)
        self._tracked.changed(name, None)
        if self._announcing is not None and self._announcing.trackers:
            self._announcing.note(name)

    def added(self, database: int, name: bytes) -> None:
        self._notifications.tell("n", b"new", database, name)
        if self._sharding.moving:
            self._sharding.note(name)

    def appended(self, database: int, name: bytes) -> None:
        self._notifications.tell("t", b"xadd", database, name)

    def trimmed(self, database: int, name: bytes) -> None:
        self._notifications.tell("t", b"xtrim", database, name)

    def modified(self, database: int, name: bytes) -> None:
        if self._watching.watchers:
            self._watching.changed(database, name)
        tracked = self._tracked
        if tracked.readers or tracked.listeners:
            tracked.changed(name, tracked.executing)
        if self._announcing is not None and self._announcing.trackers:
            self._announcing.note(name)
        if self._sharding.moving:
            self._sharding.note(name)

    # -- background work

    def step(self, now: float) -> None:
        """Expire and sweep a little, and do what else must happen ten times a second."""
        keyspace = self._keyspace
        if self._sampler.paused:
            return
        keyspace.times.note(now)
        self._tracked.limit()
        self.failure = None
        self._pace.go()
        if self._expiry.is_on and not keyspace.times.may_expire and keyspace.stored.expiring_here:
            self._try(lambda: expire_here(keyspace.stored, LOOKS_PER_STEP))
        if not self._stages_swept_at <= now < self._stages_swept_at + STAGES_SECONDS:
            self._stages_swept_at = now
            self._try(lambda: self._sweep_stages(keyspace))
        self._try(lambda: self._tracked.elsewhere.look(keyspace, perf_counter() + LOOK_MS / 1000))
        if keyspace.environment.room.full is not None:
            self._try(lambda: keyspace.environment.room.is_free(keyspace.reading()))
            self._commit()

    def _try(self, work: Callable[[], object]) -> None:
        """Do one part; if it fails, the others still run. What others keep it from writing comes with a later step."""
        try:
            work()
            self._commit()
        except StoreHeld:
            self._commit()  # nothing was done since the last one, so there is nothing to undo, and nothing to refuse
        except StoreError as failure:
            self._keyspace.fail(failure)
            self.failure = failure
            self._commit()

    def make_room(self) -> StoreError | None:
        """Make room in a full store: remove what has expired, sweep up garbage and then, at a quota, evict keys as
        `maxmemory-policy` says, and hold mailboxes to what there is. Returns why the store is still full; None if it is
        not, or if that cannot be known. Called within a turn."""
        keyspace = self._keyspace
        room = keyspace.environment.room
        deadline = thread_time() + ROOM_MS / 1000  # time without a processor is not work
        try:
            while keyspace.turn.failure is None and not room.is_free(keyspace.settle()):
                if thread_time() > deadline:
                    return room.full
                if self._expiry.some(KEYS_PER_STEP) or sweep_some(keyspace.parts, RECORDS_PER_STEP):
                    continue
                if isinstance(room.full, DiskFull):
                    return room.full
                excess_bytes = data_bytes(keyspace.settle()) - room.quota_bytes
                if not self._memory_limit.evicts_some(excess_bytes) and not self._drop_mail():
                    return room.full
        except StoreHeld:
            return None  # the command meets it again, and waits
        except Exception as failure:  # lmdb's own, too: what the turn has changed so far does not fit
            keyspace.fail(failure)  # the command meets it again, and says so
        return None

    def _work(self, seconds: float) -> int | None:
        """Expire and sweep for so many seconds; return for how many ms what is left has been overdue, None if nothing
        is left."""
        if self._sampler.paused:
            return None
        left: list[int] = []
        began = perf_counter()
        self._chores.do("to look after keys", lambda: self._slice(thread_time() + seconds, left))
        self._latency.note(b"expire-cycle", int((perf_counter() - began) * 1000))
        return max(left, default=None)

    def _slice(self, deadline: float, left: list[int]) -> None:
        """Put into `left` for how many ms what each chore leaves has been overdue."""
        expiry = self._expiry
        chores: list[tuple[Callable[[int], int], int, bool]] = [
            (partial(sweep_some, self._keyspace.parts), RECORDS_PER_STEP, False)
        ]
        if expiry.may_remove:
            chores += [(expiry.keys, KEYS_PER_STEP, True), (expiry.fields, KEYS_PER_STEP, True)]
        self._first += 1
        for turn in range(len(chores)):
            work, limit, expires = chores[(self._first + turn) % len(chores)]
            self._try(partial(self._go_on, work, limit, deadline, expires, left))
        if self._memory_limit.bytes:
            self._try(partial(self._evict, max(deadline - thread_time(), LEAST_EVICTING_S), left))

    def _evict(self, seconds: float, left: list[int]) -> None:
        limit = self._memory_limit
        if limit.makes_room(seconds) and limit.exceeded_since is not None:
            left.append(0)

    def _sweep_stages(self, keyspace: Keyspace) -> None:
        """Sweep staged entries that are committed or given up, even if nobody stages anything more."""
        if stages.exist(keyspace.settle()):
            now_ms = keyspace.clock_ms()
            stages.sweep(keyspace.writing(), now_ms - stages.KEPT_MS, now_ms, STAGES_PER_STEP)

    def _go_on(
        self, work: Callable[[int], int], limit: int, deadline: float, expires: bool, left: list[int]
    ) -> None:
        """Work until the deadline, in time of the processor: while others have it, nothing is done."""
        for step in count(1):
            if work(limit) < limit:
                return
            if thread_time() > deadline:
                break
            if step % STEPS_PER_COMMIT == 0:
                self._commit()
        left.append(self._expiry.overdue_ms() if expires else 0)
