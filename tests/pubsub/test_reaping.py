"""The reaper, with real processes: the dead leave nothing, the living lose nothing, and doubt is not death."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlite_pubsub.pubsub import reaping
from rlite_pubsub.pubsub.reaping import reap, reap_dead
from rlite_pubsub.pubsub.subscriber import Subscriber
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import StoreFull
from rlite_pubsub.storage.mail import mailboxes, messages
from rlite_pubsub.storage.mail.mailboxes import Mailbox
from rlite_pubsub.storage.names import receivers, subscribers, version
from rlite_pubsub.storage.names.receivers import CHANNELS
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.system import pid_namespace
from rlite_pubsub.wakeups.doorbell import Ring, doorbell_path, ring
from rlite_pubsub.wakeups.liveness import Liveness, lock_path

LETTERS = 2 * reaping.SLICE + 10
SUBSCRIBER = """
import sys
from rlite_pubsub.pubsub.subscriber import Subscriber
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.system import pid_namespace
store = Store.open(sys.argv[1])
subscriber = Subscriber.join(store, "embedded")
subscriber.record({("channels", b"news"): 1, ("patterns", b"n*"): 2, ("shards", b"s" * 1000): 1})
print(subscriber.id, flush=True)
sys.stdin.read()
"""
REAPER = """
import sys
from rlite_pubsub.pubsub.reaping import reap_dead
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.system import pid_namespace
with Store.open(sys.argv[1]) as store:
    print(*reap_dead(store), flush=True)
"""


class Other:
    """A subscriber in another process."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SUBSCRIBER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        self.id = int(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def join(store: Store) -> Iterator[Callable[[], Other]]:
    others: list[Other] = []

    def join_another() -> Other:
        others.append(Other(store.folder))
        return others[-1]

    yield join_another
    for other in others:
        other.kill()


def traces(store: Store) -> list[object]:
    counters = {databases.FORMAT, databases.BOOT, databases.ROUTES_VERSION, databases.LAST_SEQUENCE}
    records = store.live.read(lambda txn: list(txn.cursor().iternext(values=False)))
    return [key for key in records if key not in counters] + os.listdir(store.subscribers_folder)


def deliver(store: Store, count: int, *subscribers: int) -> None:
    def work(txn: Txn) -> None:
        for _ in range(count):
            mailboxes.deliver(txn, b"hello", [(Mailbox(subscriber), b"") for subscriber in subscribers])

    store.live.write(work)


def test_the_dead_leave_nothing_and_the_living_lose_nothing(store: Store, join: Callable[[], Other]) -> None:
    dead, alive, own = join(), join(), Subscriber.join(store)
    own.record({("channels", b"news"): 1})
    deliver(store, 10, dead.id, alive.id, own.id)
    deliver(store, 10, dead.id)
    dead.kill()
    before = store.live.read(version.routes_version)
    assert reap_dead(store) == [dead.id]
    assert store.live.read(version.routes_version) == before + 1
    living = sorted([alive.id, own.id])
    assert [one for one, _ in store.live.read(lambda txn: receivers.subscribers(txn, CHANNELS, b"news"))] == living
    assert sorted(store.live.read(subscribers.records)) == living
    assert store.live.read(messages.count) == 10
    for one in living:
        assert store.live.read(lambda txn, one=one: mailboxes.backlog(txn, Mailbox(one))).messages == 10
        assert ring(store.subscribers_folder, one) is Ring.RUNG
    alive.kill()
    own.leave()
    assert reap_dead(store) == [alive.id]
    assert traces(store) == []


def test_a_named_one_is_reaped_only_if_it_is_dead(store: Store, join: Callable[[], Other]) -> None:
    other = join()
    assert not reap(store, other.id)
    other.kill()
    assert reap(store, other.id)
    assert not reap(store, other.id)
    assert traces(store) == []


def test_a_process_that_suspects_one_that_another_has_reaped_changes_nothing(
    store: Store, join: Callable[[], Other]
) -> None:
    other = join()
    other.kill()
    assert reap(store, other.id)
    before = os.stat(store.subscribers_folder).st_mtime_ns
    assert not reap(store, other.id)
    assert (os.stat(store.subscribers_folder).st_mtime_ns, traces(store)) == (before, [])


