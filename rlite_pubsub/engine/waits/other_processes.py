"""Keys that this process waits for, shown to other processes; and waking other processes that wait for keys it has
changed.

Laws kept here, for keys as they hold for messages:
 1. change: COMMIT -> ring those that wait for what was changed. Never before the commit.
 2. wait: write the record -> COMMIT -> look once more -> wait. A change committed before the look is seen by it;
    whoever changes something after that finds the record.
 3. CLEAR the bell -> look -> wait, bounded -> again. Every ring, and now and then the clock, leads to `look`.
 7. Whoever changes a key never waits for those who wait for it.

A record outlives its last session by a second or two, so that a loop of blocking reads writes none each time. While
nobody else waits, a change costs one look at shared memory.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from struct import Struct
from typing import TYPE_CHECKING, Final

from rlite_pubsub.keyspace.news import Key
from rlite_pubsub.storage.agenda import WAITS
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.names import receivers, subscribers

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.pubsub.hub import Hub
    from rlite_pubsub.pubsub.neighbours import Neighbours

log: Final = logging.getLogger("rlite_pubsub")

LINGER_SECONDS: Final = 1.0
MAX_KNOWN_KEYS: Final = 4096
_DATABASE: Final = Struct(">I")


def record_name(key: Key) -> bytes:
    """Return the name that stands for a key among the names that subscribers hold."""
    assert key[1] is not None
    return _DATABASE.pack(key[0]) + key[1]


class Elsewhere:
    """Other processes that wait for keys, as live.mdb has them; looked up again when its routes version has moved."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self.hint = neighbours.hint
        self._live = neighbours.live
        self.seen = -1  # the hint at the last look
        self.is_anybody = False
        self._known: dict[Key, tuple[int, ...]] = {}

    def waiting_for(self, changed: Iterable[Key]) -> set[int]:
        """Return the processes that wait for one of these keys. Raises StoreError."""
        seen = self._neighbours.hint[0]
        if seen != self.seen:
            self._known.clear()
            self.is_anybody = self._live.read(self._anybody)
            self.seen = seen
        if not self.is_anybody:
            return set()
        known = self._known
        unknown = [key for key in changed if key not in known]
        if unknown:
            if len(known) > MAX_KNOWN_KEYS:
                known.clear()
                unknown = list(changed)
            self._live.read(lambda txn: self._learn(txn, unknown))
        return {subscriber for key in changed for subscriber in known[key]}

    def _anybody(self, txn: Txn) -> bool:
        return bool(subscribers.records(txn).keys() - {self._neighbours.own})

    def _learn(self, txn: Txn, keys: list[Key]) -> None:
        own = self._neighbours.own
        for key in keys:
            if key[1] is None:
                start = _DATABASE.pack(key[0])
                found = [held.subscriber for held in receivers.receivers(txn, receivers.WAITS)
                         if held.name.startswith(start)]  # fmt: skip
            else:
                found = [subscriber for subscriber, _ in receivers.subscribers(txn, receivers.WAITS, record_name(key))]
            self._known[key] = tuple({subscriber for subscriber in found if subscriber != own})


