"""Ephemeral topics: in memory and nowhere else, in the same turns as what is stored."""

from __future__ import annotations

import logging

import pytest
from keeper import Clock
from listener import Listener

from rlite_pubsub.keyspace import ephemeral
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.records import Text
from rlite_pubsub.keyspace.sweeping import expire_some, sweep_some
from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.keyspace.topic.stretch import Stretch
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage import memory as memory_storage
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.errors import StoreError, StoreFull, StoreUnwritable
from rlite_pubsub.storage.turn import Turn

NAME = b"news#ephemeral"


def append(keyspace: Keyspace, name: bytes, value: bytes, database: int = 0) -> Topic:
    topic = keyspace.for_change(database, name) or keyspace.create_topic(database, name)
    assert isinstance(topic, Topic)
    entry_id = topic.last_id[0] + 1, 0
    topic.append(entry_id, encode_entry(entry_id, [b"f", value]))
    return topic


def wires(keyspace: Keyspace, name: bytes, database: int = 0) -> bytes | None:
    """All entries of a topic; None: there is none."""
    topic = keyspace.find(database, name)
    found = None if topic is None else b"".join(part.wire for part in topic.between())  # type: ignore[attr-defined]
    keyspace.end_turn()
    return found


def stored_records(data: Environment) -> list[tuple[bytes, bytes]]:
    return data.read(lambda txn: list(txn.cursor()))


def test_an_ephemeral_topic_leaves_no_record_in_the_store(keyspace: Keyspace, data: Environment) -> None:
    keyspace.put_string(0, b"s", b"1")
    assert keyspace.end_turn() is None
    before = stored_records(data)
    append(keyspace, NAME, b"one")
    assert keyspace.end_turn() is None
    append(keyspace, NAME, b"two")
    keyspace.for_change(0, NAME)
    assert keyspace.end_turn() is None
    assert stored_records(data) == before
    assert wires(keyspace, NAME) == encode_entry((1, 0), [b"f", b"one"]) + encode_entry((2, 0), [b"f", b"two"])


def test_another_process_of_the_store_does_not_see_it(keyspace: Keyspace, data: Environment, clock: Clock) -> None:
    append(keyspace, NAME, b"one")
    keyspace.end_turn()
    elsewhere = Keyspace(data, clock)
    assert wires(elsewhere, NAME) is None and elsewhere.databases.size(0) == 0
    elsewhere.end_turn()


def test_what_others_commit_meanwhile_does_not_touch_it(keyspace: Keyspace, data: Environment, clock: Clock) -> None:
    elsewhere = Keyspace(data, clock)
    append(keyspace, NAME, b"one")
    keyspace.end_turn()
    elsewhere.put_string(0, b"s", b"1")
    elsewhere.end_turn()
    keyspace.find(0, NAME)
    append(keyspace, NAME, b"two")
    assert keyspace.end_turn() is None
    found = keyspace.find(0, b"s")
    assert isinstance(found, Text) and found.value == b"1"
    assert (wires(keyspace, NAME) or b"").count(b"*2\r\n$1\r\nf") == 2


def test_only_topics_are_ephemeral_and_other_keys_of_such_names_are_stored(
    keyspace: Keyspace, data: Environment, clock: Clock
) -> None:
    append(keyspace, NAME, b"one")
    keyspace.end_turn()
    keyspace.put_string(0, NAME, b"a string")
    keyspace.end_turn()
    assert keyspace.databases.size(0) == 1
    keyspace.end_turn()
    found = Keyspace(data, clock).find(0, NAME)
    assert isinstance(found, Text) and found.value == b"a string"


def test_a_stored_topic_of_such_a_name_stays_what_it_is(keyspace: Keyspace, data: Environment, clock: Clock) -> None:
    keyspace.stored.create(Topic, 0, NAME)  # as a version that knew of no ephemeral topics has made it
    keyspace.end_turn()
    append(keyspace, b"other#ephemeral", b"one")
    append(keyspace, NAME, b"one")
    keyspace.end_turn()
    assert wires(Keyspace(data, clock), NAME)


