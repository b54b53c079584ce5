"""Emptying a topic: small or large, what is not an entry stays."""

from __future__ import annotations

import pytest
from keeper import START_MS, Keeper

from rlite_pubsub.groups import group
from rlite_pubsub.keyspace.sweeping import sweep_some
from rlite_pubsub.keyspace.topic import emptying
from rlite_pubsub.keyspace.topic.emptying import empty
from rlite_pubsub.storage.groups import pending
from rlite_pubsub.storage.keys import garbage
from rlite_pubsub.storage.topics import entry_ids


@pytest.fixture(params=[0, 1 << 40], ids=["large", "small"])
def keeper(keeper: Keeper, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Keeper:
    monkeypatch.setattr(emptying, "SMALL_BYTES", request.param)
    return keeper


def test_entries_go_and_counters_settings_and_groups_stay(keeper: Keeper) -> None:
    keeper.topic(entries=50, age_ms=10_000)
    keeper.fill(40)
    topic = keeper.to_change()
    made = group.create(topic, b"g", (START_MS, 20), 21)
    worker = made.create_consumer(b"c")
    pending.add(keeper.keyspace.writing(), made.of_group, (worker.number, 0, 1), entry_ids.pack((START_MS, 3)))
    made.changed()
    keeper.end_turn()

    assert empty(keeper.to_change()) == 40
    keeper.end_turn()
    keeper.keyspace.stored.forget()

    topic = keeper.to_change()
    assert (topic.length, topic.size_bytes, list(topic.between())) == (0, 0, [])
    assert (topic.last_id, topic.entries_added, topic.trimmed) == ((START_MS, 39), 40, 40)
    assert topic.trimmed_id == (START_MS, 39)
    found = group.group_of(topic, b"g")
    assert found is not None and found.last_id == (START_MS, 20)
    assert found.consumer(b"c") is not None
    runs = pending.walk(keeper.keyspace.settle(), found.of_group)
    assert [run.ids for run in runs] == [entry_ids.pack((START_MS, 3))]
    keeper.end_turn()

    while garbage.exists(keeper.keyspace.settle()):
        sweep_some(keeper.keyspace.parts, 10)
        keeper.end_turn()
    keeper.append(*[(START_MS + 1, number) for number in range(60)])
    keeper.work()
    assert len(keeper.ids()) == 50
    keeper.clock.ms += 10_002
    keeper.work()
    assert keeper.ids() == []
    assert keeper.due() is None


def test_entries_of_this_very_turn_go_too(keeper: Keeper) -> None:
    keeper.topic()
    topic = keeper.to_change()
    topic.append((5, 5), b"*0\r\n")
    assert empty(topic) == 1
    topic.append((6, 6), b"*0\r\n")
    keeper.end_turn()
    assert keeper.ids() == [(6, 6)]


def test_empty_topic_can_be_emptied(keeper: Keeper) -> None:
    keeper.topic()
    assert empty(keeper.to_change()) == 0
    keeper.end_turn()
    assert keeper.ids() == []