class SharedWaits:
    """This process's part: it is notified when a client here begins to wait for a key, and when none waits any more."""

    def __init__(self, hub: Hub, waited: Collection[Key]) -> None:
        """`waited` holds all keys that are waited for at any time."""
        self.only_changed: set[Key] = set()
        """Keys that are ready only because their version changed: something was done to them, perhaps without adding an
        entry."""
        self._hub = hub
        self.waited = waited
        self._elsewhere = Elsewhere(hub.neighbours) if hub.neighbours is not None else None
        self._recorded: dict[Key, bool] = {}  # whether it was waited for at the last sweep
        self._unrecorded: dict[Key, None] = {}
        self._refused: dict[Key, None] = {}  # those that the store refused
        self._versions: dict[Key, int] = {}  # the versions of keys that the waiting clients have seen
        self._looked_at = -1  # the commit that the last look saw
        self._sweep_at = 0.0

    def begin(self, key: Key, keyspace: Keyspace | None) -> None:
        """Begin a wait for this key by a client that has just seen it."""
        if self._elsewhere is None or keyspace is None:
            return
        is_new = key not in self._recorded
        if is_new:
            self._unrecorded[key] = None
            self._hub.agenda.due |= WAITS
        if (is_new or not keyspace.turn.writes) and key[1] is not None:
            self._versions[key] = keyspace.version(key[0], key[1])

    def end(self, key: Key) -> None:
        """End the wait for this key: nobody waits any more."""
        self._versions.pop(key, None)

    # -- changes by others

    @property
    def is_due(self) -> bool:
        """True if something is waited for that others do not know of."""
        return bool(self._unrecorded)

    def record(self, keyspace: Keyspace) -> bool:
        """Law 2: record what is waited for, and look once more. What has changed meanwhile is `ready` then.

        No transaction may be open before; a reading one may be open afterwards. Returns False if the store refuses:
        `sweep` tries again.
        """
        wanted, self._unrecorded = self._unrecorded, {}
        new = [key for key in wanted if key in self.waited and key not in self._recorded]
        if not new:
            return True
        try:
            self._hub.record({("waits", record_name(key)): 1 for key in new})
        except StoreError as failure:
            log.warning(
                "Can't tell other processes which keys clients wait for; changes are noticed late (%s)", failure
            )
            self._refused.update(dict.fromkeys(new))
            return False
        failpoint("wait-recorded")
        self._recorded.update(dict.fromkeys(new, True))
        self._compare(keyspace, new)
        return True

    def recheck(self, keyspace: Keyspace) -> None:
        """Law 3: look whether others have changed what is waited for; that is `ready` then. Raises StoreError."""
        turn = keyspace.turn
        if turn.txn is not None and not turn.writes:
            turn.end(commit=False)  # what is read from here on is as new as the bell
        if not self.waited or keyspace.turn.failure is not None:
            return
        newest = keyspace.last_commit()
        if newest != self._looked_at:
            self._compare(keyspace, list(self.waited))
            self._looked_at = newest

    def _compare(self, keyspace: Keyspace, keys: Iterable[Key]) -> None:
        for key in keys:
            assert key[1] is not None
            version = keyspace.version(key[0], key[1])
            if version != self._versions.get(key):
                self._versions[key] = version
                if key not in keyspace.ready:
                    keyspace.news.show((key,))
                    self.only_changed.add(key)

    def sweep(self, now: float) -> None:
        """Remove the records of keys that nobody has waited for lately; called now and then."""
        if now < self._sweep_at:
            return
        self._sweep_at = now + LINGER_SECONDS
        if self._refused:
            self._unrecorded.update(self._refused)
            self._refused.clear()
            self._hub.agenda.due |= WAITS
        unused = [key for key, was_waited in self._recorded.items() if not was_waited and key not in self.waited]
        if unused:
            try:
                self._hub.record({("waits", record_name(key)): 0 for key in unused})
            except StoreError as failure:
                log.debug("Can't yet remove the records of keys that nobody waits for: %s", failure)
                return
        for key in unused:
            del self._recorded[key]
        for key in self._recorded:
            self._recorded[key] = key in self.waited

    # -- changes by us

    def before_commit(self, keyspace: Keyspace) -> None:
        """Note that this process's waiting clients have seen what the turn changed."""
        if self._versions and keyspace.touched:
            for key in keyspace.touched:
                if key[1] is not None and key in self.waited:
                    self._versions[key] = keyspace.version(key[0], key[1])

    def after_commit(self, keyspace: Keyspace, *, is_seen: bool = True) -> None:
        """Law 1: wake other processes that wait for what was committed. `is_seen`: the clients here have seen it."""
        if is_seen and keyspace.stored.committed == self._looked_at + 1:
            self._looked_at += 1  # it was ours: nobody else committed in between
        touched = keyspace.touched
        if not touched:
            return
        elsewhere = self._elsewhere
        if elsewhere is not None and (elsewhere.is_anybody or elsewhere.hint[0] != elsewhere.seen):
            self.ring(touched)
        touched.clear()
        keyspace.news.told = None

    def ring(self, touched: Collection[Key]) -> None:
        """Wake other processes that wait for keys that a commit of this process has changed."""
        post, elsewhere = self._hub.post, self._elsewhere
        if post is None or elsewhere is None:
            return
        failpoint("change-committed")
        try:
            for subscriber in elsewhere.waiting_for(touched):
                post.ring(subscriber)
        except StoreError as failure:
            log.warning("Can't wake other processes, which will notice changes late: %s", failure)
