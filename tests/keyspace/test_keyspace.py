"""The keyspace: a turn is one transaction, what others commit is seen, and nothing is left behind."""

from __future__ import annotations

import random

import pytest
from keeper import Clock
from listener import Listener

from rlite_pubsub.keyspace import keyspace as keyspace_module
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.lists import List
from rlite_pubsub.keyspace.news import KeyListener
from rlite_pubsub.keyspace.records import Text
from rlite_pubsub.keyspace.sets import Set
from rlite_pubsub.keyspace.sorted_sets import SortedSet
from rlite_pubsub.keyspace.sweeping import expire_some, sweep_some
from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.errors import StoreFull
from rlite_pubsub.storage.keys import key_records
from rlite_pubsub.storage.keys.proof import faults


@pytest.fixture
def elsewhere(data: Environment, clock: Clock) -> Keyspace:
    """The same keys as another process has them: with a cache of its own."""
    return Keyspace(data, clock)


def value(keyspace: Keyspace, name: bytes, database: int = 0) -> bytes | None:
    record = keyspace.find(database, name)
    assert record is None or isinstance(record, Text)
    found = None if record is None else record.value
    keyspace.end_turn()
    return found


def names(keyspace: Keyspace, database: int = 0) -> set[bytes]:
    found = {name for name, _ in keyspace.databases.walk(database)}
    keyspace.end_turn()
    return found


def test_others_see_a_turn_s_changes_together_once_it_has_ended(keyspace: Keyspace, elsewhere: Keyspace) -> None:
    keyspace.put_string(0, b"a", b"1")
    keyspace.put_string(0, b"b", b"1")
    keyspace.end_turn()
    assert (value(elsewhere, b"a"), value(elsewhere, b"b")) == (b"1", b"1")
    elsewhere.put_string(0, b"a", b"2")
    elsewhere.delete(0, b"b")
    elsewhere.end_turn()
    assert (value(keyspace, b"a"), value(keyspace, b"b")) == (b"2", None)


def test_what_a_turn_changes_it_sees_itself_in_walks_too(keyspace: Keyspace) -> None:
    keyspace.put_string(0, b"a", b"1")
    assert {name for name, _ in keyspace.databases.walk(0)} == {b"a"}
    keyspace.put_string(0, b"b", b"1")
    keyspace.delete(0, b"a")
    assert {name for name, _ in keyspace.databases.walk(0)} == {b"b"}
    assert keyspace.databases.size(0) == 1
    keyspace.end_turn()
    assert names(keyspace) == {b"b"}


def test_who_needs_the_store_in_the_middle_of_a_change_does_not_lose_it(
    keyspace: Keyspace, elsewhere: Keyspace, data: Environment
) -> None:

    class Asking(KeyListener):
        def added(self, database: int, name: bytes) -> None:
            data.read(lambda txn: None)  # as a keyspace event's route is looked up

    keyspace.news.tell(Asking())
    keyspace.put_string(0, b"a", b"1")
    topic = keyspace.create_topic(0, b"t")
    topic.append((1, 0), encode_entry((1, 0), (b"f", b"v")))
    assert keyspace.end_turn() is None
    assert value(elsewhere, b"a") == b"1" and names(elsewhere) == {b"a", b"t"}
    found = elsewhere.find(0, b"t")
    assert isinstance(found, Topic) and found.entry((1, 0)) is not None
    elsewhere.end_turn()
    keyspace.put_string(0, b"b", b"1")
    assert names(keyspace) == {b"a", b"b", b"t"}


def test_a_turn_that_cannot_be_committed_has_changed_nothing(data: Environment, clock: Clock) -> None:
    keyspace = Keyspace(data, clock)
    keyspace.put_string(0, b"a", b"before")
    assert keyspace.end_turn() is None
    keyspace.put_string(0, b"a", b"after")
    keyspace.put_string(0, b"big", b"x" * (8 << 20))
    keyspace.databases.flush(3)
    assert isinstance(keyspace.end_turn(), StoreFull)
    assert (value(keyspace, b"a"), value(keyspace, b"big")) == (b"before", None)
    assert keyspace.databases.sizes() == {0: (1, 0)}


