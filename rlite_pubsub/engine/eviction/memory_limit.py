"""`maxmemory`: how much may be kept, and what happens at the limit.

The limit counts what the store's live pages hold: keys, topics, groups, unread messages of durable subscribers. That
data is on disk, so the limit applies to the store, not to a process's memory. It is checked before each command that
may add, and in the background; a look at what the store holds is good for as much as is left, or for a small part of
the limit, as long as commands add no more than their arguments. At the limit what has expired goes first, then what is
garbage, then keys are evicted, as `maxmemory-policy` says, until there is room: several at a time, as many as probably
take what is too much. If nothing may be evicted, commands that may add to the store are refused. At the quota of a
store keys are evicted alike (housekeeping.py).

Law 11: without a limit none of this is called.
"""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.eviction.usage import Key, Lately, Often, Usage
from rlite_pubsub.engine.eviction.victims import Victims
from rlite_pubsub.engine.key_places import keys_of
from rlite_pubsub.keyspace.sweeping import sweep_some
from rlite_pubsub.storage.commons import replica_stream
from rlite_pubsub.storage.errors import StoreHeld
from rlite_pubsub.storage.room import EMPTY_BYTES, data_bytes
from rlite_pubsub.storage.store import UNLIMITED_QUOTA_BYTES

if TYPE_CHECKING:
    from rlite_pubsub.engine.counters import Stats
    from rlite_pubsub.engine.expiry import Expiry
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.engine.table import Command
    from rlite_pubsub.engine.tracking.notifications import Notifications
    from rlite_pubsub.keyspace.keyspace import Keyspace

_SETTINGS: Final = "maxmemory", "maxmemory-policy", "maxmemory-samples", "lfu-log-factor", "lfu-decay-time"
STEP_S: Final = 0.002
"""How long a command may wait for evictions; they go on with the next one, and in the background."""
NO_EVICTION: Final = b"noeviction"
_EXPIRED_AT_ONCE: Final = 50
_SWEPT_AT_ONCE: Final = 200
_EVICTED_AT_ONCE: Final = 64
"""How many keys are picked from one sample, at most."""
_UNNOTICED: Final = 512
"""This part of what there is may go beyond what must, so that there is no sample for each key; and commands may add as
much before the next look."""
_MOST_UNSEEN_BYTES: Final = 1 << 20
"""What commands may add before the next look, however much is left."""
_ROW_BYTES: Final = 128
"""What a key, a field or an element takes beside its arguments, at most."""
_ADDS_ITS_ARGUMENTS: Final = frozenset((b"set", b"setex", b"psetex", b"mset", b"msetnx"))
"""Commands that add no more than that, beside those with the flag "fast"."""
_ONLY_LOOKING: Final = frozenset(
    (b"object", b"type", b"ttl", b"pttl", b"expiretime", b"pexpiretime", b"exists", b"debug", b"memory", b"dump")
)
"""Commands that name keys without using them."""


