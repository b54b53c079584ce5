"""A subscriber's life, and its death at every step of joining and leaving."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlite_pubsub.pubsub.reaping import reap_dead
from rlite_pubsub.pubsub.subscriber import Subscriber
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.errors import StoreClosed, StoreError, StoreFull, StoreUnwritable
from rlite_pubsub.storage.mail import mailboxes
from rlite_pubsub.storage.mail.mailboxes import Mailbox
from rlite_pubsub.storage.names import receivers, subscribers, version
from rlite_pubsub.storage.names.receivers import CHANNELS, PATTERNS
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.system import pid_namespace
from rlite_pubsub.wakeups.doorbell import Ring, ring
from rlite_pubsub.wakeups.process import start_of

LIFE = """
import sys
from rlite_pubsub.pubsub.subscriber import Subscriber
from rlite_pubsub.storage.mail import mailboxes
from rlite_pubsub.storage.mail.mailboxes import Mailbox
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.system import pid_namespace
store = Store.open(sys.argv[1])
subscriber = Subscriber.join(store, "embedded")
subscriber.record({("channels", b"news"): 1, ("patterns", b"n" * 1000): 2})
store.live.write(lambda txn: mailboxes.deliver(txn, b"hello", [(Mailbox(subscriber.id), b""), (Mailbox(7, 7), b"")]))
subscriber.leave()
"""


def traces(store: Store) -> list[object]:
    """What there is of any subscriber, in the store and in its folder."""
    counters = {databases.FORMAT, databases.BOOT, databases.ROUTES_VERSION, databases.LAST_SEQUENCE}
    records = store.live.read(lambda txn: list(txn.cursor().iternext(values=False)))
    return [key for key in records if key not in counters] + os.listdir(store.subscribers_folder)


def test_one_that_has_joined_is_known_by_its_record_and_can_be_rung(store: Store) -> None:
    subscriber = Subscriber.join(store, "embedded", clock=lambda: 1234.5)
    record = store.live.read(lambda txn: subscribers.get(txn, subscriber.id))
    here = pid_namespace(), os.uname().nodename
    assert record == subscribers.SubscriberRecord(os.getpid(), "embedded", 1_234_500, start_of(os.getpid()), *here)
    assert sorted(os.listdir(store.subscribers_folder)) == [f"{subscriber.id:016x}.fifo", f"{subscriber.id:016x}.lock"]
    assert ring(store.subscribers_folder, subscriber.id) is Ring.RUNG
    assert subscriber.bell.wait(0)
    subscriber.leave()


def test_one_that_has_left_leaves_nothing(store: Store) -> None:
    other = Subscriber.join(store)
    before = traces(store)
    subscriber = Subscriber.join(store)
    subscriber.record({("channels", b"news"): 2, ("shards", b"s" * 1000): 1})
    both = [(Mailbox(subscriber.id), b""), (Mailbox(subscriber.id, 3), b"")]
    store.live.write(lambda txn: mailboxes.deliver(txn, b"x", both))
    subscriber.leave()
    subscriber.leave()
    assert sorted(map(str, traces(store))) == sorted(map(str, before))
    other.leave()
    assert traces(store) == []


def test_what_is_recorded_is_in_one_transaction_and_moves_the_version_once(store: Store) -> None:
    subscriber = Subscriber.join(store)
    before = store.live.read(version.routes_version)
    counts = {("channels", b"a"): 2, ("patterns", b"b*"): 1}
    for _ in range(2):
        subscriber.record(counts)
    assert store.live.read(version.routes_version) == before + 1
    assert store.live.read(lambda txn: receivers.subscribers(txn, CHANNELS, b"a")) == [(subscriber.id, 2)]
    subscriber.record({("channels", b"a"): 0})
    assert store.live.read(lambda txn: receivers.receivers(txn, CHANNELS)) == []
    assert store.live.read(lambda txn: receivers.distinct_names(txn, PATTERNS)) == [b"b*"]
    subscriber.leave()


def test_a_record_that_failed_can_be_repeated(tmp_path: Path) -> None:
    with Store.open(tmp_path, quota_bytes=1 << 20) as store:
        subscriber = Subscriber.join(store)
        with pytest.raises(StoreFull):
            for number in range(1000):
                store.live.write(lambda txn, key=b"z%d" % number: txn.put(key, b"x" * 3000))
        counts = {("channels", b"%d" % number): 1 for number in range(2000)}
        with pytest.raises(StoreFull):
            subscriber.record(counts)
        assert store.live.read(lambda txn: receivers.receivers(txn, CHANNELS)) == []
        for number in range(1000):
            store.live.write(lambda txn, key=b"z%d" % number: txn.delete(key), freeing=True)
        subscriber.record(counts)
        assert len(store.live.read(lambda txn: receivers.receivers(txn, CHANNELS))) == 2000
        subscriber.leave()


def test_one_that_cannot_join_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise StoreUnwritable(store.folder, "no space")

    def forbid(*_: object) -> None:
        raise PermissionError(13, "forbidden")

    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(subscribers, "put", refuse)
    with pytest.raises(StoreError):
        Subscriber.join(store)
    monkeypatch.undo()
    monkeypatch.setattr(os, "mkfifo", forbid)
    with pytest.raises(StoreUnwritable):
        Subscriber.join(store)
    assert traces(store) == []
    assert os.listdir("/proc/self/fd") == before


def test_one_in_a_folder_that_was_removed_cannot_join_and_can_leave(store: Store) -> None:
    subscriber = Subscriber.join(store)
    subscriber.record({("channels", b"a"): 1})
    for name in os.listdir(store.subscribers_folder):
        (store.subscribers_folder / name).unlink()
    store.subscribers_folder.rmdir()
    with pytest.raises(StoreUnwritable, match="No such file or directory"):
        Subscriber.join(store)
    subscriber.leave()
    assert store.live.read(lambda txn: receivers.receivers(txn, CHANNELS)) == []


def test_a_forked_child_is_not_its_parents_subscriber(store: Store) -> None:
    subscriber = Subscriber.join(store)
    child = os.fork()
    if child == 0:
        try:
            with pytest.raises(StoreClosed):
                subscriber.record({("channels", b"a"): 1})
            subscriber.leave()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert reap_dead(store) == []
    subscriber.record({("channels", b"a"): 1})
    assert ring(store.subscribers_folder, subscriber.id) is Ring.RUNG
    subscriber.leave()
    assert traces(store) == []


@pytest.mark.parametrize(
    "step", ["join-locked", "join-bell-hung", "join-recorded", "leave-erased", "leave-bell-down"]
)
def test_one_that_is_killed_at_any_step_is_reaped_without_a_trace(store: Store, step: str) -> None:
    life = subprocess.run(
        [sys.executable, "-c", LIFE, str(store.folder)], env={**os.environ, "RLITE_FAILPOINT": step}, check=False
    )
    assert life.returncode == -9
    assert traces(store) != []
    store.live.write(lambda txn: mailboxes.drop(txn, Mailbox(7, 7)))
    assert len(reap_dead(store)) == 1
    assert traces(store) == []
    assert reap_dead(store) == []


def test_one_that_lives_its_life_leaves_nothing_to_reap(store: Store) -> None:
    subprocess.run([sys.executable, "-c", LIFE, str(store.folder)], check=True)
    store.live.write(lambda txn: mailboxes.drop(txn, Mailbox(7, 7)))
    assert traces(store) == []