def test_a_turn_in_which_a_command_failed_has_changed_nothing_and_the_next_one_can(keyspace: Keyspace) -> None:
    keyspace.put_string(0, b"a", b"before")
    assert keyspace.end_turn() is None
    keyspace.put_string(0, b"a", b"after")
    keyspace.put_string(0, b"b", b"")
    failure = keyspace.fail(OSError("broken"))
    with pytest.raises(OSError, match="broken"):
        keyspace.put_string(0, b"c", b"")
    assert keyspace.end_turn() is failure
    keyspace.put_string(0, b"d", b"")
    assert keyspace.end_turn() is None
    assert (names(keyspace), value(keyspace, b"a")) == ({b"a", b"d"}, b"before")


def test_every_change_moves_a_key_s_version_and_reading_does_not(keyspace: Keyspace, elsewhere: Keyspace) -> None:
    seen = [keyspace.version(0, b"k")]
    for one in (keyspace, elsewhere, keyspace):
        one.put_string(0, b"k", b"same")
        one.end_turn()
        seen.append(keyspace.version(0, b"k"))
        keyspace.end_turn()
        assert value(elsewhere, b"k") == b"same"
    assert len(set(seen)) == 4
    assert seen[0] == 0
    elsewhere.put_string(0, b"else", b"")
    elsewhere.end_turn()
    assert keyspace.version(0, b"k") == seen[-1]


def test_only_commits_of_others_count_as_theirs(keyspace: Keyspace, elsewhere: Keyspace) -> None:
    value(keyspace, b"k")
    before = keyspace.stored.commits_of_others
    keyspace.put_string(0, b"k", b"1")
    keyspace.end_turn()
    value(keyspace, b"k")
    assert keyspace.stored.commits_of_others == before
    elsewhere.put_string(0, b"k", b"2")
    elsewhere.end_turn()
    value(keyspace, b"k")
    assert keyspace.stored.commits_of_others == before + 1


def test_keys_of_a_flushed_database_are_swept_up_without_a_look_at_the_others_again(
    keyspace: Keyspace, elsewhere: Keyspace
) -> None:
    for number in range(10):
        keyspace.put_string(0, b"%d" % number, b"")
    keyspace.end_turn()
    keyspace.databases.flush(0)
    keyspace.put_string(0, b"k", b"1")
    keyspace.end_turn()
    before, record = keyspace.stored.commits_of_others, keyspace.find(0, b"k")
    while sweep_some(keyspace.parts, 3):
        keyspace.end_turn()
    keyspace.end_turn()
    assert keyspace.find(0, b"k") is record
    keyspace.end_turn()
    assert keyspace.stored.commits_of_others == before
    elsewhere.put_string(0, b"k", b"2")
    elsewhere.end_turn()
    assert value(keyspace, b"k") == b"2"


def test_what_is_written_when_a_turn_gives_way_is_committed_with_what_it_has_done(keyspace: Keyspace) -> None:
    noted: list[bytes | None] = []

    def note() -> None:
        keyspace.writing().put(b"\xffdone", b"1")
        noted.append(keyspace.writing().get(b"\xffdone"))

    keyspace.call_when_giving_way(note)
    keyspace.put_string(0, b"k", b"v")
    seen = keyspace.environment.read(lambda txn: txn.get(b"\xffdone"))  # somebody needs a transaction in its midst
    assert (seen, noted) == (b"1", [b"1"])
    keyspace.call_when_giving_way(None)
    keyspace.put_string(0, b"k", b"w")
    assert keyspace.environment.read(lambda txn: txn.get(b"\xffdone")) == b"1" and len(noted) == 1
    assert value(keyspace, b"k") == b"w"


