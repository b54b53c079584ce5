"""The cron's part in retention: exact to a second, a little at a time, and alive after a failure."""

from __future__ import annotations

import logging
from itertools import count
from pathlib import Path

import pytest
from recorded_session import House

from rlite_pubsub.engine.pace import SLICE_S
from rlite_pubsub.engine.topics import keeping
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.errors import StoreFull
from rlite_pubsub.storage.topics import topic_settings
from rlite_pubsub.storage.topics.topic_settings import RetentionLimits, Rule


def length(house: House, name: bytes = b"t") -> int:
    keyspace = house.engine.keyspace
    assert keyspace is not None
    topic = keyspace.find(0, name)
    house.engine.commit()
    return topic.length if isinstance(topic, Topic) else 0


def tick(house: House) -> None:
    """One run of the cron, a tenth of a second after the last one."""
    house.timers.advance(0.1)
    house.engine.commit()
    house.engine.cron(house.clock.now)
    house.engine.commit()


def test_entry_goes_within_a_second_of_its_age_and_not_before() -> None:
    house = House(retain="t 5s")
    session = house.session()
    session.do("PUBLISH", "t", "x")
    for _ in range(50):
        tick(house)
    assert length(house) == 1
    for _ in range(10):
        tick(house)
    assert length(house) == 0


def test_topics_that_are_due_together_do_not_need_a_turn_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """One topic was trimmed in each turn, so 2,000 with entries for 2 s kept those of 16 s, and more each second."""
    monkeypatch.setattr(keeping, "thread_time", lambda: 0.0)
    house = House(retain="t* 5s")
    session = house.session()
    for number in range(50):
        session.do("XADD", f"t{number}", "*", "f", "v")
    house.clock.now += 10
    house.engine.cron(house.clock.now)
    house.engine.commit()
    assert [length(house, b"t%d" % number) for number in range(50)] == [0] * 50


def test_many_entries_go_in_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr(keeping, "thread_time", lambda: next(ticks) * SLICE_S)
    house = House(retain="t 10 entries")
    session = house.session()
    for _ in range(100):
        for _ in range(30):
            session.hub.look_around()
            session.do("PUBLISH", "t", "x" * 2000)
    lengths = []
    for _ in range(100):
        house.timers.advance(0.001)
        house.engine.commit()
        house.engine.cron(house.clock.now)
        house.engine.commit()
        lengths.append(length(house))
    assert lengths[-1] == 10
    assert max(before - after for before, after in zip(lengths, lengths[1:], strict=False)) <= 2 * 64 * 2
    assert len(set(lengths)) > 10


def test_trimming_that_fails_is_said_once_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    house = House(retain="t 1 entries")
    session = house.session()
    for word in ("a", "b", "c"):
        session.do("PUBLISH", "t", word)
    keeping = house.engine.keeping
    assert keeping is not None

    def refuse() -> bool:
        raise StoreFull(house.data.path, 1)

    with monkeypatch.context() as patches, caplog.at_level(logging.WARNING, "rlite_pubsub"):
        patches.setattr(keeping.retention, "step", refuse)
        for _ in range(10):
            tick(house)
    assert len([record for record in caplog.records if "Can't trim" in record.message]) == 1
    tick(house)
    assert length(house) == 1


def test_rules_whose_writer_died_before_it_could_say_so_are_noticed() -> None:
    house = House()
    session = house.session()
    house.data.write(lambda txn: topic_settings.put_rules(txn, [Rule(b"t", RetentionLimits(entries=5))]))
    tick(house)
    assert b"t 5 entries" in session.do("CONFIG", "GET", "retain")
    session.do("PUBLISH", "t", "x")
    assert length(house) == 1


def test_rules_that_the_store_could_not_take_at_the_start_are_in_effect_once_it_can(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise StoreFull(Path("data.mdb"), 1)

    with monkeypatch.context() as patches, caplog.at_level(logging.WARNING, "rlite_pubsub"):
        patches.setattr(topic_settings, "put_rules", refuse)
        house = House(retain="t 7d")
        for _ in range(5):
            tick(house)
    session = house.session()
    session.do("PUBLISH", "t", "x")
    assert length(house) == 0
    assert len([record for record in caplog.records if "not in effect" in record.message]) == 1
    tick(house)
    tick(house)
    session.do("PUBLISH", "t", "x")
    assert length(house) == 1
    assert b"t 7d" in session.do("CONFIG", "GET", "retain")


def test_nothing_is_trimmed_while_writes_are_paused() -> None:
    house = House(retain="t 1 entries")
    session, other = house.session(), house.session()
    session.do("PUBLISH", "t", "a")
    session.do("PUBLISH", "t", "b")
    other.do("CLIENT", "PAUSE", "1000", "WRITE")
    for _ in range(5):
        tick(house)
    assert length(house) == 2
    for _ in range(10):
        tick(house)
    assert length(house) == 1