def test_walks_and_counts_go_over_both_parts(keyspace: Keyspace, clock: Clock) -> None:
    names = set()
    for number in range(40):
        keyspace.put_string(0, b"s%d" % number, b"1")
        append(keyspace, b"%d#ephemeral" % number, b"one")
        names |= {b"s%d" % number, b"%d#ephemeral" % number}
    assert {name for name, _ in keyspace.databases.walk(0)} == names
    keyspace.end_turn()
    keyspace.set_expiry(keyspace.for_change(0, b"1#ephemeral"), 5000)  # type: ignore[arg-type]
    keyspace.end_turn()
    assert (keyspace.databases.size(0), keyspace.databases.sizes()) == (80, {0: (80, 1)})
    seen: list[bytes] = []
    cursor, steps = 0, 0
    while cursor or not steps:
        cursor, found, _ = keyspace.databases.scan(0, cursor, 7)
        seen += [name for name, _ in found]
        steps += 1
    assert sorted(seen) == sorted(names) and steps > 5
    keyspace.databases.flush(0)
    append(keyspace, NAME, b"one")
    keyspace.end_turn()
    assert (keyspace.databases.random(0), keyspace.databases.numbers()) == ((NAME, []), [0])
    keyspace.end_turn()


def test_it_is_flushed_swapped_moved_copied_and_deleted_as_others_are(keyspace: Keyspace) -> None:
    append(keyspace, NAME, b"one")
    keyspace.databases.swap(0, 1)
    keyspace.end_turn()
    entry = encode_entry((1, 0), [b"f", b"one"])
    assert (wires(keyspace, NAME), wires(keyspace, NAME, 1)) == (None, entry)
    topic = keyspace.for_change(1, NAME)
    assert topic is not None
    keyspace.move(topic, 0, b"old#ephemeral")
    keyspace.copy(topic, 0, NAME)
    keyspace.end_turn()
    assert (wires(keyspace, NAME), wires(keyspace, b"old#ephemeral")) == (entry, entry)
    assert keyspace.databases.sizes() == {0: (2, 0)}
    assert keyspace.delete(0, NAME) and not keyspace.delete(0, NAME)
    assert keyspace.databases.flush(0) == 1
    keyspace.end_turn()
    assert keyspace.databases.sizes() == {}
    keyspace.end_turn()


def test_its_time_ends_as_any_key_s(keyspace: Keyspace, clock: Clock) -> None:
    listener = Listener()
    keyspace.news.tell(listener)
    for name in (NAME, b"other#ephemeral"):
        keyspace.set_expiry(append(keyspace, name, b"one"), 2000)
    keyspace.end_turn()
    clock.ms = 2001
    assert wires(keyspace, NAME) is None
    assert expire_some(keyspace.parts, 10) == 1
    keyspace.end_turn()
    assert listener.heard_expired == [(0, NAME), (0, b"other#ephemeral")]
    assert keyspace.databases.size(0) == 0
    keyspace.end_turn()


def test_its_version_differs_once_it_has_changed(keyspace: Keyspace) -> None:
    append(keyspace, NAME, b"one")
    keyspace.end_turn()
    before = keyspace.version(0, NAME)
    assert before == keyspace.version(0, NAME) != 0
    append(keyspace, NAME, b"two")
    keyspace.end_turn()
    assert keyspace.version(0, NAME) != before
    keyspace.delete(0, NAME)
    keyspace.end_turn()
    assert keyspace.version(0, NAME) == 0
    keyspace.end_turn()


def test_where_the_store_cannot_commit_the_memory_is_undone_too(keyspace: Keyspace) -> None:
    append(keyspace, NAME, b"one")
    assert keyspace.end_turn() is None
    append(keyspace, NAME, b"two")
    keyspace.put_string(0, b"big", b"x" * (8 << 20))
    assert isinstance(keyspace.end_turn(), StoreFull)
    assert wires(keyspace, NAME) == encode_entry((1, 0), [b"f", b"one"])
    append(keyspace, NAME, b"three")
    assert keyspace.end_turn() is None


def test_where_a_command_fails_the_memory_is_undone_too(keyspace: Keyspace) -> None:
    append(keyspace, NAME, b"one")
    keyspace.end_turn()
    append(keyspace, NAME, b"two").settle()
    keyspace.fail(ValueError("a bug"))
    keyspace.end_turn()
    assert wires(keyspace, NAME) == encode_entry((1, 0), [b"f", b"one"])