def test_counts_follow_every_way_in_which_keys_come_and_go(keyspace: Keyspace, clock: Clock) -> None:
    for number in range(6):
        keyspace.put_string(0, b"%d" % number, b"", 5_000 if number % 2 else 0)
    record = keyspace.for_change(0, b"1")
    assert record is not None
    keyspace.set_expiry(record, 0)
    keyspace.put_string(0, b"3", b"")
    record = keyspace.for_change(0, b"5")
    assert record is not None
    keyspace.move(record, 1, b"moved")
    keyspace.copy(record, 2, b"copied")
    keyspace.delete(0, b"0")
    keyspace.end_turn()
    assert keyspace.databases.sizes() == {0: (4, 0), 1: (1, 1), 2: (1, 1)}
    keyspace.end_turn()
    clock.ms = 5_000
    assert value(keyspace, b"moved", 1) is None
    assert expire_some(keyspace.parts, 10) == 1
    keyspace.end_turn()
    assert keyspace.databases.sizes() == {0: (4, 0)}


def test_keys_expire_in_steps_and_are_told_of(keyspace: Keyspace, clock: Clock) -> None:
    listener = Listener()
    keyspace.news.tell(listener)
    for number in range(5):
        keyspace.put_string(number, b"k", b"", 2_000 + number)
    keyspace.put_string(0, b"stays", b"", 9_000)
    keyspace.end_turn()
    clock.ms = 3_000
    assert [expire_some(keyspace.parts, 2) for _ in range(4)] == [2, 2, 1, 0]
    keyspace.end_turn()
    assert listener.heard_expired == [(number, b"k") for number in range(5)]
    assert names(keyspace) == {b"stays"}


def test_while_nothing_may_expire_it_is_only_not_shown(keyspace: Keyspace, clock: Clock) -> None:
    keyspace.put_string(0, b"k", b"", 2_000)
    keyspace.end_turn()
    clock.ms = 3_000
    keyspace.times.hold("paused")
    assert value(keyspace, b"k") is None
    assert keyspace.databases.size(0) == 1
    keyspace.end_turn()
    keyspace.times.go_on("paused")
    assert value(keyspace, b"k") is None
    assert keyspace.databases.size(0) == 0


def test_a_key_that_was_given_more_time_elsewhere_does_not_expire_here(
    keyspace: Keyspace, elsewhere: Keyspace, clock: Clock
) -> None:
    keyspace.put_string(0, b"k", b"v", 2_000)
    keyspace.end_turn()
    value(keyspace, b"k")
    record = elsewhere.for_change(0, b"k")
    assert record is not None
    elsewhere.set_expiry(record, 9_000)
    elsewhere.end_turn()
    clock.ms = 3_000
    assert expire_some(keyspace.parts, 10) == 0
    assert value(keyspace, b"k") == b"v"


def test_a_flushed_database_leaves_nothing_once_it_is_swept(keyspace: Keyspace, data: Environment) -> None:
    for number in range(30):
        keyspace.put_string(1, b"%d" % number, b"v", 9_000)
    keyspace.put_string(0, b"stays", b"v")
    keyspace.end_turn()
    assert keyspace.databases.flush(1) == 30
    keyspace.put_string(1, b"new", b"v")
    keyspace.end_turn()
    assert names(keyspace, 1) == {b"new"}
    while sweep_some(keyspace.parts, 10):
        keyspace.end_turn()
    keyspace.end_turn()
    assert data.read(lambda txn: sum(key[:1] in (b"K", b"E", b"X") for key, _ in txn.cursor())) == 2


def test_swapped_databases_are_swapped_for_others_too(keyspace: Keyspace, elsewhere: Keyspace) -> None:
    keyspace.put_string(0, b"k", b"zero")
    keyspace.end_turn()
    assert value(elsewhere, b"k") == b"zero"
    keyspace.databases.swap(0, 9)
    keyspace.end_turn()
    assert (value(elsewhere, b"k"), value(elsewhere, b"k", 9)) == (None, b"zero")


def test_key_that_is_to_expire_is_counted_where_its_database_is_swapped_in_the_same_turn(
    keyspace: Keyspace, data: Environment
) -> None:
    keyspace.put_string(0, b"k", b"v")
    keyspace.end_turn()
    record = keyspace.for_change(0, b"k")
    assert record is not None
    keyspace.set_expiry(record, 2_000)
    keyspace.databases.swap(0, 9)
    assert keyspace.end_turn() is None
    assert keyspace.databases.sizes() == {9: (1, 1)}
    keyspace.end_turn()
    assert data.read(lambda txn: list(faults(txn))) == []