class MemoryLimit:
    """Keeps a store within `maxmemory`."""

    def __init__(
        self,
        settings: Settings,
        keyspace: Keyspace,
        stats: Stats,
        notifications: Notifications,
        expiry: Expiry,
        clock: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        """`changed` is called after each change of the settings."""
        self._settings = settings
        self._keyspace = keyspace
        self._stats = stats
        self._notifications = notifications
        self._expiry = expiry
        self._clock = clock
        self._victims = Victims(keyspace)
        self._changed = changed
        self._policy = b""
        self._unseen_bytes = 0  # that commands may add before the next look
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
        self._unseen_bytes = 0
        policy: bytes = settings.text("maxmemory-policy")
        if policy != self._policy:
            self._policy = policy
            self._victims.forget()
        factor, minutes = settings["lfu-log-factor"], settings["lfu-decay-time"]
        if policy.endswith(b"lfu"):
            if isinstance(self.usage, Often):
                self.usage.log_factor, self.usage.decay_minutes = factor, minutes
            else:
                self.usage = Often(factor, minutes)
        elif policy.endswith(b"lru") and (self.bytes or self._has_quota):
            if not isinstance(self.usage, Lately):
                self.usage = Lately(self._clock())
        else:
            self.usage = None
        if self.bytes:
            self._keyspace.environment.room.count()
        else:
            self._count_excess(None)

    @property
    def _has_quota(self) -> bool:
        return self._keyspace.environment.room.quota_bytes < UNLIMITED_QUOTA_BYTES

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

    def has_room(self, command: Command, args: list[bytes]) -> bool:
        """Return whether there is room for what a command may add, or will be, having made it. Within a turn."""
        if self._unseen_bytes > 0 and ("fast" in command.flags or command.name in _ADDS_ITS_ARGUMENTS):
            self._unseen_bytes -= sum([len(arg) for arg in args]) + _ROW_BYTES * (len(args) >> 1)
            if self._unseen_bytes > 0:
                return True
        return self.makes_room()

    def makes_room(self, seconds: float = STEP_S) -> bool:
        """Look how much there is, and evict until there is room, for so many seconds at most; return whether there is
        room, or will be. Within a turn."""
        keyspace = self._keyspace
        self._unseen_bytes = 0
        if not self.bytes or not keyspace.times.may_expire:  # a master says what goes, and nothing does during a pause
            return True
        try:
            if keyspace.turn.failure is not None:
                return True
            if self._policy != NO_EVICTION and not keyspace.turn.writes:
                keyspace.writing()  # what is picked from here on no other process can evict first
            deadline = 0.0
            while (excess_bytes := self._excess_bytes()) > 0:
                if not deadline:
                    deadline = thread_time() + seconds  # without a processor nothing is done
                elif thread_time() > deadline:
                    self._count_excess(self._clock())
                    return True
                if not self._removes_some(excess_bytes):
                    self._count_excess(self._clock())
                    return False
        except StoreHeld:
            return True  # the command meets it again, and waits
        except Exception as failure:  # lmdb's own, too: what the turn has changed so far does not fit
            keyspace.fail(failure)  # the command meets it again, and says so
            return True
        self._count_excess(None)
        least_bytes = self.bytes // _UNNOTICED if self._policy != NO_EVICTION else 0
        self._unseen_bytes = min(max(-excess_bytes // 4, least_bytes), _MOST_UNSEEN_BYTES)
        return True

    def evicts_some(self, excess_bytes: int) -> bool:
        """Evict some keys that probably take about so many bytes, at least one; return whether any may be evicted.
        Within a turn that writes. Raises StoreError."""
        if self._policy == NO_EVICTION or not self._keyspace.times.may_expire:
            return False
        size = sum([size for size, _ in self._keyspace.databases.sizes().values()])
        if not size:
            return False
        keyspace = self._keyspace
        taken_bytes = data_bytes(keyspace.settle())
        enough_bytes = max(excess_bytes, taken_bytes // _UNNOTICED)
        wanted = min(max(1, enough_bytes * size // taken_bytes), _EVICTED_AT_ONCE)
        only_expiring = self._policy.startswith(b"volatile")
        found = self._next(wanted)
        for database, name in found:
            record = keyspace.for_change(database, name)
            if record is None or (only_expiring and not record.expires_ms):
                continue  # its time was over, or it has got more
            keyspace.remove(record)
            self._stats.evicted_keys += 1
            self._notifications.tell("e", b"evicted", database, name)
        return bool(found)

    @property
    def exceeded_s(self) -> float:
        """For how many seconds the limit has been exceeded."""
        return max(0.0, self._clock() - self.exceeded_since) if self.exceeded_since is not None else 0.0

    @property
    def _is_enough_for_any(self) -> bool:
        """True if an empty store is within the limit: if not, sweeping up flushed keys is no use."""
        return self.bytes >= EMPTY_BYTES

    def _excess_bytes(self) -> int:
        txn = self._keyspace.settle()
        taken = data_bytes(txn)
        if self._keyspace.stored.effects is not None:  # what replicas have yet to hear belongs to no key
            taken -= replica_stream.room(txn)
        return taken - self.bytes

    def _removes_some(self, excess_bytes: int) -> bool:
        if self._is_enough_for_any:
            if self._policy != NO_EVICTION and self._expiry.some(_EXPIRED_AT_ONCE):
                return True
            if sweep_some(self._keyspace.parts, _SWEPT_AT_ONCE):
                return True
        return self.evicts_some(excess_bytes)

    def _next(self, wanted: int) -> list[Key]:
        policy = self._policy
        expiring = policy.startswith(b"volatile")
        if policy == b"volatile-ttl":
            return self._victims.soonest(wanted)
        if self.usage is None:
            return self._victims.any(wanted, expiring=expiring)
        samples = self._settings["maxmemory-samples"]
        return self._victims.least_used(self.usage, samples, wanted, self._clock(), expiring=expiring)

    def _count_excess(self, since: float | None) -> None:
        if since is None:
            if self.exceeded_since is not None:
                self._stats.eviction_exceeded_s += self.exceeded_s
                self.exceeded_since = None
        elif self.exceeded_since is None:
            self.exceeded_since = since
