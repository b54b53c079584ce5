"""A subscriber's life: it joins, says what it holds, and leaves nothing.

Law 2, its first half. Join: hold the lock -> open the FIFO -> write the record -> COMMIT. From the first step on,
a process that finds it half-way knows that it lives; and if it dies half-way, the reaper finds what there is.
Leave: records and mailboxes -> COMMIT -> FIFO -> lock file, which is let go last.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from rlite_pubsub.pubsub.reaping import erase
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import NO_ROOM, StoreClosed, StoreUnwritable
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.mail import allowances
from rlite_pubsub.storage.mail.allowances import DEFAULT, Allowance
from rlite_pubsub.storage.names import receivers, subscribers
from rlite_pubsub.storage.names.subscribers import Kind, SubscriberRecord
from rlite_pubsub.storage.names.version import bump, routes_version
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.system import pid_namespace
from rlite_pubsub.wakeups.doorbell import Doorbell
from rlite_pubsub.wakeups.liveness import Liveness
from rlite_pubsub.wakeups.process import start_of


class Subscriber:
    """One that lives in this process. Made by `join`; a forked child has none."""

    def __init__(self, store: Store, lock: Liveness, bell: Doorbell) -> None:
        self.store = store
        self.id = lock.subscriber
        self.bell = bell
        self._lock = lock

    @classmethod
    def join(
        cls,
        store: Store,
        kind: Kind = "server",
        allowance: Allowance = DEFAULT,
        *,
        clock: Callable[[], float] = time.time,
    ) -> Subscriber:
        """Become a subscriber of this store, with a new id; `allowance` is what may wait in its mailbox. Raises
        StoreError, and then nothing is left of it."""
        pid, joined_ms = os.getpid(), int(clock() * 1000)
        record = SubscriberRecord(pid, kind, joined_ms, start_of(pid), pid_namespace(), os.uname().nodename)
        try:
            lock = Liveness.hold_new(store.subscribers_folder, 64)
        except OSError as error:
            raise StoreUnwritable(store.subscribers_folder, os.strerror(error.errno or 0)) from error
        failpoint("join-locked")
        try:
            bell = Doorbell.hang(store.subscribers_folder, lock.subscriber)
        except OSError as error:
            lock.remove()
            raise StoreUnwritable(store.subscribers_folder, os.strerror(error.errno or 0)) from error
        failpoint("join-bell-hung")

        def work(txn: Txn) -> None:
            subscribers.put(txn, lock.subscriber, record)
            allowances.put(txn, lock.subscriber, allowance)

        try:
            store.live.write(work)
        except BaseException:
            bell.remove()
            lock.remove()
            raise
        failpoint("join-recorded")
        return cls(store, lock, bell)

    def record(self, counts: Mapping[tuple[str, bytes], int]) -> int:
        """Write how many sessions hold each (database name, name), 0 to remove it, in one transaction; the routes
        version behind it, which other processes can see by then.

        It says what is, so that one that failed (StoreError) can be repeated later.
        """
        if not self._lock.is_held:
            raise StoreClosed(self.store.folder)

        def work(txn: Txn) -> int:
            receivers.set_counts(txn, self.id, counts)
            return routes_version(txn)

        try:
            version = self.store.live.write(work)
        except NO_ROOM:
            if self.store.live.read(lambda txn: self._adds(txn, counts)):
                raise
            version = self.store.live.write(work, freeing=True)
        self.store.routes.announce(version, any(database == "patterns" for database, _ in counts))
        return version

    def allow(self, allowance: Allowance) -> None:
        """Limits what may wait in its mailbox from now on, whichever process puts it there. Raises StoreError."""

        def work(txn: Txn) -> int:
            allowances.put(txn, self.id, allowance)
            return bump(txn)

        self.store.routes.announce(self.store.live.write(work, freeing=True), patterns=False)

    def _adds(self, txn: Txn, counts: Mapping[tuple[str, bytes], int]) -> bool:
        """Return whether any of these counts is higher than the recorded one."""
        return any(
            count > dict(receivers.subscribers(txn, receivers.DATABASES[database], name)).get(self.id, 0)
            for (database, name), count in counts.items()
        )

    def leave(self) -> None:
        """Remove all of it. Where the store refuses (StoreError), the lock is let go, and the reaper will do it."""
        if not self._lock.is_held:
            return
        try:
            erase(self.store, self.id)
            failpoint("leave-erased")
            self.bell.remove()
            failpoint("leave-bell-down")
            self._lock.remove()
        except OSError as error:
            raise StoreUnwritable(self.store.subscribers_folder, os.strerror(error.errno or 0)) from error
        finally:
            self.bell.close()
            self._lock.release()
