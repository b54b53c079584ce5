"""Processes that wait for keys which others change: two of them here, with one store between them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rlite_pubsub.durable.mailbox import DurablePost
from rlite_pubsub.engine.waits.other_processes import Key, SharedWaits, record_name
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.pubsub.neighbours import Neighbours
from rlite_pubsub.pubsub.post import Post
from rlite_pubsub.pubsub.reaping import reap_dead
from rlite_pubsub.pubsub.subscriber import Subscriber
from rlite_pubsub.storage.errors import StoreFull
from rlite_pubsub.storage.names import receivers
from rlite_pubsub.storage.names.version import routes_version
from rlite_pubsub.storage.store import Store

K: Key = (0, b"k")


class Process:
    """A process's part of it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.subscriber = Subscriber.join(store)
        mail = DurablePost(store)
        self.neighbours = Neighbours(store, lambda: self.subscriber.id, mail.routes)
        self.post = Post(store, self.neighbours, mail)
        self.hub = Hub(self.subscriber.record, self.neighbours, self.post)
        self.keyspace = Keyspace(store.data, lambda: 1_000)
        self.waited: dict[Key, None] = {}
        self.shared_waits = SharedWaits(self.hub, self.waited)
        self.neighbours.refresh()

    def see_and_wait(self, *keys: Key) -> None:
        """As a command that has found nothing: it waits from here on."""
        for key in keys:
            self.waited[key] = None
            self.shared_waits.begin(key, self.keyspace)

    def wait(self, *keys: Key) -> None:
        """The whole of a turn in which somebody begins to wait."""
        self.see_and_wait(*keys)
        self.end_turn()

    def leave(self, *keys: Key) -> None:
        for key in keys:
            del self.waited[key]
            self.shared_waits.end(key)

    def add(self, key: Key = K) -> None:
        assert key[1] is not None
        topic = self.keyspace.for_change(key[0], key[1]) or self.keyspace.create_topic(key[0], key[1])
        assert isinstance(topic, Topic)
        entry_id = topic.last_id[0] + 1, 0
        topic.append(entry_id, encode_entry(entry_id, [b"a", b"b"]))

    def delete(self, key: Key = K) -> None:
        assert key[1] is not None
        self.keyspace.delete(key[0], key[1])

    def commit(self) -> None:
        keyspace = self.keyspace
        keyspace.ready.clear()
        writes = keyspace.turn.writes
        if writes:
            self.shared_waits.before_commit(keyspace)
        assert keyspace.end_turn() is None
        if writes:
            self.shared_waits.after_commit(keyspace)

    def end_turn(self) -> list[Key]:
        """What is ready because of others."""
        self.commit()
        if self.shared_waits.is_due:
            self.shared_waits.record(self.keyspace)
        return self.ready()

    def look(self) -> list[Key]:
        self.shared_waits.recheck(self.keyspace)
        return self.ready()

    def ready(self) -> list[Key]:
        ready = list(self.keyspace.ready)
        self.keyspace.ready.clear()
        self.keyspace.end_turn()
        return ready

    def was_rung(self) -> bool:
        rung = self.subscriber.bell.wait(0)
        self.subscriber.bell.clear()
        return rung

    @property
    def recorded(self) -> list[bytes]:
        found = self.store.live.read(lambda txn: receivers.receivers(txn, receivers.WAITS))
        return [held.name for held in found if held.subscriber == self.subscriber.id]


def in_a_thread(*work: Callable[[], object]) -> None:
    """As another process, which has transactions of its own."""
    thread = threading.Thread(target=lambda: [each() for each in work])
    thread.start()
    thread.join()


@pytest.fixture
def reader(store: Store) -> Process:
    return Process(store)


@pytest.fixture
def writer(store: Store) -> Process:
    return Process(store)


def test_who_waits_is_rung_after_the_commit_and_finds_what_has_changed(reader: Process, writer: Process) -> None:
    reader.wait(K, (0, b"other"))
    writer.add()
    assert not reader.was_rung()
    writer.end_turn()
    assert reader.was_rung()
    assert reader.look() == [K]
    assert reader.look() == []


def test_a_change_between_the_look_and_the_record_is_not_lost(reader: Process, writer: Process) -> None:
    reader.see_and_wait(K)
    reader.commit()
    writer.add()
    writer.end_turn()
    assert not reader.was_rung()
    assert reader.end_turn() == [K]


def test_a_change_behind_an_older_snapshot_is_not_lost_when_the_turn_goes_on_to_write(
    reader: Process, writer: Process
) -> None:
    reader.see_and_wait(K)
    in_a_thread(writer.add, writer.end_turn)
    reader.add((0, b"mine"))
    assert reader.end_turn() == [K]


def test_a_key_that_has_not_changed_is_not_ready_when_it_is_recorded(reader: Process, writer: Process) -> None:
    writer.add()
    writer.end_turn()
    reader.add((0, b"mine"))
    reader.see_and_wait(K)
    assert reader.end_turn() == []


def test_after_a_bell_nothing_is_read_from_an_older_snapshot(reader: Process, writer: Process) -> None:
    assert reader.keyspace.find(0, b"k") is None
    in_a_thread(writer.add, writer.end_turn)
    assert reader.keyspace.find(0, b"k") is None
    reader.shared_waits.recheck(reader.keyspace)
    assert reader.keyspace.find(0, b"k") is not None
    reader.keyspace.end_turn()


