"""Retention: what goes, what stays, when, in how small steps, and whoever does it."""

from __future__ import annotations

from pathlib import Path

from keeper import START_MS, Keeper

from rlite_pubsub.groups import group
from rlite_pubsub.keyspace.topic import retention
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.groups import pending
from rlite_pubsub.storage.topics import entry_ids, topic_settings
from rlite_pubsub.storage.topics.topic_settings import NOTHING_SAID, RetentionLimits

# -- what goes


def test_topic_keeps_as_many_entries_as_it_may_and_the_newest(keeper: Keeper) -> None:
    keeper.topic(entries=3)
    keeper.fill(10)
    assert keeper.work()
    assert keeper.ids() == [(START_MS, number) for number in (7, 8, 9)]


def test_topic_keeps_as_many_bytes_as_it_may(keeper: Keeper) -> None:
    size = 0
    keeper.topic(size_bytes=1000)
    keeper.fill(200)
    keeper.work()
    topic = keeper.to_change()
    size = topic.size_bytes
    one = size // topic.length
    keeper.end_turn()
    assert 1000 - one < size <= 1000
    assert keeper.ids()[-1] == (START_MS, 199)


def test_entry_stays_to_the_last_millisecond_of_its_age_and_not_one_longer(keeper: Keeper) -> None:
    keeper.topic(age_ms=5000)
    keeper.append((START_MS, 0), (START_MS, 1), (START_MS + 1, 0), (START_MS + 3000, 0))
    keeper.clock.ms = START_MS + 5000
    assert not keeper.work()
    assert len(keeper.ids()) == 4
    keeper.clock.ms += 1
    assert keeper.work()
    assert keeper.ids() == [(START_MS + 1, 0), (START_MS + 3000, 0)]
    keeper.clock.ms += 1
    keeper.work()
    assert keeper.ids() == [(START_MS + 3000, 0)]
    keeper.clock.ms = START_MS + 8001
    keeper.work()
    assert keeper.ids() == []
    assert keeper.due() is None


def test_several_limits_hold_at_once(keeper: Keeper) -> None:
    keeper.topic(age_ms=1000, entries=5)
    keeper.fill(10)
    keeper.work()
    assert len(keeper.ids()) == 5
    keeper.clock.ms += 1001
    keeper.work()
    assert keeper.ids() == []


def test_what_was_appended_out_of_time_goes_by_its_id(keeper: Keeper) -> None:
    keeper.topic(age_ms=1000)
    keeper.append((1, 1), (5, 5))
    keeper.work()
    assert keeper.ids() == []


def test_topic_without_limits_is_left_alone_and_has_no_settings(keeper: Keeper) -> None:
    keeper.topic()
    keeper.fill(100)
    keeper.clock.ms += 10**12
    assert not keeper.work()
    assert len(keeper.ids()) == 100
    assert keeper.settings() is None


def test_limit_that_is_lowered_counts_at_once_and_one_that_is_lifted_no_more(keeper: Keeper) -> None:
    keeper.topic(entries=50)
    keeper.fill(40)
    assert not keeper.work()
    keeper.retention.set_own(keeper.to_change(), RetentionLimits(0, 10, 0))
    keeper.end_turn()
    keeper.work()
    assert len(keeper.ids()) == 10
    keeper.retention.set_own(keeper.to_change(), RetentionLimits(0, 0, 0))
    keeper.end_turn()
    keeper.fill(40)
    keeper.work()
    assert len(keeper.ids()) == 50


def test_age_that_is_lowered_counts_at_once_and_so_does_one_of_a_new_name(keeper: Keeper) -> None:
    keeper.rule((b"short", RetentionLimits(age_ms=10)))
    keeper.topic(age_ms=10_000)
    keeper.fill(5)
    keeper.retention.set_own(keeper.to_change(), NOTHING_SAID._replace(age_ms=1000))
    keeper.end_turn()
    assert keeper.due() == (START_MS + 1001, 1)
    keeper.retention.set_own(keeper.to_change(), NOTHING_SAID)
    keeper.keyspace.move(keeper.to_change(), 0, b"short")
    keeper.end_turn()
    keeper.work()
    assert keeper.due() == (START_MS + 11, 1)


