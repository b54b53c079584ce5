"""The durable subscribers that receive a message: read from data.mdb, and again whenever it has changed.

To a publisher they are one more kind of neighbour, attached to a session or away alike. A change of theirs also moves
the routes version of live.mdb, so that publishers have one number to watch.
"""

from __future__ import annotations

from rlite_pubsub.pubsub.kinds import CHANNELS, Kind
from rlite_pubsub.pubsub.patterns import PatternIndex
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.mail import forms
from rlite_pubsub.storage.names import durables, receivers, subscriptions
from rlite_pubsub.storage.names.durables import Durable
from rlite_pubsub.storage.names.receivers import Receiver
from rlite_pubsub.storage.names.version import routes_version
from rlite_pubsub.storage.store import Store

Addressee = tuple[int, bytes]
"""A durable subscriber, and the packed forms in which it receives a message."""


class DurableRoutes:
    """This process's knowledge of durable subscribers.

    What stands in the middle of a transaction or a script (a message, the event of a key, PUBSUB) is looked up in the
    turn's own transaction: what is one to others must not be committed by halves.
    """

    def __init__(self, store: Store) -> None:
        self._data = store.data
        self.version = -1  # of data.mdb, at the last look
        self.any = False  # whether any holds a name
        self.limited: dict[int, Durable] = {}  # those with limits, by id
        self.known = 0  # how many there are
        self._patterns = PatternIndex()
        self._pattern_holders: dict[bytes, list[int]] = {}

    def refresh(self) -> None:
        """See who is there. Raises StoreError."""
        found = self._data.read(self._read)
        if found is None:
            return
        self.version, self.any, self.limited, self.known, patterns = found
        self._patterns = PatternIndex()
        self._pattern_holders = {}
        for pattern, durable, _ in patterns:
            if pattern not in self._pattern_holders:
                self._patterns.add(pattern)
                self._pattern_holders[pattern] = []
            self._pattern_holders[pattern].append(durable)

    def saw_own(self, before: int, after: int, durable: Durable | None = None, added: int = 0) -> None:
        """A transaction of ours has moved the version from `before` to `after`, and changed no pattern: the limits of
        this one may be others, and so many were added. Nothing else need be looked up, unless others changed something,
        too."""
        if self.version != before:
            return
        self.version = after
        self.known += added
        if durable is not None:
            if durable.is_limited and added >= 0:
                self.limited[durable.id] = durable
            else:
                self.limited.pop(durable.id, None)

    def saw_own_names(self, before: int, after: int, any: bool) -> None:
        """Like `saw_own`, of names that are no patterns. `any`: whether any durable subscriber holds one now."""
        if self.version == before:
            self.version, self.any = after, any

    @property
    def has_patterns(self) -> bool:
        """True if any holds a pattern."""
        return bool(self._pattern_holders)

    def receivers(self, kind: Kind, name: bytes) -> tuple[Addressee, ...]:
        """Return the receivers of a message to this name. Raises StoreError."""
        return self._data.read_along(lambda txn: self.receivers_in(txn, kind, name)) if self.any else ()

    def receivers_in(self, txn: Txn, kind: Kind, name: bytes) -> tuple[Addressee, ...]:
        """Like `receivers`, in an open transaction: by its state, except for patterns that have just come."""
        found: dict[int, list[bytes | None]] = {}
        for durable, _ in receivers.subscribers(txn, receivers.DATABASES[kind.database], name):
            found[durable] = [None]
        if kind is CHANNELS and len(self._patterns):
            for pattern in self._patterns.matching(name):
                for durable in self._pattern_holders[pattern]:
                    found.setdefault(durable, []).append(pattern)
        return tuple((durable, forms.pack_forms(tuple(matched))) for durable, matched in found.items())

    def held(self, kind: Kind) -> list[bytes]:
        """Return all names of a kind that any of them holds. Raises StoreError."""
        database = receivers.DATABASES[kind.database]
        return self._data.read_along(lambda txn: receivers.distinct_names(txn, database)) if self.any else []

    def count(self, kind: Kind, name: bytes) -> int:
        """Return how many of them hold a name. Raises StoreError."""
        database = receivers.DATABASES[kind.database]
        return self._data.read_along(lambda txn: receivers.total_sessions(txn, database, name)) if self.any else 0

    def _read(self, txn: Txn) -> tuple[int, bool, dict[int, Durable], int, list[Receiver]] | None:
        version = routes_version(txn)
        if version == self.version:
            return None
        every = durables.every(txn)
        limited = {durable.id: durable for durable in every if durable.is_limited}
        patterns = receivers.receivers(txn, receivers.PATTERNS)
        return version, subscriptions.are_any(txn), limited, len(every), patterns