def test_turn_that_gives_way_keeps_what_a_command_has_found(
    keyspace: Keyspace, data: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another object for the same key would not know what is changed in the first one."""
    monkeypatch.setattr(keyspace_module, "MAX_CACHED_BYTES", 0)
    found = keyspace.create(SortedSet, 0, b"k")
    found.take([(b"%d" % number, 1.0) for number in range(200)])
    keyspace.give_way()
    found.put(b"new", 2.0)
    assert keyspace.for_change(0, b"k") is found
    assert keyspace.end_turn() is None
    assert data.read(lambda txn: list(faults(txn))) == []
    again = keyspace.for_change(0, b"k")
    assert isinstance(again, SortedSet) and again is not found and len(again) == 201
    keyspace.end_turn()


def test_turn_may_give_way_to_who_is_told_of_a_new_key(keyspace: Keyspace, data: Environment) -> None:
    class Asking(KeyListener):
        def added(self, database: int, name: bytes) -> None:
            keyspace.give_way()

    keyspace.news.tell(Asking())
    keyspace.create(List, 0, b"list").push([b"x"], left=True)
    keyspace.fail(RuntimeError("undone"))
    assert keyspace.end_turn() is not None
    assert data.read(lambda txn: list(faults(txn))) == []


def test_a_whole_scan_sees_each_key_and_names_those_whose_time_is_over(keyspace: Keyspace, clock: Clock) -> None:
    for number in range(100):
        keyspace.put_string(0, b"%d" % number, b"", 2_000 if number < 40 else 0)
    keyspace.end_turn()
    clock.ms = 2_000
    cursor, seen = 0, []
    while True:
        cursor, found, over = keyspace.databases.scan(0, cursor, 7)
        seen += [name for name, _ in found]
        assert all(keyspace.find(0, name) is None for name in over)
        keyspace.end_turn()
        if not cursor:
            break
    assert sorted(seen) == sorted(b"%d" % number for number in range(40, 100))
    assert keyspace.databases.size(0) == 60


def test_a_name_that_was_free_is_told_and_one_that_was_not_is_not(keyspace: Keyspace) -> None:
    listener = Listener()
    keyspace.news.tell(listener)
    keyspace.put_string(0, b"a", b"")
    keyspace.put_string(0, b"a", b"")
    keyspace.create_topic(0, b"t")
    keyspace.put_string(0, b"t", b"")
    record = keyspace.for_change(0, b"a")
    assert record is not None
    keyspace.move(record, 0, b"b")
    assert listener.heard_added == [b"a", b"t", b"b"]


def test_a_cache_that_has_grown_too_large_is_dropped(keyspace: Keyspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlite_pubsub.keyspace.keyspace.MAX_CACHED_BYTES", 10_000)
    for number in range(100):
        keyspace.put_string(0, b"%d" % number, b"x" * 100)
        keyspace.end_turn()
    assert len(keyspace.stored.cached(0)) < 50
    assert value(keyspace, b"7") == b"x" * 100


def test_a_large_cache_is_freed_over_many_turns_so_that_nobody_waits_for_all_of_it(keyspace: Keyspace) -> None:
    part = keyspace.stored
    for number in range(5_000):
        keyspace.put_string(0, b"%d" % number, b"")
    part.cached_bytes = 1 << 30
    keyspace.end_turn()
    left = [5_000]
    while left[-1]:
        left.append(sum(map(len, part.dropped)))
        keyspace.put_string(0, b"another", b"")
        keyspace.end_turn()
    assert list(part.cached(0)) == [b"another"]
    assert max(before - after for before, after in zip(left, left[1:], strict=False)) < 1_000
    assert value(keyspace, b"7") == b""


def test_names_of_keys_that_are_not_there_count_in_the_cache(
    keyspace: Keyspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlite_pubsub.keyspace.keyspace.MAX_CACHED_BYTES", 1_000_000)
    for number in range(100):
        assert keyspace.find(0, b"%d" % number + b"x" * 100_000) is None
        keyspace.end_turn()
    assert sum(map(len, keyspace.stored.cached(0))) <= 1_000_000


@pytest.mark.parametrize("kind", [Topic, List, Set])
@pytest.mark.parametrize("way", ["delete", "expire", "overwrite", "copied onto", "moved onto"])
def test_whoever_is_blocked_on_what_goes_looks_in_whichever_way_it_goes(
    keyspace: Keyspace, clock: Clock, kind: type[Topic | List | Set], way: str
) -> None:
    keyspace.put_string(0, b"text", b"")
    keyspace.create(kind, 0, b"k").expires_ms = 5_000
    assert keyspace.end_turn() is None
    keyspace.ready.clear()
    keyspace.touched.clear()
    if way == "delete":
        assert keyspace.delete(0, b"k")
    elif way == "expire":
        clock.ms = 5_000
        assert keyspace.find(0, b"k") is None
    elif way == "overwrite":
        keyspace.put_string(0, b"k", b"")
    else:
        text = keyspace.for_change(0, b"text")
        assert text is not None
        put = keyspace.copy if way == "copied onto" else keyspace.move
        put(text, 0, b"k")
    assert (0, b"k") in keyspace.ready
    assert (0, b"k") in keyspace.touched
    keyspace.end_turn()


@pytest.mark.sources("replaces a function that compiled code calls")
def test_who_has_read_every_key_does_not_look_for_others(data: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Keyspace(data, lambda: 1000), Keyspace(data, lambda: 1000)
    for name in (b"a", b"b"):
        one.put_string(0, name, b"1")
    one.put_string(1, b"elsewhere", b"1")
    assert one.end_turn() is None
    assert other.find(0, b"a") is not None
    assert other.find(0, b"nobody") is None  # it has read one of two
    assert other.find(0, b"b") is not None
    other.end_turn()

    def nobody(*_: object) -> None:
        raise AssertionError("looked for in the store")

    with monkeypatch.context() as patch:
        patch.setattr(key_records, "get", nobody)
        for here in (one, other):
            assert here.find(0, b"nobody") is None and here.find(0, b"nobody else") is None
            assert here.find(2, b"nobody") is None
            here.end_turn()
        one.put_string(0, b"c", b"1")
        assert one.find(0, b"d") is None
        assert one.delete(0, b"a") and not one.delete(0, b"a") and one.find(0, b"e") is None
        assert one.end_turn() is None
    assert other.find(0, b"c") is not None and other.find(0, b"a") is None  # somebody else has written
    other.end_turn()
    for here in (one, other):
        with pytest.raises(AssertionError), monkeypatch.context() as patch:
            patch.setattr(key_records, "get", nobody)
            here.stored.forget()
            here.find(0, b"b")
        here.end_turn()


def test_keys_are_found_whatever_was_read_before(data: Environment) -> None:
    """Writes, removals, flushes, swaps, renames and what others do: who believes that it has read all, has."""
    luck = random.Random(7)
    spaces = [Keyspace(data, lambda: 1000), Keyspace(data, lambda: 1000)]
    model: list[dict[bytes, bytes]] = [{}, {}]
    names = [b"k%d" % number for number in range(6)]
    here = spaces[0]
    for step in range(3000):
        if luck.random() < 0.3:
            assert here.end_turn() is None
            here = luck.choice(spaces)
        at, name = luck.randrange(2), luck.choice(names)
        match luck.randrange(12):
            case 0 | 1 | 2:
                value = b"%d" % step
                here.put_string(at, name, value)
                model[at][name] = value
            case 3 | 4:
                assert here.delete(at, name) == (model[at].pop(name, None) is not None)
            case 5 if luck.random() < 0.2:
                here.stored.flush(at)
                model[at].clear()
            case 6 if luck.random() < 0.3:
                here.stored.swap(0, 1)
                model.reverse()
            case 7 if (record := here.for_change(at, name)) is not None:
                to, new = luck.randrange(2), luck.choice(names)
                if (to, new) != (at, name):
                    here.move(record, to, new)
                    model[to][new] = model[at].pop(name)
            case 8:
                here.stored.forget() if not here.turn.writes else None
            case _:
                found = here.find(at, name)
                assert (found.value if isinstance(found, Text) else None) == model[at].get(name)
    assert here.end_turn() is None
    for here in spaces:
        for at in range(2):
            assert here.stored.space(at).size == len(model[at])
        here.end_turn()
