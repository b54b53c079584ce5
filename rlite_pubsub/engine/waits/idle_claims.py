"""Looking for pending entries that have become idle for long enough: no event announces them, only time passes.

One timer serves all sessions of an engine that wait in XREADGROUP with CLAIM. A session that has been served meanwhile
is skipped.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.engine.waits.alarm import Alarm
from rlite_pubsub.groups.group import group_of
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.waits.alarm import CallLater
    from rlite_pubsub.engine.waits.waiter import Blocked
    from rlite_pubsub.keyspace.keyspace import Keyspace

_LEAST_MS, _MOST_MS = 20, 3_600_000
"""How long to wait at least, and at most, before another look."""
_MANY_OVER = 64


class _Look(NamedTuple):
    """One session's next look."""

    at: float
    serial: int
    session: Client
    waiter: Blocked
    keys: list[bytes]
    group: bytes
    idle_ms: int

    @property
    def is_over(self) -> bool:
        return self.session.blocked is not self.waiter


class IdleClaims:
    """The idle claims of one engine."""

    def __init__(self, keyspace: Keyspace, stopwatch: Callable[[], float], call_later: CallLater) -> None:
        self._keyspace = keyspace
        self._stopwatch = stopwatch
        self._looks: list[_Look] = []  # a heap
        self._kept = 0  # its length when finished looks were last removed
        self._serials = itertools.count(1)
        self._alarm = Alarm(stopwatch, call_later, self._ring)

    def add(self, session: Client, keys: list[bytes], group: bytes, idle_ms: int) -> None:
        """Serve this blocked session as soon as an entry has been idle for this long."""
        assert session.blocked is not None
        if len(self._looks) > 2 * self._kept + _MANY_OVER:
            self._looks = [look for look in self._looks if not look.is_over]
            heapq.heapify(self._looks)
            self._kept = len(self._looks)
        at = self._stopwatch() + self._in_ms(session.db, keys, group, idle_ms) / 1000
        heapq.heappush(self._looks, _Look(at, next(self._serials), session, session.blocked, keys, group, idle_ms))
        self._alarm.set(at)

    def _in_ms(self, database: int, keys: list[bytes], name: bytes, idle_ms: int) -> int:
        """Return the earliest time at which one of the groups has an entry idle for this long."""
        keyspace = self._keyspace
        in_ms = min(idle_ms, _MOST_MS)
        for key in keys:
            try:
                record = keyspace.find(database, key)
                group = group_of(record, name) if isinstance(record, Topic) else None
                if group is not None and group.pending_count:
                    in_ms = min(in_ms, group.oldest_ms() + idle_ms - keyspace.clock_ms())
            except StoreError:  # serving the session reports it
                break
        return max(in_ms, _LEAST_MS)

    def _ring(self) -> None:
        due = []
        while self._looks and (self._looks[0].is_over or self._looks[0].at <= self._stopwatch()):
            due.append(heapq.heappop(self._looks))
        for _, _, session, waiter, keys, group, idle_ms in due:
            if session.blocked is waiter:
                self._keyspace.news.show((session.db, key) for key in keys)
                self.add(session, keys, group, idle_ms)
        if self._looks:
            self._alarm.set(self._looks[0].at)
