"""`maxmemory`: how much may be kept, and what happens at the limit.

The limit counts what the store's live pages hold: keys, topics, groups, unread messages of durable subscribers. That
data is on disk, so the limit applies to the store, not to a process's memory. It is checked before each command, and
ten times a second: at the limit keys are evicted, as `maxmemory-policy` says, until there is room; if nothing may be
evicted, commands that may add to the store are refused.

Law 11: without a limit none of this is called.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

from rlite_pubsub.engine.eviction.usage import Lately, Often, Usage
from rlite_pubsub.engine.key_places import keys_of
from rlite_pubsub.keyspace.databases import Databases
from rlite_pubsub.keyspace.sweeping import sweep_some
from rlite_pubsub.storage.commons import replica_stream
from rlite_pubsub.storage.errors import StoreHeld
from rlite_pubsub.storage.keys import key_records
from rlite_pubsub.storage.room import EMPTY_BYTES, data_bytes

if TYPE_CHECKING:
    from rlite_pubsub.engine.counters import Stats
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.engine.table import Command
    from rlite_pubsub.engine.tracking.notifications import Notifications
    from rlite_pubsub.keyspace.keyspace import Keyspace

_SETTINGS = "maxmemory", "maxmemory-policy", "maxmemory-samples", "lfu-log-factor", "lfu-decay-time"
_STEP_MS = 25
"""How long a command may wait for evictions; they go on with the next one."""
_SWEPT_AT_ONCE = 200
_ONLY_LOOKING = frozenset(
    (b"object", b"type", b"ttl", b"pttl", b"expiretime", b"pexpiretime", b"exists", b"debug", b"memory", b"dump")
)
"""Commands that name keys without using them."""
_REMEMBERED = 16
"""How many runners-up are remembered."""
_MOST_GARBAGE = 100
"""Keys of flushed databases that are passed by, until they are swept up."""

Key = tuple[int, bytes]


class MemoryLimit:
    """Keeps a store within `maxmemory`."""

    def __init__(
        self,
        settings: Settings,
        keyspace: Keyspace,
        stats: Stats,
        notifications: Notifications,
        clock: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        """`changed` is called after each change of the settings."""
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
        """How keys are used, if the policy needs to know."""
        self.exceeded_since: float | None = None
        """Since when evictions have not been enough."""
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
        """True if it has to see each command."""
        return bool(self.bytes) or self.usage is not None

    @property
    def shares_integers(self) -> bool:
        """True where Redis keeps each small integer once for all keys: not where it notes how each key is used."""
        return not self.bytes or self.usage is None

    def used(self, session: CommandSession, command: Command, args: list[bytes]) -> None:
        """Note that a command was called."""
        usage = self.usage
        if usage is None or session.no_touch or command.name.partition(b"|")[0] in _ONLY_LOOKING:
            return
        now = self._clock()
        for key, _ in keys_of(command, args) or ():
            usage.used(session.db, key, now)

    def makes_room(self) -> bool:
        """Evict until there is room, as long as that may take; return whether there is room, or will be. Within a
        turn."""
        keyspace = self._keyspace
        if not self.bytes or not keyspace.times.may_expire:  # a master says what goes, and nothing does during a pause
            return True
        try:
            if keyspace.turn.failure is not None or self._is_within():
                self._count_excess(None)
                return True
            if self._policy != b"noeviction" and not keyspace.turn.writes:
                keyspace.writing()  # what is picked from here on no other process can evict first
                if self._is_within():
                    self._count_excess(None)
                    return True
            began = perf_counter()
            while self._evict_one() or (self._is_enough_for_any and sweep_some(keyspace.parts, _SWEPT_AT_ONCE)):
                if self._is_within():
                    self._count_excess(None)
                    return True
                if perf_counter() - began > _STEP_MS / 1000:
                    self._count_excess(self._clock())
                    return True
        except StoreHeld:
            return True  # the command meets it again, and waits
        except Exception as failure:  # lmdb's own, too: what the turn has changed so far does not fit
            keyspace.fail(failure)  # the command meets it again, and says so
            return True
        self._count_excess(self._clock())
        return False

    @property
    def exceeded_s(self) -> float:
        """For how many seconds the limit has been exceeded."""
        return max(0.0, self._clock() - self.exceeded_since) if self.exceeded_since is not None else 0.0

    @property
    def _is_enough_for_any(self) -> bool:
        """True if an empty store is within the limit: if not, sweeping up flushed keys is no use."""
        return self.bytes >= EMPTY_BYTES

    def _is_within(self) -> bool:
        txn = self._keyspace.settle()
        taken = data_bytes(txn)
        if self._keyspace.stored.effects is not None:  # what replicas have yet to hear belongs to no key
            taken -= replica_stream.room(txn)
        return taken <= self.bytes

    def _evict_one(self) -> bool:
        key = self._next()
        if key is None:
            return False
        database, name = key
        if self._keyspace.delete(database, name):  # if not, its time was over, and it has gone with that
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


class Victims:
    """Picks the next key of a keyspace to evict, as `maxmemory-policy` says.

    By time to live, that is exactly the next to expire. By use, it is the least valuable of a random sample and of the
    runners-up of earlier samples: Redis's approximation, with its `maxmemory-samples`. Only stored keys are looked at:
    ephemeral topics have a limit of their own.
    """

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self._databases = Databases([keyspace.stored])
        self._nearly: list[tuple[int, Key]] = []  # (worth, key), the least valuable first

    def soonest(self) -> Key | None:
        """Return the next key to expire."""
        return self._expiring_from(0, b"")

    def any(self, *, expiring: bool) -> Key | None:
        """Return a random key, or a random one that expires."""
        if expiring:
            return self._any_expiring()
        sizes = {database: size for database, (size, _) in self._databases.sizes().items()}
        if not sizes:
            return None
        (database,) = random.choices(list(sizes), weights=list(sizes.values()))
        name, _ = self._databases.random(database)
        return self.soonest() if name is None else (database, name)  # the time of all of them is over

    def least_used(self, usage: Usage, samples: int, now: float, *, expiring: bool) -> Key | None:
        """Return the least used key of a sample, or of a sample of those that expire."""
        worths = {key: usage.worth(*key, now) for _, key in self._nearly if self._is_there(key, expiring)}
        for _ in range(samples):
            key = self.any(expiring=expiring)
            if key is not None:
                worths[key] = usage.worth(*key, now)
        self._nearly = sorted((worth, key) for key, worth in worths.items())[:_REMEMBERED]
        return self._nearly.pop(0)[1] if self._nearly else None

    def forget(self) -> None:
        """Forget the runners-up: another policy picks from now on."""
        self._nearly.clear()

    def _is_there(self, key: Key, expiring: bool) -> bool:
        record = self._keyspace.find(*key)
        return record is not None and (not expiring or bool(record.expires_ms))

    def _any_expiring(self) -> Key | None:
        bounds = key_records.expiry_range(self._keyspace.settle())
        if bounds is None:
            return None
        place = random.randbytes(4 + key_records.DIGEST_BYTES)
        return self._expiring_from(random.randint(*bounds), place) or self._expiring_from(0, b"")

    def _expiring_from(self, when_ms: int, place: bytes) -> Key | None:
        txn = self._keyspace.settle()
        spaces = {space.number: database for database, space in self._keyspace.stored.spaces().items()}
        for passed, (_, found) in enumerate(key_records.expiring_from(txn, when_ms, place)):
            database = spaces.get(key_records.space_of(found))
            stored = key_records.get(txn, found) if database is not None else None
            if database is not None and stored is not None:
                return database, stored.name
            if passed == _MOST_GARBAGE:
                break
        return None
