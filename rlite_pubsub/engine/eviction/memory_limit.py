"""`maxmemory`: how much may be kept, and what happens at the limit.

What counts is what the store's live pages hold: keys, topics, groups, what durable subscribers have not read. It is on
disk, and so is this limit about the store; the memory of a process is not what its keys take. It is looked at before
each command, and ten times a second: at the limit keys are evicted, as `maxmemory-policy` says, until there is room;
where nothing may be evicted, commands that may add to the store are refused.

Law 11: where there is no limit nobody comes here.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

from rlite_pubsub.engine.eviction.usage import Lately, Often, Usage
from rlite_pubsub.engine.eviction.victims import Key, Victims
from rlite_pubsub.engine.key_places import keys_of
from rlite_pubsub.keyspace.sweeping import sweep_some
from rlite_pubsub.storage.errors import StoreError, StoreHeld
from rlite_pubsub.storage.room import data_bytes

if TYPE_CHECKING:
    from rlite_pubsub.engine.counters import Stats
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.engine.table import Command
    from rlite_pubsub.engine.tracking.notifications import Notifications
    from rlite_pubsub.keyspace.keyspace import Keyspace

_SETTINGS = "maxmemory", "maxmemory-policy", "maxmemory-samples", "lfu-log-factor", "lfu-decay-time"
_STEP_MS = 25
"""So long a command may wait for evictions; they go on with the next one."""
_SWEPT_AT_ONCE = 200
_ONLY_LOOKING = frozenset(
    (b"object", b"type", b"ttl", b"pttl", b"expiretime", b"pexpiretime", b"exists", b"debug", b"memory", b"dump")
)
"""They do not use the keys that they name."""


class MemoryLimit:
    """Of one engine."""

    def __init__(
        self,
        settings: Settings,
        keyspace: Keyspace,
        stats: Stats,
        notifications: Notifications,
        clock: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        """`changed` is called behind each change of the settings."""
        self._settings = settings
        self._keyspace = keyspace
        self._stats = stats
        self._notifications = notifications
        self._clock = clock
        self._victims = Victims(keyspace)
        self._changed = changed
        self._policy = b""
        self.bytes = 0
        """0: there is no limit."""
        self.usage: Usage | None = None
        """What is known of how keys are used, where the policy asks for it."""
        self.exceeded_since: float | None = None
        """Since when nothing has helped, or not yet."""
        self._obey()
        for name in _SETTINGS:
            settings.on_change(name, lambda _: self._follow())

    def _follow(self) -> None:
        self._obey()
        self._changed()

    def _obey(self) -> None:
        settings = self._settings
        self.bytes = settings["maxmemory"]
        policy = settings.text("maxmemory-policy")
        if policy != self._policy:
            self._policy = policy
            self._victims.forget()
        factor, minutes = settings["lfu-log-factor"], settings["lfu-decay-time"]
        if policy.endswith(b"lfu"):
            if isinstance(self.usage, Often):
                self.usage.log_factor, self.usage.decay_minutes = factor, minutes
            else:
                self.usage = Often(factor, minutes)
        elif self.bytes and policy.endswith(b"lru"):
            if not isinstance(self.usage, Lately):
                self.usage = Lately(self._clock())
        else:
            self.usage = None
        if not self.bytes:
            self._count_excess(None)

    @property
    def is_watching(self) -> bool:
        """Whether it has to see each command."""
        return bool(self.bytes) or self.usage is not None

    def used(self, session: CommandSession, command: Command, args: list[bytes]) -> None:
        """A command was called."""
        usage = self.usage
        if usage is None or session.no_touch or command.name.partition(b"|")[0] in _ONLY_LOOKING:
            return
        now = self._clock()
        for key, _ in keys_of(command, args) or ():
            usage.used(session.db, key, now)

    def makes_room(self) -> bool:
        """Whether there is room, or will be: as much as is needed is evicted, as long as that may take. Within a
        turn."""
        if not self.bytes:
            return True
        keyspace = self._keyspace
        try:
            if keyspace.turn.failure is not None or self._is_within():
                self._count_excess(None)
                return True
            began = perf_counter()
            while self._evict_one() or sweep_some(keyspace.parts, _SWEPT_AT_ONCE):
                if self._is_within():
                    self._count_excess(None)
                    return True
                if perf_counter() - began > _STEP_MS / 1000:
                    self._count_excess(self._clock())
                    return True
        except StoreHeld:
            return True  # the command meets it again, and waits
        except StoreError as failure:
            keyspace.fail(failure)
            return True
        self._count_excess(self._clock())
        return False

    @property
    def exceeded_s(self) -> float:
        """For how long it has been exceeded now."""
        return max(0.0, self._clock() - self.exceeded_since) if self.exceeded_since is not None else 0.0

    def _is_within(self) -> bool:
        return data_bytes(self._keyspace.settle()) <= self.bytes

    def _evict_one(self) -> bool:
        key = self._next()
        if key is None or not self._keyspace.delete(*key):
            return False
        database, name = key
        self._stats.evicted_keys += 1
        self._notifications.tell("e", b"evicted", database, name)
        sweep_some(self._keyspace.parts, _SWEPT_AT_ONCE)
        return True

    def _next(self) -> Key | None:
        policy = self._policy
        expiring = policy.startswith(b"volatile")
        if policy == b"noeviction":
            return None
        if policy == b"volatile-ttl":
            return self._victims.soonest()
        if self.usage is None:
            return self._victims.any(expiring=expiring)
        samples = self._settings["maxmemory-samples"]
        return self._victims.least_used(self.usage, samples, self._clock(), expiring=expiring)

    def _count_excess(self, since: float | None) -> None:
        if since is None and self.exceeded_since is not None:
            self._stats.eviction_exceeded_s += self.exceeded_s
            self.exceeded_since = None
        elif self.exceeded_since is None:
            self.exceeded_since = since