def test_full_memory_undoes_the_turn_and_is_not_taken_for_a_full_store(
    keyspace: Keyspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_storage, "MAX_BYTES", 1 << 20)
    append(keyspace, NAME, b"one")
    assert keyspace.end_turn() is None
    keyspace.put_string(0, b"s", b"1")
    for _ in range(40):
        append(keyspace, NAME, b"x" * 100_000)
    failure = keyspace.end_turn()
    assert isinstance(failure, StoreFull) and failure.quota_bytes == 1 << 20
    assert keyspace.find(0, b"s") is None
    keyspace.end_turn()
    assert wires(keyspace, NAME) == encode_entry((1, 0), [b"f", b"one"])
    keyspace.put_string(0, b"s", b"2")
    assert keyspace.end_turn() is None


def test_more_than_may_be_in_memory_is_refused_before_the_store_commits(
    keyspace: Keyspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_storage, "MAX_BYTES", 1 << 20)
    failures: list[StoreError | Exception | None] = []
    for number in range(60):
        append(keyspace, NAME, b"x" * 50_000)
        keyspace.put_string(0, b"s%d" % number, b"1")
        failures.append(keyspace.end_turn())
    taken = failures.index(next(failure for failure in failures if failure is not None))
    assert all(isinstance(failure, StoreFull) for failure in failures[taken:])
    assert keyspace.databases.size(0) == taken + 1
    keyspace.end_turn()
    topic = keyspace.for_change(0, NAME)
    assert isinstance(topic, Topic) and topic.length == taken
    topic.trim(taken - 1)
    assert keyspace.end_turn() is None


def test_memory_that_fails_behind_the_store_s_commit_is_told_of_and_goes_on(
    keyspace: Keyspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    append(keyspace, NAME, b"one")
    keyspace.end_turn()
    append(keyspace, NAME, b"two")
    keyspace.put_string(0, b"s", b"1")
    memory = keyspace.memory
    assert memory is not None

    def fail(turn: Turn, *, commit: bool) -> None:
        monkeypatch.undo()
        memory.part.environment.end(turn, commit=False)
        raise StoreUnwritable(memory.part.environment.path, "No space left on device")

    monkeypatch.setattr(memory.part.environment, "end", fail)
    with caplog.at_level(logging.WARNING):
        assert keyspace.end_turn() is None
    assert "ephemeral topics are lost" in caplog.text
    assert keyspace.find(0, b"s") is not None
    keyspace.end_turn()
    assert wires(keyspace, NAME) == encode_entry((1, 0), [b"f", b"one"])


def test_what_was_swept_up_does_not_make_the_cache_stale(keyspace: Keyspace) -> None:
    for number in range(200):
        append(keyspace, b"large#ephemeral", b"%d" % number * 2000)
    append(keyspace, NAME, b"one")
    keyspace.end_turn()
    keyspace.delete(0, b"large#ephemeral")
    keyspace.end_turn()
    while sweep_some(keyspace.parts, 10):
        assert keyspace.end_turn() is None
        topic = keyspace.find(0, NAME)
        assert isinstance(topic, Topic)
        keyspace.writing()
        topic.keyspace.keep(topic)
        topic.keyspace.writing()
        assert keyspace.end_turn() is None
    keyspace.end_turn()


def test_entries_that_a_turn_still_gathers_are_there_for_whoever_looks(keyspace: Keyspace) -> None:
    topic = append(keyspace, NAME, b"one")
    memory = keyspace.memory
    assert memory is not None
    stretch = Stretch(topic, (5, 0), [b"XADD", NAME, b"*", b"f"])
    keyspace.stretches.open[NAME] = stretch
    stretch.add([b"1\r\nv"])
    found = keyspace.find(0, NAME)
    assert isinstance(found, Topic) and found.length == 2
    keyspace.end_turn()
    assert wires(keyspace, NAME) == encode_entry((1, 0), [b"f", b"one"]) + encode_entry((5, 0), [b"f", b"v"])


@pytest.mark.parametrize("ended", ["closed", "forgotten"])
def test_memory_goes_with_its_keyspace(
    data: Environment, clock: Clock, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    import gc

    opened: list[Environment] = []

    def opening() -> Environment:
        opened.append(memory_storage.open_memory())
        return opened[0]

    monkeypatch.setattr(ephemeral, "open_memory", opening)
    keyspace: Keyspace | None = Keyspace(data, clock)
    assert keyspace is not None
    append(keyspace, NAME, b"one")
    keyspace.end_turn()
    if ended == "closed":
        keyspace.close()
    else:
        keyspace = None
        gc.collect()
    with pytest.raises(StoreError):
        opened[0].last_commit()
