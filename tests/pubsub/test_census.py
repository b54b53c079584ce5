"""The census: who is there, alive or not, what each holds, and what waits for it since when."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from rlite_pubsub.pubsub.census import NAMES_SHOWN, CensusEntry, Depth, census, census_of_durable
from rlite_pubsub.pubsub.subscriber import Subscriber
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.mail import forms, losses, mailboxes
from rlite_pubsub.storage.mail.mailboxes import Mailbox
from rlite_pubsub.storage.names import attachments, durables, receivers
from rlite_pubsub.storage.names.attachments import Attachment
from rlite_pubsub.storage.names.durables import Durable
from rlite_pubsub.storage.store import Store
from rlite_pubsub.wakeups.doorbell import doorbell_path, ring

DIES = """
import os, signal, sys
from rlite_pubsub.pubsub.subscriber import Subscriber
from rlite_pubsub.storage.store import Store
store = Store.open(sys.argv[1])
subscriber = Subscriber.join(store, "embedded")
subscriber.record({("channels", b"news"): 1})
os.kill(os.getpid(), signal.SIGKILL)
"""
DURABLE = Durable(b"billing", 42, 60, 1000, 10, 5_000, 6_000, 3)


@pytest.fixture
def subscriber(store: Store) -> Iterator[Subscriber]:
    joined = Subscriber.join(store, "server", clock=lambda: 1.0)
    yield joined
    joined.leave()


def only(entries: list[CensusEntry]) -> CensusEntry:
    assert len(entries) == 1, entries
    return entries[0]


def add_durable(store: Store) -> None:
    def work(txn: Txn) -> None:
        durables.put(txn, DURABLE)
        receivers.set_counts(txn, DURABLE.id, {("channels", b"orders"): 1, ("patterns", b"o*"): 1})
        note = forms.pack(0, 4, forms.pack_forms((None, b"o*")))
        mailboxes.deliver(txn, b"two twice", [(Mailbox(DURABLE.id), note)], 7_000, 2)
        losses.add(txn, DURABLE.id, b"orders", 9, 1)

    store.data.write(work)


def test_what_waits_is_told_in_messages_and_bytes_with_the_age_of_the_oldest(
    store: Store, subscriber: Subscriber
) -> None:
    assert only(census(store)).waiting.age_ms(10_000) == 0
    own, slow, slower = Mailbox(subscriber.id), Mailbox(subscriber.id, 3), Mailbox(subscriber.id, 4)

    def work(txn: Txn) -> None:
        mailboxes.deliver(txn, b"x" * 100, [(own, b"")], 9_000, 5)
        mailboxes.deliver(txn, b"y" * 10, [(own, b""), (slow, b"")], 9_500, 1)
        mailboxes.deliver(txn, b"z", [(slower, b"")], 8_000)

    store.live.write(work)
    found = only(census(store))

    assert (found.waiting.backlog, found.waiting.age_ms(10_000)) == ((6, 110), 1_000)
    assert (found.spilled_sessions, found.spilled.backlog.bytes, found.spilled.age_ms(10_000)) == (2, 11, 2_000)


def test_age_is_never_negative_and_unknown_where_nobody_noted_the_time(store: Store, subscriber: Subscriber) -> None:
    sequence = store.live.write(lambda txn: mailboxes.deliver(txn, b"x", [(Mailbox(subscriber.id), b"")]))
    assert only(census(store)).waiting.age_ms(10_000) == -1

    def replace(txn: Txn) -> None:
        mailboxes.remove(txn, Mailbox(subscriber.id), sequence)
        mailboxes.deliver(txn, b"x", [(Mailbox(subscriber.id), b"")], 11_000)

    store.live.write(replace)
    assert only(census(store)).waiting.age_ms(10_000) == 0


def test_names_are_counted_by_kind_and_the_first_of_each_are_shown(store: Store, subscriber: Subscriber) -> None:
    held = {("channels", b"%05d" % number): 1 for number in range(NAMES_SHOWN + 50)}
    subscriber.record(held | {("patterns", b"p*"): 1, ("shards", b"s" * 1000): 2})

    found = only(census(store))
    assert found.counts == {"channels": NAMES_SHOWN + 50, "patterns": 1, "shards": 1}
    assert found.names["channels"] == [b"%05d" % number for number in range(NAMES_SHOWN)]
    assert (found.names["patterns"], found.names["shards"]) == ([b"p*"], [b"s" * 1000])

    assert only(census(store, Depth(7, 0))).counts == {"channels": 7, "patterns": 1, "shards": 1}
    assert only(census(store, Depth(7, 0))).names == {"channels": [], "patterns": [], "shards": []}
    known = {"channels": 1, "patterns": 2, "shards": 3}
    assert only(census(store, known={subscriber.id: known})).counts == known


def test_the_killed_is_dead_the_one_without_a_lock_file_is_unknown_and_looking_changes_neither(store: Store) -> None:
    killed = subprocess.run([sys.executable, "-c", DIES, str(store.folder)])
    assert killed.returncode < 0
    lost = Subscriber.join(store)
    (store.subscribers_folder / f"{lost.id:016x}.lock").unlink()
    here = Subscriber.join(store)

    for _ in range(2):
        states = {entry.id: entry.state for entry in census(store)}
        assert sorted(states.values()) == ["alive", "alive", "dead"]  # what this process holds, it knows without a file
        assert states[here.id] == "alive"

    lost._lock.release()
    assert {entry.id: entry.state for entry in census(store)}[lost.id] == "unknown"
    here.leave()


def test_last_bell_is_when_it_was_rung(store: Store, subscriber: Subscriber) -> None:
    path = doorbell_path(store.subscribers_folder, subscriber.id)
    os.utime(path, (1, 1))
    process = only(census(store)).process
    assert process is not None and process.last_bell_ms == 1_000

    ring(store.subscribers_folder, subscriber.id)
    process = only(census(store)).process
    assert process is not None and process.last_bell_ms > 1_000_000

    path.unlink()
    process = only(census(store)).process
    assert process is not None and process.last_bell_ms == 0


def test_durable_one_is_away_or_as_alive_as_its_process(store: Store) -> None:
    add_durable(store)
    away = only(census(store))
    assert (away.kind, away.state, away.process, away.durable) == ("durable", "away", None, DURABLE)
    assert (away.waiting.backlog, away.waiting.age_ms(10_000)) == ((4, 9), 3_000)
    assert away.counts == {"channels": 1, "patterns": 1, "shards": 0}
    assert away.lost_untold == 9

    host = Subscriber.join(store)
    store.live.write(lambda txn: attachments.put(txn, DURABLE.id, Attachment(host.id, 5)))
    _, attached = census(store)
    assert (attached.state, attached.attachment) == ("alive", Attachment(host.id, 5))
    assert attached.process is not None and attached.process.record.pid == os.getpid()
    assert census_of_durable(store, DURABLE) == attached
    host.leave()
    assert only(census(store)) == away