def test_a_key_that_is_deleted_is_ready_too(reader: Process, writer: Process) -> None:
    writer.add()
    writer.end_turn()
    reader.wait(K)
    writer.delete()
    writer.end_turn()
    assert reader.was_rung()
    assert reader.look() == [K]


def test_only_who_waits_for_the_key_is_rung(reader: Process, writer: Process) -> None:
    reader.wait((0, b"other"), (1, b"k"))
    writer.add()
    writer.end_turn()
    assert not reader.was_rung()


def test_a_flushed_database_rings_whoever_waits_for_any_key_of_it(
    store: Store, reader: Process, writer: Process
) -> None:
    elsewhere = Process(store)
    writer.add()
    writer.end_turn()
    reader.wait(K)
    elsewhere.wait((1, b"k"))
    writer.keyspace.databases.flush(0)
    writer.end_turn()
    assert reader.was_rung()
    assert reader.look() == [K]
    assert not elsewhere.was_rung()


def test_keys_with_long_names_of_any_bytes_are_waited_for_as_others_are(reader: Process, writer: Process) -> None:
    keys: list[Key] = [(3, bytes(range(256)) * 40), (3, b""), (15, b"\xff" * 254)]
    reader.wait(*keys)
    for key in keys:
        writer.add(key)
        writer.end_turn()
        assert reader.was_rung()
        assert reader.look() == [key]


def test_what_one_s_own_process_changes_is_no_news(reader: Process, writer: Process) -> None:
    reader.wait(K)
    reader.look()
    reader.add()
    reader.end_turn()
    assert not reader.was_rung()
    assert reader.look() == []


def test_what_one_has_changed_oneself_is_no_news_among_others_changes(reader: Process, writer: Process) -> None:
    reader.wait(K, (0, b"other"))
    reader.look()
    reader.add()
    reader.end_turn()
    writer.add((0, b"other"))
    writer.end_turn()
    assert reader.look() == [(0, b"other")]


def test_after_one_s_own_commit_a_bell_has_nothing_looked_at(reader: Process, writer: Process) -> None:
    reader.wait(K)
    reader.look()
    reader.add((0, b"mine"))
    reader.end_turn()
    reader.shared_waits.recheck(reader.keyspace)
    assert reader.keyspace.turn.txn is None  # a key is looked at in a snapshot
    writer.add((0, b"theirs"))
    writer.end_turn()
    reader.shared_waits.recheck(reader.keyspace)
    assert reader.keyspace.turn.txn is not None
    reader.end_turn()


def test_where_nobody_else_is_a_change_looks_nothing_up(writer: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.add()
    writer.end_turn()

    def read(*_: object) -> None:
        raise AssertionError("it was looked up")

    monkeypatch.setattr(writer.store.live, "read", read)
    writer.add()
    writer.end_turn()


def test_who_waits_for_a_key_is_looked_up_once(
    reader: Process, writer: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.wait(K)
    writer.add()
    writer.end_turn()

    def read(*_: object) -> None:
        raise AssertionError("it was looked up again")

    monkeypatch.setattr(writer.store.live, "read", read)
    reader.was_rung()
    writer.add()
    writer.end_turn()
    assert reader.was_rung()


def test_a_loop_that_waits_again_and_again_writes_no_records(store: Store, reader: Process) -> None:
    reader.wait(K)
    version = store.live.read(routes_version)
    for now in range(10):
        reader.leave(K)
        reader.wait(K)
        reader.shared_waits.sweep(float(now))
    assert store.live.read(routes_version) == version
    assert reader.recorded == [record_name(K)]


def test_a_record_is_removed_when_nobody_has_waited_for_a_while(reader: Process) -> None:
    reader.wait(K, (0, b"other"))
    reader.shared_waits.sweep(10.0)
    reader.leave(K)
    reader.shared_waits.sweep(10.5)
    reader.shared_waits.sweep(11.1)
    assert len(reader.recorded) == 2
    reader.shared_waits.sweep(12.2)
    assert reader.recorded == [record_name((0, b"other"))]


def test_what_the_store_does_not_take_is_recorded_later(
    reader: Process, writer: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(counts: object) -> None:
        raise StoreFull(Path("live.mdb"), 1)

    with monkeypatch.context() as patch:
        patch.setattr(reader.hub, "_records", refuse)
        reader.see_and_wait(K)
        reader.commit()
        assert not reader.shared_waits.record(reader.keyspace)
        assert not reader.shared_waits.is_due
        writer.add()
        writer.end_turn()
        assert reader.look() == [K]
    reader.shared_waits.sweep(10.0)
    reader.end_turn()
    assert reader.recorded == [record_name(K)]


def test_who_died_waiting_is_reaped_with_what_it_waited_for(store: Store, reader: Process, writer: Process) -> None:
    reader.wait(K)
    reader.subscriber._lock.release()
    reader.subscriber.bell.close()
    writer.add()
    writer.end_turn()
    assert writer.post.suspects == {reader.subscriber.id}
    writer.post.reap_suspects()
    assert store.live.read(lambda txn: receivers.receivers(txn, receivers.WAITS)) == []
    assert reap_dead(store) == []
    writer.add()
    writer.end_turn()
    assert not writer.post.suspects


def test_a_turn_that_changes_nothing_does_not_hide_what_is_committed_next(reader: Process, writer: Process) -> None:
    writer.add()
    writer.end_turn()
    reader.wait(K)
    reader.delete((0, b"missing"))
    reader.end_turn()
    writer.delete()
    writer.end_turn()
    assert reader.look() == [K]
    assert reader.keyspace.find(0, b"k") is None
    reader.keyspace.end_turn()
