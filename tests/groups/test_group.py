"""Groups of topics: they are as they were left, whoever reads them next."""

from __future__ import annotations

from rlite_pubsub.groups import group as groups
from rlite_pubsub.groups import pending
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.groups.group_settings import GroupSettings
from rlite_pubsub.storage.topics.entry_ids import MIN
from tests.keyspace.topic_house import NAME, TopicHouse, held, packed


def group_records(house: TopicHouse) -> int:
    """How many records of groups, consumers and pending entries there are."""
    txn = house.topic.settle()
    prefixes = (databases.GROUPS, databases.CONSUMERS, databases.PENDING)
    return sum(len(list(databases.items(txn, prefix))) for prefix in prefixes)


def test_a_group_is_read_back_as_it_was(house: TopicHouse) -> None:
    group = house.create_group(b"g", (3, 4), 5)
    group.settings = GroupSettings(timeout_ms=1000)
    group.create_consumer(b"c")
    house.forget()
    group = house.group()
    assert (group.last_id, group.entries_read, group.pending_count) == ((3, 4), 5, 0)
    assert group.settings.timeout_ms == 1000
    assert [(consumer.name, consumer.seen_ms) for consumer in group.consumers()] == [(b"c", house.now_ms)]


def test_what_a_turn_changes_is_not_kept_if_the_turn_is_undone(house: TopicHouse) -> None:
    house.create_group()
    house.end_turn()
    group = house.group()
    group.last_id = (9, 9)
    group.create_consumer(b"c")
    group.changed()
    house.keyspace.fail(RuntimeError("undone"))
    house.keyspace.end_turn()
    assert house.group().last_id == MIN
    assert house.group().consumers() == []


def test_one_consumer_of_many_is_found_without_the_others(house: TopicHouse) -> None:
    group = house.create_group()
    for number in range(50):
        group.create_consumer(b"c%d" % number)
    house.forget()
    group = house.group()
    found = group.consumer(b"c7")
    assert found is not None and found.number == 8
    assert group.consumer(b"nobody") is None
    assert group.numbered(8) is found
    assert [consumer.name for consumer in group.consumers()] == sorted(b"c%d" % number for number in range(50))
    assert group.consumer(b"c7") is found


def test_groups_come_by_name(house: TopicHouse) -> None:
    for name in (b"b", b"long" * 100, b"", b"a", b"ab"):
        house.create_group(name)
    house.forget()
    assert [group.name for group in groups.all_groups(house.topic)] == [b"", b"a", b"ab", b"b", b"long" * 100]


def test_a_consumer_that_is_deleted_takes_its_pending_entries_along(house: TopicHouse) -> None:
    group = house.create_group()
    one, other = group.create_consumer(b"a"), group.create_consumer(b"b")
    for start in range(0, 20, 4):
        pending.deliver(group, one, packed(start + 1, start + 2), start)
        pending.deliver(group, other, packed(start + 3, start + 4), start)
    group.delete_consumer(one)
    assert sorted(held(group)) == [number for number in range(1, 21) if number % 4 in (3, 0)]
    house.forget()
    assert [consumer.name for consumer in house.group().consumers()] == [b"b"]
    assert house.group().consumer_count == 1


def test_a_new_consumer_of_an_old_name_does_not_own_what_the_old_one_did(house: TopicHouse) -> None:
    group = house.create_group()
    old = group.create_consumer(b"c")
    group.delete_consumer(old)
    assert group.create_consumer(b"c").number != old.number


def test_nothing_of_a_group_that_is_destroyed_stays_in_the_store(house: TopicHouse) -> None:
    house.create_group(b"other")
    house.end_turn()
    before = group_records(house)
    group = house.create_group()
    pending.deliver(group, group.create_consumer(b"c"), packed(1, 2, 3), 0)
    house.end_turn()
    assert group_records(house) == before + 4
    groups.destroy(house.group())
    assert groups.group_of(house.topic, b"g") is None
    house.forget()
    assert group_records(house) == before
    assert groups.group_of(house.topic, b"g") is None
    assert house.topic.group_count == 1


def test_a_group_made_anew_has_nothing_of_the_one_before(house: TopicHouse) -> None:
    group = house.create_group()
    pending.deliver(group, group.create_consumer(b"c"), packed(1, 2, 3), 0)
    groups.destroy(group)
    group = house.create_group()
    assert held(group) == {}
    assert group.consumers() == []


def test_who_waits_for_a_group_that_is_destroyed_is_woken(house: TopicHouse) -> None:
    house.create_group()
    house.end_turn()
    house.keyspace.ready.clear()
    house.keyspace.touched.clear()
    groups.destroy(house.group())
    assert (0, NAME) in house.keyspace.ready
    assert (0, NAME) in house.keyspace.touched


def test_a_copy_has_groups_of_its_own(house: TopicHouse) -> None:
    group = house.create_group(b"g", (7, 0), 3)
    pending.deliver(group, group.create_consumer(b"c"), packed(1, 2, 3), 5)
    house.keyspace.copy(house.topic, 0, b"copy")
    pending.acknowledge(house.group(), packed(2))
    house.forget()
    copy = house.keyspace.for_change(0, b"copy")
    assert isinstance(copy, Topic)
    copied = groups.group_of(copy, b"g")
    assert copied is not None
    assert (copied.last_id, copied.entries_read) == ((7, 0), 3)
    assert held(copied) == {number: (b"c", 5, 1) for number in (1, 2, 3)}
    assert sorted(held(house.group())) == [1, 3]
