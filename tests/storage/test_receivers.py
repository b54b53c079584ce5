"""Receivers: both directions of the index agree, and the routes version moves when, and only when, they change."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.names import receivers, subscriptions, version
from rlite_pubsub.storage.names.receivers import CHANNELS, DATABASES, PATTERNS, Receiver

LONG = b"long" * 300


@pytest.mark.parametrize("database", DATABASES.values(), ids=DATABASES)
def test_who_receives_a_name_and_with_how_many_sessions(txn: Txn, database: receivers.Database) -> None:
    receivers.set_counts(txn, 1, {(database.name, b"news"): 3})
    receivers.set_counts(txn, 2, {(database.name, b"news"): 1})
    receivers.set_counts(txn, 3, {(database.name, b"new"): 1})
    assert receivers.subscribers(txn, database, b"news") == [(1, 3), (2, 1)]
    assert receivers.total_sessions(txn, database, b"news") == 4
    assert len(receivers.distinct_names(txn, database)) == 2
    receivers.set_counts(txn, 1, {(database.name, b"news"): 0})
    assert receivers.subscribers(txn, database, b"news") == [(2, 1)]
    others = [other for other in DATABASES.values() if other is not database]
    assert not any(receivers.distinct_names(txn, other) for other in others)


@pytest.mark.parametrize("name", [b"", b"\x00\xff\r\n", b"x" * 254, b"x" * 255, LONG, b"x" * 100_000])
def test_any_name_is_kept_whole(txn: Txn, name: bytes) -> None:
    receivers.set_counts(txn, 1, {(PATTERNS.name, name): 2})
    assert receivers.receivers(txn, PATTERNS) == [Receiver(name, 1, 2)]
    assert subscriptions.held(txn, 1) == [(PATTERNS.byte, name)]
    receivers.set_counts(txn, 1, {(PATTERNS.name, name): 5})
    assert receivers.receivers(txn, PATTERNS) == [Receiver(name, 1, 5)]
    assert receivers.drop_subscriber(txn, 1, 10) == 1
    assert list(txn.cursor().iternext(values=False)) == [databases.ROUTES_VERSION]


def test_names_of_one_length_and_beginning_are_kept_apart(txn: Txn) -> None:
    names = [b"a", b"ab", b"abc", b"", b"x" * 254, b"x" * 255, b"x" * 256, LONG, LONG + b"x"]
    for number, name in enumerate(names):
        receivers.set_counts(txn, number, {(CHANNELS.name, name): 1})
    for number, name in enumerate(names):
        assert receivers.subscribers(txn, CHANNELS, name) == [(number, 1)]
    assert sorted(receivers.distinct_names(txn, CHANNELS)) == sorted(names)


def test_the_version_moves_once_for_news_and_not_for_what_is_known(txn: Txn) -> None:
    counts = {("channels", b"a"): 1, ("shards", b"b"): 2, ("patterns", b"none"): 0}
    before = version.routes_version(txn)
    assert receivers.set_counts(txn, 1, counts)
    assert version.routes_version(txn) == before + 1
    assert not receivers.set_counts(txn, 1, counts)
    assert version.routes_version(txn) == before + 1
    assert receivers.set_counts(txn, 1, {("channels", b"a"): 2})
    assert version.routes_version(txn) == before + 2
    receivers.drop_subscriber(txn, 1, 10)
    assert version.routes_version(txn) == before + 3


def test_a_subscriber_with_many_names_is_dropped_in_slices(txn: Txn) -> None:
    receivers.set_counts(txn, 1, {("channels", b"%d" % number): 1 for number in range(10)})
    receivers.set_counts(txn, 2, {(CHANNELS.name, b"5"): 1})
    assert [receivers.drop_subscriber(txn, 1, 4) for _ in range(4)] == [4, 4, 2, 0]
    assert receivers.receivers(txn, CHANNELS) == [Receiver(b"5", 2, 1)]
    assert subscriptions.subscribers(txn) == [2]


names = st.sampled_from([b"", b"a", b"ab", b"\xff" * 33, b"x" * 254, b"x" * 255, LONG])
steps = st.lists(
    st.tuples(
        st.integers(1, 3), st.dictionaries(st.tuples(st.sampled_from(list(DATABASES)), names), st.integers(0, 2))
    )
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_both_directions_say_the_same(
    shared_environment: Environment, steps: list[tuple[int, dict[tuple[str, bytes], int]]]
) -> None:
    expected: dict[tuple[str, bytes, int], int] = {}
    txn = shared_environment.handle.lmdb.begin(write=True)
    try:
        for subscriber, counts in steps:
            receivers.set_counts(txn, subscriber, counts)
            for (database, name), count in counts.items():
                expected[database, name, subscriber] = count
        expected = {key: count for key, count in expected.items() if count}
        found = {
            (database.name, name, subscriber): count
            for database in DATABASES.values()
            for name, subscriber, count in receivers.receivers(txn, database)
        }
        held = {
            (DATABASES[database].name, name, subscriber)
            for subscriber in subscriptions.subscribers(txn)
            for byte, name in subscriptions.held(txn, subscriber)
            for database in DATABASES
            if DATABASES[database].byte == byte
        }
        assert found == expected
        assert held == set(expected)
    finally:
        txn.abort()