def test_what_was_removed_is_counted_and_readers_can_know_up_to_where(keeper: Keeper) -> None:
    keeper.topic(entries=3)
    keeper.fill(10)
    topic = keeper.to_change()
    size = topic.size_bytes
    keeper.end_turn()
    keeper.work()
    topic = keeper.to_change()
    settings = keeper.retention.settings(topic)
    assert settings is not None
    assert settings.removed_entries == keeper.retention.removed_entries == topic.trimmed == 7
    assert settings.removed_bytes == keeper.retention.removed_bytes == size - topic.size_bytes
    assert topic.trimmed_id == (START_MS, 6)
    assert topic.first_id == (START_MS, 7)


# -- how


def test_step_removes_no_more_than_its_pages(keeper: Keeper) -> None:
    keeper.topic(entries=1)
    for _ in range(20):
        keeper.fill(1000, payload=b"x" * 100)
    pages = 20_000 * 150 // 4096
    steps, before = 0, len(keeper.ids())
    while keeper.step():
        steps += 1
        after = len(keeper.ids())
        assert 0 <= before - after <= retention.STEP_CHUNKS * 4096 // 150
        before = after
    assert steps >= pages // retention.STEP_CHUNKS
    assert before == 1


def test_step_stops_where_entries_are_large(keeper: Keeper) -> None:
    keeper.topic(entries=1)
    keeper.fill(10, payload=b"x" * 300_000)
    assert keeper.step()
    assert len(keeper.ids()) == 6
    keeper.work()
    assert len(keeper.ids()) == 1


def test_step_that_is_interrupted_has_done_nothing(keeper: Keeper) -> None:
    keeper.topic(entries=3)
    keeper.fill(10)
    keeper.retention.step()
    keeper.keyspace.fail(RuntimeError("interrupted"))
    keeper.keyspace.end_turn()
    assert len(keeper.ids()) == 10
    keeper.work()
    assert len(keeper.ids()) == 3
    settings = keeper.settings()
    assert settings is not None and settings.removed_entries == 7


def test_due_is_known_to_whoever_opens_the_store_next(keeper: Keeper, tmp_path: Path) -> None:
    keeper.topic(entries=3)
    keeper.fill(10)
    other = Keeper(tmp_path, keeper)
    assert other.work()
    assert len(keeper.ids()) == 3


def test_two_processes_that_trim_one_topic_remove_nothing_twice(keeper: Keeper, tmp_path: Path) -> None:
    other = Keeper(tmp_path, keeper)
    keeper.topic(entries=100)
    for _ in range(10):
        keeper.fill(1000, payload=b"x" * 100)
    while any([keeper.step(), other.step()]):
        pass
    assert len(keeper.ids()) == len(other.ids()) == 100
    assert keeper.retention.removed_entries and other.retention.removed_entries
    settings = keeper.settings()
    assert settings is not None
    assert settings.removed_entries == keeper.retention.removed_entries + other.retention.removed_entries == 9900


def test_clock_that_goes_back_does_not_keep_the_loop_busy(keeper: Keeper) -> None:
    keeper.topic(age_ms=1000)
    keeper.fill(3)
    keeper.clock.ms += 2000
    keeper.retention.step()
    keeper.keyspace.fail(RuntimeError("undone"))
    keeper.keyspace.end_turn()
    keeper.clock.ms = START_MS - 10**6
    assert keeper.work() == 0
    assert len(keeper.ids()) == 3


# -- what keys do


def test_renamed_topic_keeps_its_limits(keeper: Keeper) -> None:
    keeper.topic(entries=3)
    keeper.keyspace.move(keeper.to_change(), 0, b"u")
    keeper.end_turn()
    keeper.fill(10, b"u")
    keeper.work()
    assert len(keeper.ids(b"u")) == 3


def test_renamed_topic_is_found_when_its_entries_are_too_old(keeper: Keeper) -> None:
    keeper.topic(age_ms=1000)
    keeper.fill(5)
    keeper.keyspace.move(keeper.to_change(), 3, b"u")
    keeper.end_turn()
    keeper.clock.ms += 1001
    keeper.work()
    moved = keeper.keyspace.find(3, b"u")
    assert isinstance(moved, Topic) and moved.length == 0
    keeper.end_turn()


