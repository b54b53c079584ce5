"""The subscribers of a store: every process and every durable subscriber, as the store and its folder show them.

Law 4. Doubt is not death: only a lock that could be acquired makes one dead. It is a look, not a transaction: live.mdb,
data.mdb and the folder are read one after another.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rlite_pubsub.pubsub.kinds import KINDS
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.mail import forms, losses, mailboxes
from rlite_pubsub.storage.mail.mailboxes import Mailbox, MailboxSize
from rlite_pubsub.storage.names import attachments, durables, receivers, subscribers, subscriptions
from rlite_pubsub.storage.names.attachments import Attachment
from rlite_pubsub.storage.names.durables import Durable
from rlite_pubsub.storage.names.subscribers import SubscriberRecord
from rlite_pubsub.storage.store import Store
from rlite_pubsub.wakeups import liveness
from rlite_pubsub.wakeups.doorbell import doorbell_path

DATABASES = tuple(kind.database for kind in KINDS)
"""channels, patterns, shards"""
NAMES_SHOWN = 100

Names = dict[str, list[bytes]]


class Depth(NamedTuple):
    """How many names of each kind are read of a subscriber; None for all."""

    counted: int | None = None
    shown: int | None = NAMES_SHOWN


class MailWaiting(NamedTuple):
    """How much waits, and since when."""

    backlog: MailboxSize
    oldest_ms: int | None
    """None if nothing waits; mailboxes.UNKNOWN_MS if the time was not noted."""

    def age_ms(self, now_ms: int) -> int:
        """Return its age; 0 if nothing waits, -1 if it is not known."""
        if self.oldest_ms is None:
            return 0
        return max(0, now_ms - self.oldest_ms) if self.oldest_ms != mailboxes.UNKNOWN_MS else -1


NOTHING = MailWaiting(MailboxSize(0, 0), None)
_SHALLOW = Depth()


@dataclass(frozen=True, slots=True)
class Process:
    """A server, or a program that opens the store itself."""

    id: int
    record: SubscriberRecord
    state: str
    """alive, dead or unknown"""
    last_bell_ms: int
    """When its doorbell was rung last, or hung; 0 if it has none."""


@dataclass(frozen=True, slots=True)
class CensusEntry:
    """One subscriber."""

    id: int
    kind: str
    """server, embedded or durable"""
    process: Process | None
    """Itself; the one to which a durable subscriber is attached, or None while it is away."""
    counts: dict[str, int]
    """How many names it holds, by kind (channels, patterns, shards)."""
    names: Names
    """The first of them."""
    waiting: MailWaiting
    """What was published and it has not taken: in its mailbox."""
    spilled: MailWaiting = NOTHING
    """What its own slow sessions have on disk."""
    spilled_sessions: int = 0
    durable: Durable | None = None
    attachment: Attachment | None = None
    """The session to which a durable subscriber is attached."""
    lost_untold: int = 0
    """Messages that it has lost and has not been told of."""

    @property
    def state(self) -> str:
        """The state of its process; `away` for a durable subscriber that is not attached."""
        return self.process.state if self.process is not None else "away"


def census(
    store: Store, depth: Depth = _SHALLOW, known: Mapping[int, dict[str, int]] | None = None
) -> list[CensusEntry]:
    """Return all who have joined, the oldest first, then the durable ones by name. Raises StoreError.

    `known` has the counts of names of those that need not be counted.
    """
    found, attached = store.live.read(
        lambda txn: (_processes(txn, store, depth, known or {}), attachments.every(txn))
    )
    processes = {entry.id: entry.process for entry in found if entry.process is not None}
    lasting = store.data.read(
        lambda txn: [_durable(txn, one, attached.get(one.id), processes, depth) for one in durables.every(txn)]
    )
    return sorted(found, key=_joined) + lasting


def census_of_durable(store: Store, durable: Durable, depth: Depth = _SHALLOW) -> CensusEntry:
    """One of them. Raises StoreError."""
    where, record = store.live.read(lambda txn: _where(txn, durable.id))
    processes = {}
    if where is not None and record is not None:
        processes[where.subscriber] = _process(store, where.subscriber, record)
    return store.data.read(lambda txn: _durable(txn, durable, where, processes, depth))


def _joined(entry: CensusEntry) -> tuple[int, int]:
    assert entry.process is not None
    return entry.process.record.joined_ms, entry.id


def _where(txn: Txn, durable: int) -> tuple[Attachment | None, SubscriberRecord | None]:
    attachment = attachments.get(txn, durable)
    return attachment, subscribers.get(txn, attachment.subscriber) if attachment is not None else None


def _processes(txn: Txn, store: Store, depth: Depth, known: Mapping[int, dict[str, int]]) -> list[CensusEntry]:
    found = []
    for id, record in subscribers.records(txn).items():
        sessions = [mailbox for mailbox in mailboxes.mailboxes_of(txn, id) if mailbox.session]
        entry = CensusEntry(
            id=id,
            kind=record.kind,
            process=_process(store, id, record),
            counts=known.get(id) or _counts(txn, id, depth),
            names=_names(txn, id, depth),
            waiting=_waiting(txn, [Mailbox(id)]),
            spilled=_waiting(txn, sessions),
            spilled_sessions=len(sessions),
        )
        found.append(entry)
    return found


def _durable(
    txn: Txn, durable: Durable, where: Attachment | None, processes: Mapping[int, Process], depth: Depth
) -> CensusEntry:
    mailbox = Mailbox(durable.id)
    waiting = _waiting(txn, [mailbox])
    backlog = waiting.backlog._replace(messages=forms.waiting_messages(txn, mailbox))
    return CensusEntry(
        id=durable.id,
        kind="durable",
        process=processes.get(where.subscriber) if where is not None else None,
        counts=_counts(txn, durable.id, depth),
        names=_names(txn, durable.id, depth),
        waiting=waiting._replace(backlog=backlog),
        durable=durable,
        attachment=where,
        lost_untold=sum(lost.messages for lost in losses.of(txn, durable.id)),
    )


def _process(store: Store, subscriber: int, record: SubscriberRecord) -> Process:
    probe = liveness.probe(store.subscribers_folder, subscriber)
    if probe.lock is not None:
        probe.lock.release()
    try:
        last_bell_ms = os.stat(doorbell_path(store.subscribers_folder, subscriber)).st_mtime_ns // 1_000_000
    except OSError:
        last_bell_ms = 0
    return Process(subscriber, record, probe.verdict.name.lower(), last_bell_ms)


def _counts(txn: Txn, subscriber: int, depth: Depth) -> dict[str, int]:
    return {
        name: subscriptions.count_of(txn, subscriber, receivers.DATABASES[name].byte, depth.counted)
        for name in DATABASES
    }


def _names(txn: Txn, subscriber: int, depth: Depth) -> Names:
    return {
        name: subscriptions.names_of(txn, subscriber, receivers.DATABASES[name].byte, depth.shown)
        for name in DATABASES
    }


def _waiting(txn: Txn, boxes: list[Mailbox]) -> MailWaiting:
    found = [mailboxes.backlog(txn, mailbox) for mailbox in boxes]
    times = [at_ms for mailbox in boxes if (at_ms := mailboxes.oldest_ms(txn, mailbox)) is not None]
    total = MailboxSize(sum(one.messages for one in found), sum(one.bytes for one in found))
    return MailWaiting(total, min(times, default=None))
