"""Retention in one engine: the rules of `retain`, the channels they retain, and the trimming.

The rules belong to the store. If this engine's settings have rules, they become the store's; if not, and whenever
another process changes them, the settings follow the store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter, thread_time
from typing import TYPE_CHECKING

from rlite_pubsub.engine.pace import Pace
from rlite_pubsub.engine.refusal import unwritten
from rlite_pubsub.engine.settings.settings import SettingError
from rlite_pubsub.groups import punctuality
from rlite_pubsub.keyspace.topic.cold_shelf import ColdMiss
from rlite_pubsub.keyspace.topic.retained import DATABASE, Retained
from rlite_pubsub.keyspace.topic.rules import Rules
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.storage.errors import StoreError, StoreHeld
from rlite_pubsub.storage.topics import topic_settings
from rlite_pubsub.storage.topics.topic_settings import Rule

if TYPE_CHECKING:
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.engine.tracking.notifications import Notifications
    from rlite_pubsub.engine.waits.alarm import CallLater
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.keyspace.part import Part
    from rlite_pubsub.pubsub.hub import Hub


# -- Work that is due (groups/punctuality.py): done ten times a second, and in between right on time if the time is
# known. Any number of processes may do so.

log = logging.getLogger("rlite_pubsub")

STEP_MS = 3
"""After this long the work is committed, and others have their turns."""
KEPT_S = 1.0
"""What was fetched from the cold store is looked at again by then."""
AHEAD_MS = 1500
"""Work due this soon gets a timer: a process without a loop of its own looks about once a second."""


class Alarm:
    """Does what is due in an engine's topics, and sets a timer for the next time."""

    def __init__(self, keyspace: Keyspace, call_later: CallLater) -> None:
        self._keyspace = keyspace
        self._call_later = call_later
        self._set_for_ms: int | None = None  # when the timer goes off
        self._has_failed = False
        self._fetched: list[tuple[float, Callable[[], None]]] = []  # how long it is kept, and how that ends
        keyspace.news.call_at_deadlines(self._set)

    def cron(self) -> None:
        """Do what is due, to be committed with the turn, and set a timer for the rest."""
        keyspace = self._keyspace
        if keyspace.turn.failure is not None or not keyspace.times.may_expire:
            return
        try:
            next_ms = self._work()
        except StoreHeld:
            return  # another process is writing: it is done with the next run
        except Exception as failure:
            level = logging.DEBUG if self._has_failed else logging.WARNING
            log.log(level, "Can't do work that is due on topics: %s", keyspace.fail(failure))
            self._has_failed = True
            return
        self._has_failed = False
        if next_ms is not None:
            self._set(next_ms)

    def _work(self) -> int | None:
        """Do what is due, for a while; return when something is due next."""
        deadline = perf_counter() + STEP_MS / 1000
        parts = self._keyspace.parts
        while any([self._step(part) for part in parts]):
            if perf_counter() > deadline:
                break
        while self._fetched and self._fetched[0][0] < perf_counter():
            self._fetched.pop(0)[1]()
        return min([due_ms for part in parts if (due_ms := punctuality.next_ms(part)) is not None], default=None)

    def _step(self, part: Part) -> bool:
        try:
            return punctuality.step(part)
        except ColdMiss as miss:
            self._fetched.append((perf_counter() + KEPT_S, miss.shelf.fetch(miss, _nothing)))
            return True

    def _set(self, at_ms: int) -> None:
        now_ms = self._keyspace.clock_ms()
        if self._set_for_ms is not None and now_ms <= self._set_for_ms <= at_ms:
            return
        if at_ms - now_ms <= AHEAD_MS:
            self._set_for_ms = max(at_ms, now_ms + STEP_MS)  # a late part rests as long as it has worked
            self._call_later((self._set_for_ms - now_ms) / 1000, self._go_off)

    def _go_off(self) -> None:
        self._set_for_ms = None
        self.cron()


def _nothing() -> None:
    """Do nothing: the next look comes soon, whether the block is here by then or not."""


