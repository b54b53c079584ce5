"""Emptying a topic: small or large, what is not an entry stays, and there is nothing left to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from keeper import START_MS, Keeper

from rlite_pubsub.groups import emptying, group
from rlite_pubsub.groups.emptying import empty
from rlite_pubsub.groups.pending import deliver
from rlite_pubsub.groups.release import AT_ONCE, release
from rlite_pubsub.keyspace.sweeping import sweep_some
from rlite_pubsub.keyspace.topic import deferral
from rlite_pubsub.storage.groups import pending
from rlite_pubsub.storage.groups.released import Released
from rlite_pubsub.storage.keys import garbage
from rlite_pubsub.storage.topics import deadlines, entry_ids


@pytest.fixture(params=[0, 1 << 40], ids=["large", "small"])
def keeper(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Keeper]:
    monkeypatch.setattr(emptying, "SMALL_BYTES", request.param)
    monkeypatch.setattr(emptying, "SMALL_WORK", request.param - 1)
    keeper = Keeper(tmp_path)
    yield keeper
    keeper.data.close()


def packed(*numbers: int) -> bytes:
    return b"".join(entry_ids.pack((START_MS, number)) for number in numbers)


def test_entries_and_what_is_in_flight_go_and_counters_settings_and_groups_stay(keeper: Keeper) -> None:
    keeper.topic(entries=50, age_ms=10_000)
    keeper.fill(40)
    topic = keeper.to_change()
    made = group.create(topic, b"g", (START_MS, 20), 21)
    made.change(timeout_ms=1000, max_deliveries=7)
    worker = made.create_consumer(b"c")
    deliver(made, worker, packed(21, 22, 23), keeper.clock.ms)
    release(made, [Released(packed(3), AT_ONCE, 1), Released(packed(4), keeper.clock.ms + 500, 1)])
    deferral.defer(topic, keeper.clock.ms + 100, b"*0\r\n")
    assert made.pending_count == 3 and made.settings.released == 2 and made.lag == 19
    keeper.end_turn()

    assert empty(keeper.to_change()) == 40
    keeper.end_turn()
    keeper.keyspace.stored.forget()

    topic = keeper.to_change()
    assert (topic.length, topic.size_bytes, list(topic.between())) == (0, 0, [])
    assert (topic.last_id, topic.entries_added, topic.trimmed) == ((START_MS, 39), 40, 40)
    assert topic.trimmed_id == (START_MS, 39)
    assert deferral.count(topic) == 0 and deferral.next_due_ms(topic) is None
    found = group.group_of(topic, b"g")
    assert found is not None and (found.last_id, found.lag) == ((START_MS, 39), 0)
    assert (found.pending_count, found.settings.released) == (0, 0)
    assert (found.settings.timeout_ms, found.settings.max_deliveries) == (1000, 7)
    consumer = found.consumer(b"c")
    assert consumer is not None and consumer.pending_count == 0
    assert not list(pending.walk(keeper.keyspace.settle(), found.of_group))
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


def test_what_was_in_flight_of_entries_that_are_long_gone_goes_too(keeper: Keeper) -> None:
    keeper.topic()
    keeper.fill(10)
    topic = keeper.to_change()
    made = group.create(topic, b"g", (START_MS, 9), 10)
    deliver(made, made.create_consumer(b"c"), packed(1, 2), keeper.clock.ms)
    topic.trim(10)
    keeper.end_turn()
    assert empty(keeper.to_change()) == 0
    keeper.end_turn()
    keeper.keyspace.stored.forget()
    topic = keeper.to_change()
    found = group.group_of(topic, b"g")
    assert found is not None and (found.pending_count, found.lag) == (0, 0)
    assert (topic.trimmed, topic.trimmed_id) == (10, (START_MS, 9))


def test_group_whose_place_is_ahead_of_its_topic_keeps_it(keeper: Keeper) -> None:
    keeper.topic()
    keeper.fill(10)
    group.create(keeper.to_change(), b"g", (START_MS + 5, 0), None)
    keeper.end_turn()
    empty(keeper.to_change())
    keeper.end_turn()
    found = group.group_of(keeper.to_change(), b"g")
    assert found is not None and (found.last_id, found.lag) == ((START_MS + 5, 0), 0)


def test_nothing_is_due_any_more(keeper: Keeper) -> None:
    keeper.topic()
    keeper.fill(3)
    topic = keeper.to_change()
    made = group.create(topic, b"g", (START_MS, 0), 1)
    made.change(timeout_ms=1000)
    deliver(made, made.create_consumer(b"c"), packed(1, 2), keeper.clock.ms)
    deferral.defer(topic, keeper.clock.ms + 100, b"*0\r\n")
    keeper.end_turn()
    number = topic.number
    empty(keeper.to_change())
    keeper.end_turn()
    first = deadlines.first(keeper.keyspace.settle())
    topic = keeper.to_change()
    assert first is None or (first.topic == number != topic.number), "what is garbage is passed over"


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
