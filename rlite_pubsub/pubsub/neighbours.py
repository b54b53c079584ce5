"""The other subscribers of the store, and what they hold: as live.mdb has it, looked up again whenever it has changed.
Durable subscribers, our own sessions' included, are among them.

Whether `hint[0]` is still `seen` is a look at shared memory, taken before each publish: a subscription that was
confirmed before a publish was sent is seen by it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from rlite_pubsub.pubsub.kinds import CHANNELS, Kind
from rlite_pubsub.pubsub.patterns import PatternIndex
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.mail import allowances, overflows
from rlite_pubsub.storage.names import receivers, subscribers
from rlite_pubsub.storage.names.receivers import Receiver
from rlite_pubsub.storage.names.version import routes_version
from rlite_pubsub.storage.store import Store

Receivers = dict[int, int]
"""subscriber -> how many times a message is received there"""


class DurableNeighbours(Protocol):
    """The durable subscribers of the store, as those who publish see them."""

    @property
    def any(self) -> bool:
        """True if any of them holds a name."""

    def refresh(self) -> None:
        """See who is there. Raises StoreError."""

    def receivers(self, kind: Kind, name: bytes) -> tuple[tuple[int, bytes], ...]:
        """Return the receivers of a message to this name, each with its forms (packed). Raises StoreError."""

    def held(self, kind: Kind) -> list[bytes]:
        """Return all names of a kind that any of them holds. Raises StoreError."""

    def count(self, kind: Kind, name: bytes) -> int:
        """Return how many of them hold a name. Raises StoreError."""


class Neighbours:
    """All subscribers but our own."""

    def __init__(self, store: Store, own: Callable[[], int | None], durable: DurableNeighbours) -> None:
        self.live = self._live = store.live
        self.hint = store.routes.numbers  # [routes, patterns]
        self._own = own
        self.seen = -1  # the hint's first number at the last look
        self._patterns_seen = -1
        self._patterns = PatternIndex()
        self._pattern_receivers: dict[bytes, Receivers] = {}
        self.version = -1  # the routes version at the last look
        self.durable = durable
        self.any = False  # whether there is anybody
        self._any_process = False
        self.least_bytes = allowances.DEFAULT.least_bytes  # no mailbox that holds less is at a limit
        self._cut: frozenset[int] = frozenset()  # who is cut off, and gets nothing until it reads
        self._on_processes: list[Callable[[Collection[int]], None]] = []

    @property
    def own(self) -> int | None:
        """Our subscriber id; None before we are one."""
        return self._own()

    def call_with_processes(self, those_there: Callable[[Collection[int]], None]) -> None:
        """Call this with the ids of all processes that are there, our own among them, after each look: what is
        remembered of any other one goes."""
        self._on_processes.append(those_there)

    def refresh(self) -> None:
        """See who is there. Raises StoreError."""
        seen, patterns_seen = self.hint[0], self.hint[1]
        fresh_patterns = patterns_seen != self._patterns_seen or not self._any_process
        look = self._live.read(lambda txn: self._found(txn, fresh_patterns))
        self.version, processes, self.least_bytes, self._cut, patterns = look
        self._any_process = bool(processes - {self._own()})
        for those_there in self._on_processes:
            those_there(processes)
        if patterns is not None:
            self._index(patterns)
        self.durable.refresh()
        self.any = self._any_process or self.durable.any
        self.seen, self._patterns_seen = seen, patterns_seen

    def saw_own(self, version: int) -> None:
        """Our own change made this version: nothing of others need be looked up, unless they changed something too.

        Another's pattern may have been committed at our last look and announced only now, behind which ours went.
        """
        if version == self.version + 1 and self.hint[0] == version and self.hint[1] == self._patterns_seen:
            self.version = version
            self.seen = version

    def receivers(self, kind: Kind, name: bytes) -> Receivers:
        """Return the receivers of a message to this name. Raises StoreError."""
        return self._live.read(lambda txn: self.receivers_in(txn, kind, name))

    def receivers_in(self, txn: Txn, kind: Kind, name: bytes) -> Receivers:
        """Like `receivers`, in an open transaction: by its state, except for patterns that have just come."""
        found = self._holders(txn, kind, name)
        if kind is CHANNELS and len(self._patterns):
            for pattern in self._patterns.matching(name):
                for subscriber, count in self._pattern_receivers[pattern].items():
                    if subscriber not in self._cut:
                        found[subscriber] = found.get(subscriber, 0) + count
        return found

    def held(self, kind: Kind) -> list[bytes]:
        """Return all names of a kind that anybody else holds. Raises StoreError."""
        own = self._own()
        database = receivers.DATABASES[kind.database]
        every = self._live.read(lambda txn: receivers.receivers(txn, database))
        names = [receiver.name for receiver in every if receiver.subscriber != own]
        return list(dict.fromkeys(names + self.durable.held(kind)))

    def session_count(self, kind: Kind, name: bytes) -> int:
        """Return how many sessions of others, and durable subscribers, hold a name. Raises StoreError."""
        here = sum(self._live.read(lambda txn: self._holders(txn, kind, name)).values())
        return here + self.durable.count(kind, name)

    def _found(
        self, txn: Txn, fresh_patterns: bool
    ) -> tuple[int, set[int], int, frozenset[int], list[Receiver] | None]:
        version = routes_version(txn)
        processes = subscribers.ids(txn)
        if not processes - {self._own()}:
            return version, processes, self.least_bytes, frozenset(), []
        patterns = receivers.receivers(txn, receivers.PATTERNS) if fresh_patterns else None
        return version, processes, allowances.least_bytes(txn), overflows.cut_off(txn), patterns

    def _holders(self, txn: Txn, kind: Kind, name: bytes) -> Receivers:
        own = self._own()
        found = receivers.subscribers(txn, receivers.DATABASES[kind.database], name)
        return {subscriber: count for subscriber, count in found if subscriber != own and subscriber not in self._cut}

    def _index(self, patterns: list[Receiver]) -> None:
        own = self._own()
        self._patterns = PatternIndex()
        self._pattern_receivers = {}
        for pattern, subscriber, count in patterns:
            if subscriber != own:
                if pattern not in self._pattern_receivers:
                    self._patterns.add(pattern)
                    self._pattern_receivers[pattern] = {}
                self._pattern_receivers[pattern][subscriber] = count