class Keeping:
    """Applies the rules of `retain` for one engine."""

    def __init__(
        self,
        settings: Settings,
        keyspace: Keyspace,
        rules: Rules,
        hub: Hub,
        notifications: Notifications,
        stopwatch: Callable[[], float],
        call_later: CallLater,
    ) -> None:
        """Raises StoreError if the rules cannot be read. If they cannot be written, `cron` tries again."""
        self._settings = settings
        self._keyspace = keyspace
        self._hub = hub
        self._notifications = notifications
        self.rules = rules
        self.retained = Retained(keyspace)
        assert keyspace.stored.retention is not None
        self.retention = keyspace.stored.retention
        self.alarm = Alarm(keyspace, call_later)
        self._pace = Pace(self._trim, stopwatch, call_later)
        self._has_failed = False
        self._owes = False
        self._owed: tuple[Rule, ...] | None = settings["retain"]  # what the store should have
        self._known = rules.all
        hub.retain_by(self.retain, self._follow)
        self._pay()
        hub.look_at_rules()
        settings.on_change("retain", self._change)

    def _pay(self) -> None:
        """Write the settings' rules to the store."""
        owed, self._owed = self._owed, None
        self.rules.refresh()
        if owed is None or owed == self.rules.all:
            return
        try:
            self.rules.put(owed)
        except StoreError as failure:
            level = logging.DEBUG if self._owes else logging.WARNING
            log.log(level, "The rules of retention are not in effect, because the store can't take them: %s", failure)
            self._owed, self._owes = owed, True

    def _change(self, said: tuple[Rule, ...] | None) -> None:
        """Obey CONFIG SET retain. The rules apply once it is answered."""
        self._owed = None
        try:
            self.rules.put(said or ())
            self._hub.look_at_rules()
        except StoreError as failure:
            raise SettingError(str(failure)) from failure

    def _follow(self) -> None:
        self._known = self.rules.all
        if self._owed is None and (self.rules.all or self._settings["retain"]):
            self._settings.adopt("retain", self.rules.all)

    def retain(self, name: bytes, tails: list[bytes]) -> None:
        """Turn messages into entries. Raises CommandError if that fails: then none of them is one."""
        notifications = self._notifications
        try:
            are_kept = self.retained.append(name, tails)
        except (CommandError, StoreHeld):
            raise
        except Exception as failure:
            told = self._keyspace.fail(failure)
            if isinstance(told, StoreError):
                raise CommandError(unwritten(told)) from failure
            raise
        if are_kept and notifications.wants("t"):
            for _ in tails:
                notifications.tell("t", b"xadd", DATABASE, name)

    # -- trimming

    def cron(self) -> None:
        """Trim ten times a second, and in between as long as there is more to do: see pace.py."""
        if self._owed is not None:
            self._pay()
        self.alarm.cron()
        self._pace.go()

    def _trim(self, seconds: float) -> int | None:
        """Trim for so many seconds of the processor; return for how many ms what is left has been due, None if nothing
        is left."""
        keyspace = self._keyspace
        if keyspace.turn.failure is not None or not keyspace.times.may_expire:
            return None
        deadline = thread_time() + seconds
        overdue_ms: int | None = None
        try:
            while any([part.retention.step() for part in keyspace.parts if part.retention is not None]):
                if thread_time() > deadline:
                    overdue_ms = self._overdue_ms()
                    break
            if self.rules.all is not self._known:  # the process that changed them died before it announced that
                self._hub.look_at_rules()
        except StoreHeld:
            return None  # another process is writing: it is done with the next run
        except Exception as failure:
            log.log(logging.DEBUG if self._has_failed else logging.WARNING, "Can't trim: %s", keyspace.fail(failure))
            self._has_failed = True
            return None
        self._has_failed = False
        return overdue_ms

    def _overdue_ms(self) -> int:
        now_ms = self._keyspace.clock_ms()
        due = [topic_settings.first_due(part.settle()) for part in self._keyspace.parts]
        return max([0, *[now_ms - first[0] for first in due if first is not None]])