@pytest.mark.parametrize("step", ["reap-locked", "erase-slice", "reap-erased", "reap-bell-down"])
def test_a_reaper_killed_at_any_step_leaves_the_rest_to_the_next(
    store: Store, join: Callable[[], Other], step: str
) -> None:
    dead, alive = join(), join()
    deliver(store, LETTERS, dead.id)
    deliver(store, 1, alive.id)
    dead.kill()
    reaper = subprocess.run(
        [sys.executable, "-c", REAPER, str(store.folder)], env={**os.environ, "RLITE_FAILPOINT": step}, check=False
    )
    assert reaper.returncode == -9
    assert reap_dead(store) == [dead.id]
    assert store.live.read(lambda txn: mailboxes.backlog(txn, Mailbox(alive.id))).messages == 1
    alive.kill()
    reap_dead(store)
    assert traces(store) == []


def test_of_two_reapers_at_once_one_reaps(store: Store, join: Callable[[], Other]) -> None:
    dead = [join() for _ in range(3)]
    deliver(store, 100, *(one.id for one in dead))
    for one in dead:
        one.kill()
    reapers = [
        subprocess.Popen([sys.executable, "-c", REAPER, str(store.folder)], stdout=subprocess.PIPE) for _ in range(3)
    ]
    reaped = [int(word) for reaper in reapers for word in reaper.communicate()[0].split()]
    assert sorted(reaped) == sorted(one.id for one in dead)
    assert traces(store) == []


def test_files_without_records_are_removed(store: Store) -> None:
    Liveness.hold(store.subscribers_folder, 1).release()
    os.mkfifo(doorbell_path(store.subscribers_folder, 2))
    assert reap_dead(store) == [1, 2]
    assert traces(store) == []


def test_records_and_mailboxes_without_files_are_removed(store: Store) -> None:
    store.live.write(lambda txn: subscribers.put(txn, 1, subscribers.SubscriberRecord(1, "server", 0, 1)))
    store.live.write(lambda txn: receivers.set_counts(txn, 2, {(CHANNELS.name, b"news"): 1}))
    deliver(store, 1, 3)
    assert reap_dead(store) == [1, 2, 3]
    assert traces(store) == []


def test_a_living_one_whose_lock_file_was_deleted_is_left_alone(store: Store, join: Callable[[], Other]) -> None:
    other = join()
    lock_path(store.subscribers_folder, other.id).unlink()
    before = traces(store)
    assert reap_dead(store) == []
    assert traces(store) == before
    doorbell_path(store.subscribers_folder, other.id).unlink()  # now only its record says which process it is
    before = traces(store)
    assert reap_dead(store) == []
    assert traces(store) == before
    other.kill()
    assert reap_dead(store) == [other.id]
    assert traces(store) == []


def test_a_living_one_in_another_world_of_process_ids_is_left_alone(store: Store, join: Callable[[], Other]) -> None:
    other = join()
    foreign = subscribers.SubscriberRecord(2**22 + 1, "embedded", 0, 12345)
    store.live.write(lambda txn: subscribers.put(txn, other.id, foreign))
    lock_path(store.subscribers_folder, other.id).unlink()
    before = traces(store)
    assert reap_dead(store) == []
    assert traces(store) == before


def test_one_in_another_pid_namespace_whose_files_were_deleted_is_left_alone(store: Store) -> None:
    record = subscribers.SubscriberRecord(1, "server", 0, 12345, pid_namespace() + 1, "container")
    store.live.write(lambda txn: subscribers.put(txn, 7, record))
    before = traces(store)
    assert reap_dead(store) == []
    assert traces(store) == before


def test_one_of_this_process_whose_files_were_all_deleted_is_left_alone(store: Store) -> None:
    own = Subscriber.join(store)
    for name in os.listdir(store.subscribers_folder):
        (store.subscribers_folder / name).unlink()
    assert reap_dead(store) == []
    own.leave()
    assert traces(store) == []


def test_one_whose_lock_cannot_be_looked_at_is_left_alone(store: Store) -> None:
    lock_path(store.subscribers_folder, 1).mkdir()
    store.live.write(lambda txn: receivers.set_counts(txn, 1, {(CHANNELS.name, b"news"): 1}))
    assert reap_dead(store) == []
    assert store.live.read(lambda txn: receivers.subscribers(txn, CHANNELS, b"news")) == [(1, 1)]


def test_the_dead_can_be_reaped_from_a_full_store(tmp_path: Path) -> None:
    with Store.open(tmp_path, quota_bytes=1 << 20) as store:
        other, own = Other(store.folder), Subscriber.join(store)
        with pytest.raises(StoreFull):
            while True:
                deliver(store, 1, other.id)
                deliver(store, 20, own.id)
        other.kill()
        before = store.live.read(lambda txn: mailboxes.backlog(txn, Mailbox(own.id)))
        assert reap_dead(store) == [other.id]
        assert store.live.read(lambda txn: mailboxes.backlog(txn, Mailbox(own.id))) == before
        own.leave()
        assert traces(store) == []