def test_copied_topic_has_its_limits_too_and_counts_for_itself(keeper: Keeper) -> None:
    keeper.topic(entries=3)
    keeper.fill(2)
    keeper.keyspace.copy(keeper.to_change(), 5, b"u")
    keeper.end_turn()
    keeper.fill(10)
    copied = keeper.keyspace.for_change(5, b"u")
    assert isinstance(copied, Topic)
    for number in range(10, 20):
        copied.append((START_MS, number), b"*0\r\n")
    keeper.end_turn()
    keeper.work()
    copied = keeper.keyspace.find(5, b"u")
    assert isinstance(copied, Topic)
    assert copied.length == 3 and copied.trimmed == 9
    keeper.end_turn()
    assert len(keeper.ids()) == 3


def test_topic_that_is_gone_when_it_is_due_is_forgotten(keeper: Keeper) -> None:
    keeper.topic(entries=3)
    keeper.fill(10)
    keeper.keyspace.delete(0, b"t")
    keeper.end_turn()
    keeper.work()
    assert keeper.due() is None


def test_topic_of_a_flushed_database_is_forgotten_and_one_of_a_swapped_is_not(keeper: Keeper) -> None:
    keeper.topic(entries=3)
    keeper.fill(10)
    keeper.keyspace.databases.swap(0, 1)
    keeper.end_turn()
    keeper.work()
    swapped = keeper.keyspace.for_change(1, b"t")
    assert isinstance(swapped, Topic) and swapped.length == 3
    swapped.append((START_MS, 99), b"*0\r\n")
    keeper.end_turn()
    keeper.keyspace.databases.flush(1)
    keeper.end_turn()
    keeper.work()
    assert keeper.due() is None


# -- groups


def held(keeper: Keeper, *, last: int, unacknowledged: tuple[int, ...] = ()) -> None:
    """A group that holds, has been given the entries up to `last`, and has some of them pending."""
    topic = keeper.to_change()
    made = group.create(topic, b"g", (START_MS, last), None)
    made.settings = made.settings._replace(holds=True)
    if unacknowledged:
        ids = b"".join(entry_ids.pack((START_MS, number)) for number in unacknowledged)
        pending.add(keeper.keyspace.writing(), made.of_group, (1, 0, 1), ids)
    made.changed()
    keeper.end_turn()


def test_what_a_holding_group_has_not_been_given_stays(keeper: Keeper) -> None:
    keeper.topic(entries=3)
    keeper.fill(10)
    held(keeper, last=4)
    keeper.work()
    assert keeper.ids() == [(START_MS, number) for number in range(5, 10)]


def test_what_a_holding_group_has_not_acknowledged_stays_and_goes_soon_after(keeper: Keeper) -> None:
    keeper.topic(entries=3)
    keeper.fill(10)
    held(keeper, last=9, unacknowledged=(2, 8))
    keeper.work()
    assert keeper.ids()[0] == (START_MS, 2)
    assert not keeper.step()
    found = group.group_of(keeper.to_change(), b"g")
    assert found is not None
    pending.delete_all(keeper.keyspace.writing(), found.topic.number, found.number)
    keeper.end_turn()
    keeper.clock.ms += 1000
    keeper.work()
    assert keeper.ids()[0] == (START_MS, 7)


def test_held_topic_that_grows_does_not_keep_the_loop_busy(keeper: Keeper) -> None:
    keeper.topic(entries=3)
    keeper.fill(10)
    held(keeper, last=0)
    for _ in range(5):
        keeper.fill(10)
        assert keeper.work() <= 2
    for _ in range(100):
        keeper.clock.ms += 1
        assert not keeper.step()


def test_group_that_does_not_hold_loses_what_retention_removes(keeper: Keeper) -> None:
    keeper.topic(entries=3)
    keeper.fill(10)
    held(keeper, last=0)
    found = group.group_of(keeper.to_change(), b"g")
    assert found is not None
    found.settings = found.settings._replace(holds=False)
    found.changed()
    keeper.end_turn()
    keeper.clock.ms += 1000
    keeper.work()
    assert len(keeper.ids()) == 3


