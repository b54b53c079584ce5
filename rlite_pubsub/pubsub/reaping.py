"""The reaper: removes all that a dead subscriber left behind, and nothing of a living one.

Law 4. Reap on proof only: the lock acquired with LOCK_EX|LOCK_NB is the proof, and it is kept while reaping, so that
two reapers cannot both proceed. Anything else means unknown: leave alone. One dead subscriber per transaction, after
the publish, never inside it. Reaping leaves nothing: records, mailboxes, messages, FIFO and lock file.
Durable subscribers that were attached to it are away from then on; what is theirs stays.

The order is: names (so that nobody sends to it any more), mailboxes, the record, the FIFO, and last the lock file. A
reaper that dies on its way leaves a state in which the next one finds the rest. What is much is removed in slices,
each a transaction of its own, for publishers must not wait for the removal of a million messages.
"""

from __future__ import annotations

import os
import re

from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import StoreUnwritable
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.mail import allowances, losses, mailboxes, overflows
from rlite_pubsub.storage.names import attachments, client_reports, receivers, subscribers, subscriptions
from rlite_pubsub.storage.names.version import routes_version
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.system import pid_namespace
from rlite_pubsub.wakeups import doorbell, liveness
from rlite_pubsub.wakeups.process import start_of

SLICE = 2000
"""Names and messages removed in one transaction: some milliseconds, and well within the store's reserve."""
_FILE = re.compile(r"([0-9a-f]{16})\.(?:lock|fifo)")


def reap_dead(store: Store) -> list[int]:
    """Reap every subscriber that is proven dead; their ids. Raises StoreError."""
    return [subscriber for subscriber in sorted(_traces(store)) if reap(store, subscriber)]


def reap(store: Store, subscriber: int) -> bool:
    """Remove all that this subscriber left. False if it lives, if nobody knows, or if there was nothing.

    Raises StoreError; what is left then is found by the next reaper.
    """
    if not _is_traced(store, subscriber):
        return False  # it has left, or another has reaped it: a process that suspects it late changes nothing
    probe = liveness.probe(store.subscribers_folder, subscriber, create=True)
    if probe.lock is None:
        return False  # it lives, or nobody knows: there is no proof
    with probe.lock as lock:
        failpoint("reap-locked")
        if lock.created and _may_live(store, subscriber):
            lock.remove()
            return False
        left_records = erase(store, subscriber)
        failpoint("reap-erased")
        left_files = not lock.created
        try:
            left_files |= doorbell.take_down(store.subscribers_folder, subscriber)
            failpoint("reap-bell-down")
            lock.remove()
        except OSError as error:
            raise StoreUnwritable(store.subscribers_folder, os.strerror(error.errno or 0)) from error
    was_there = left_records or left_files
    store.reaped += was_there
    return was_there


def erase(store: Store, subscriber: int) -> bool:
    """Remove all records of a subscriber, whose lock the caller holds. True if there were any."""
    had_records = False
    while True:
        removed, is_done = store.live.write(lambda txn: _erase_slice(txn, subscriber), freeing=True)
        store.routes.announce(store.live.read(routes_version), patterns=True)
        had_records |= removed > 0
        if is_done:
            return had_records
        failpoint("erase-slice")


def _erase_slice(txn: Txn, subscriber: int) -> tuple[int, bool]:
    removed = receivers.drop_subscriber(txn, subscriber, SLICE)
    if removed < SLICE:
        removed += mailboxes.drop_subscriber(txn, subscriber, SLICE - removed)
    if removed < SLICE:
        removed += losses.drop(txn, subscriber, SLICE - removed)
    if removed >= SLICE:
        return removed, False
    removed += overflows.remove(txn, subscriber) + allowances.remove(txn, subscriber)
    removed += attachments.drop_subscriber(txn, subscriber) + client_reports.drop_subscriber(txn, subscriber)
    return removed + subscribers.remove(txn, subscriber), True


def _traces(store: Store) -> set[int]:
    """Return all subscribers that the store or its folder shows, alive or not."""
    try:
        files = os.listdir(store.subscribers_folder)
    except OSError as error:
        raise StoreUnwritable(store.subscribers_folder, os.strerror(error.errno or 0)) from error
    found = {int(match[1], 16) for name in files if (match := _FILE.fullmatch(name))}
    return found | store.live.read(
        lambda txn: {*subscribers.records(txn), *subscriptions.subscribers(txn), *mailboxes.owners(txn)}
    )


def _is_traced(store: Store, subscriber: int) -> bool:
    """Return whether the store or its folder shows anything of a subscriber, alive or not."""
    folder = store.subscribers_folder
    if liveness.lock_path(folder, subscriber).exists() or doorbell.doorbell_path(folder, subscriber).exists():
        return True
    return store.live.read(
        lambda txn: (
            subscribers.get(txn, subscriber) is not None
            or bool(subscriptions.held(txn, subscriber, 1))
            or bool(mailboxes.mailboxes_of(txn, subscriber))
        )
    )


def _may_live(store: Store, subscriber: int) -> bool:
    """Return whether a subscriber without a lock file may live: it has ended, or somebody has deleted the file of a
    live one. Of a process in another pid namespace nobody can tell."""
    if doorbell.has_listener(store.subscribers_folder, subscriber):
        return True
    record = store.live.read(lambda txn: subscribers.get(txn, subscriber))
    if record is None or record.process_start == 0:
        return False
    return record.namespace not in (0, pid_namespace()) or start_of(record.pid) == record.process_start
