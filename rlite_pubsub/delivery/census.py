"""Who subscribes to a store: every subscriber of every process, as the store and its folder show them."""

from __future__ import annotations

from dataclasses import dataclass

from rlite_pubsub.delivery.kinds import KINDS
from rlite_pubsub.storage import mailboxes, receivers, subscribers, subscriptions
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.mailboxes import Backlog
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.subscribers import Record
from rlite_pubsub.wakeups import liveness
from rlite_pubsub.wakeups.doorbell import doorbell_path

_DATABASE = {database.byte: database.name for database in receivers.DATABASES.values()}


@dataclass(frozen=True, slots=True)
class Entry:
    """One subscriber."""

    id: int
    kind: str
    pid: int
    joined_ms: int
    state: str
    """alive, dead or unknown"""
    names: dict[str, int]
    """How many names it holds, by kind (channels, patterns, shards)."""
    backlog: Backlog
    """What other processes have put into its mailbox, and it has not taken."""
    spilled: Backlog
    """What its own slow sessions have on disk."""
    last_bell_s: float | None
    """When its doorbell was rung last; None if it has none."""


def census(store: Store) -> list[Entry]:
    """All who have joined, the oldest first. Raises StoreError."""
    found = store.live.read(_records)
    return sorted((_entry(store, *row) for row in found), key=lambda entry: (entry.joined_ms, entry.id))


def _records(txn: Txn) -> list[tuple[int, Record, dict[str, int], Backlog, Backlog]]:
    rows = []
    for subscriber, record in subscribers.records(txn).items():
        names = {kind.database: 0 for kind in KINDS}
        for byte, _ in subscriptions.held(txn, subscriber):
            names[_DATABASE[byte]] += 1
        own = mailboxes.backlog(txn, mailboxes.Mailbox(subscriber))
        every = mailboxes.backlog_of(txn, subscriber)
        spilled = Backlog(every.messages - own.messages, every.bytes - own.bytes)
        rows.append((subscriber, record, names, own, spilled))
    return rows


def _entry(
    store: Store, subscriber: int, record: Record, names: dict[str, int], own: Backlog, spilled: Backlog
) -> Entry:
    probe = liveness.probe(store.subscribers_folder, subscriber)
    if probe.lock is not None:
        probe.lock.release()
    try:
        last_bell_s: float | None = doorbell_path(store.subscribers_folder, subscriber).stat().st_mtime
    except OSError:
        last_bell_s = None
    state = probe.verdict.name.lower()
    return Entry(subscriber, record.kind, record.pid, record.joined_ms, state, names, own, spilled, last_bell_s)