# -- rules


def test_rule_holds_for_topics_of_its_names_and_the_first_that_matches_counts(keeper: Keeper) -> None:
    keeper.rule((b"a.special", RetentionLimits(entries=5)), (b"a.*", RetentionLimits(entries=3)))
    for name in (b"a.special", b"a.b", b"b"):
        keeper.topic(name)
        keeper.fill(10, name)
    keeper.work()
    assert [len(keeper.ids(name)) for name in (b"a.special", b"a.b", b"b")] == [5, 3, 10]


def test_topics_own_limits_go_before_the_rules_each_by_itself(keeper: Keeper) -> None:
    keeper.rule((b"*", RetentionLimits(entries=3, age_ms=1000)))
    keeper.topic(entries=5)
    keeper.fill(10)
    keeper.work()
    assert len(keeper.ids()) == 5
    keeper.clock.ms += 1001
    keeper.work()
    assert keeper.ids() == []


def test_topic_can_be_exempt_from_a_rule(keeper: Keeper) -> None:
    keeper.rule((b"*", RetentionLimits(entries=3)))
    keeper.topic(entries=0)
    keeper.fill(10)
    keeper.work()
    assert len(keeper.ids()) == 10


def test_new_rules_hold_for_topics_that_are_there_whatever_their_number(keeper: Keeper) -> None:
    names = [b"t%d" % number for number in range(retention.STEP_KEYS * 2 + 50)]
    for name in names:
        keeper.keyspace.create_topic(0, name)
    keeper.keyspace.put_string(0, b"t-string", b"x")
    keeper.end_turn()
    for name in names[::10]:
        keeper.fill(5, name)
    keeper.rule((b"t*", RetentionLimits(entries=2)))
    keeper.work()
    assert {len(keeper.ids(name)) for name in names[::10]} == {2}


def test_rules_that_change_change_what_is_due(keeper: Keeper) -> None:
    keeper.rule((b"t", RetentionLimits(age_ms=10_000)))
    keeper.topic()
    keeper.fill(5)
    keeper.rule((b"t", RetentionLimits(age_ms=1000)))
    keeper.work()
    assert keeper.due() == (START_MS + 1001, 1)
    keeper.rule()
    keeper.work()
    keeper.clock.ms += 10**6
    keeper.work()
    assert len(keeper.ids()) == 5


def test_renamed_topic_comes_under_the_rules_of_its_new_name(keeper: Keeper) -> None:
    keeper.rule((b"short", RetentionLimits(entries=2)))
    keeper.topic()
    keeper.fill(5)
    keeper.keyspace.move(keeper.to_change(), 0, b"short")
    keeper.end_turn()
    keeper.work()
    assert len(keeper.ids(b"short")) == 2


def test_process_that_has_not_looked_goes_by_the_rules_of_its_transaction(keeper: Keeper, tmp_path: Path) -> None:
    other = Keeper(tmp_path, keeper)
    keeper.topic()
    keeper.fill(5)
    other.rule((b"t", RetentionLimits(entries=2)))
    other.work()
    keeper.fill(5)
    assert keeper.due() is not None
    keeper.topic(b"u")
    assert keeper.settings(b"u") is None
    other.rule((b"u", RetentionLimits(entries=2)))
    other.work()
    keeper.fill(5, b"u")
    other.work()
    assert [len(keeper.ids(name)) for name in (b"t", b"u")] == [7, 2]


def test_walk_that_is_interrupted_is_taken_up_where_it_was(keeper: Keeper, tmp_path: Path) -> None:
    for number in range(retention.STEP_KEYS * 3):
        keeper.keyspace.create_topic(0, b"t%d" % number)
    keeper.end_turn()
    keeper.rule((b"t*", RetentionLimits(entries=2)))
    keeper.step()
    place = topic_settings.walk(keeper.keyspace.settle())
    keeper.end_turn()
    assert place
    other = Keeper(tmp_path, keeper)
    assert other.work() == 3
