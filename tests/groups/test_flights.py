"""What is over its time, or due: found by one look-up, done in short steps, by any of several, and nothing is lost."""

from __future__ import annotations

import random

import pytest

from rlite_pubsub.groups import claims, flights, landing, pending, punctuality, release
from rlite_pubsub.groups.group import Group
from rlite_pubsub.groups.pending import Amendment
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic import deferral
from rlite_pubsub.storage.groups import in_flight, released
from rlite_pubsub.storage.groups.released import Released
from rlite_pubsub.storage.topics import deadlines, entry_ids
from rlite_pubsub.storage.topics.entry_ids import BYTES
from tests.keyspace.topic_house import TopicHouse, held, numbers, packed

TIMEOUT_MS = 1000


@pytest.fixture
def house(house: TopicHouse) -> TopicHouse:
    group = house.create_group()
    group.create_consumer(b"a")
    group.create_consumer(b"b")
    group.settings = group.settings._replace(timeout_ms=TIMEOUT_MS)
    house.end_turn()
    return house


def deliver(house: TopicHouse, *ids: int, name: bytes = b"a") -> None:
    consumer = house.group().consumer(name)
    assert consumer is not None
    pending.deliver(house.group(), consumer, packed(*ids), house.now_ms)


def work(house: TopicHouse) -> int:
    """Do all that is due; how many steps it took."""
    part = house.keyspace.stored
    steps = 0
    while punctuality.step(part):
        house.end_turn()
        steps += 1
        assert steps < 1000, "it never ends"
    house.end_turn()
    return steps


def given_back(group: Group) -> dict[int, tuple[int, int]]:
    """number -> (due, deliveries) of what is released. Checks that both records of each agree, and the count."""
    txn, prefix = group.topic.settle(), release.of_group(group)
    by_id = {}
    for one in released.ids_from(txn, prefix):
        found = released.get(txn, prefix, one)
        assert found is not None
        by_id[numbers(one)[0]] = (found.due_ms, found.deliveries)
    by_time = released.due(txn, prefix, 1 << 60, None)
    assert {numbers(one.id)[0]: (one.due_ms, one.deliveries) for one in by_time} == by_id
    assert [one.due_ms for one in by_time] == sorted(one.due_ms for one in by_time)
    assert group.settings.released == len(by_id)
    return by_id


@pytest.mark.sources("counts the calls of a compiled method")
def test_nothing_is_looked_at_but_the_order_while_nothing_is_due(
    house: TopicHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.append(*range(1, 1001))
    deliver(house, *range(1, 1001))
    deferral.defer(house.topic, house.now_ms + 5000, b"*2\r\n$1\r\na\r\n$1\r\n1\r\n")
    house.forget()
    looked: list[str] = []
    for owner, name in ((in_flight, "walk"), (released, "due"), (deadlines, "topic_row"), (house.keyspace, "find")):
        monkeypatch.setattr(owner, name, lambda *_, name=name: looked.append(name))
    assert punctuality.step(house.keyspace.stored) is False
    assert not house.keyspace.turn.writes
    assert looked == []


@pytest.mark.parametrize("offset_ms", [0, 1, 5, 9])
def test_entry_is_released_no_sooner_and_not_much_later_than_its_time(house: TopicHouse, offset_ms: int) -> None:
    house.now_ms += offset_ms
    delivered_ms = house.now_ms
    house.append(1)
    deliver(house, 1)
    house.now_ms += TIMEOUT_MS - 3
    while not given_back(house.group()):
        assert house.now_ms <= delivered_ms + TIMEOUT_MS + TIMEOUT_MS // 100
        house.now_ms += 1
        work(house)
    assert house.now_ms >= delivered_ms + TIMEOUT_MS


def test_many_that_are_over_their_time_are_released_in_short_steps(house: TopicHouse) -> None:
    house.append(*range(1, 2001))
    deliver(house, *range(1, 2001))
    house.end_turn()
    house.now_ms += TIMEOUT_MS + 20
    assert work(house) >= 2000 // (landing.STEP_ENTRIES + 120)
    assert given_back(house.group()) == {number: (0, 1) for number in range(1, 2001)}
    assert held(house.group()) == {}
    assert deadlines.first(house.keyspace.reading()) is None


def test_step_looks_at_no_more_than_so_many_runs_and_goes_on_behind_them(
    house: TopicHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing, "STEP_RUNS", 10)
    house.append(*range(1, 101))
    for number in range(1, 101):
        deliver(house, number, name=b"ab"[number % 2 : number % 2 + 1])
    house.end_turn()
    late = [number for number in range(1, 101) if number % 3]
    house.now_ms += 500
    amendment = Amendment(house.group())
    for number in late:
        amendment.put(packed(number), (1, house.now_ms, 2))
    amendment.close()
    house.end_turn()
    house.now_ms += 520
    assert work(house) >= 10
    assert set(given_back(house.group())) == set(range(1, 101)) - set(late)
    house.now_ms += 520
    work(house)
    assert set(given_back(house.group())) == set(range(1, 101))


def test_two_processes_release_and_append_nothing_twice(house: TopicHouse) -> None:
    other = Keyspace(house.environment, lambda: house.now_ms)
    house.append(*range(1, 1001))
    deliver(house, *range(1, 1001))
    for number in range(500):
        deferral.defer(house.topic, house.now_ms + 100, b"*2\r\n$1\r\na\r\n$%d\r\n%d\r\n" % (len(str(number)), number))
    house.end_turn()
    house.now_ms += TIMEOUT_MS + 20
    both = [house.keyspace.stored, other.stored]
    has_more = [True, True]
    while any(has_more):
        for place, (part, keyspace) in enumerate(zip(both, (house.keyspace, other), strict=True)):
            has_more[place] = punctuality.step(part)
            assert keyspace.end_turn() is None
    assert len(given_back(house.group())) == 1000
    assert house.group().settings.timed_out == 1000
    assert house.topic.length == 1500
    assert deferral.count(house.topic) == 0


def test_step_that_fails_leaves_everything_as_it_was(house: TopicHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    house.append(1)
    deliver(house, 1)
    house.end_turn()
    house.now_ms += TIMEOUT_MS + 20
    with monkeypatch.context() as patch:
        patch.setattr(released, "put", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError) as failure:
            punctuality.step(house.keyspace.stored)
    house.keyspace.fail(failure.value)
    house.keyspace.end_turn()
    assert set(held(house.group())) == {1}
    assert given_back(house.group()) == {}
    work(house)
    assert given_back(house.group()) == {1: (0, 1)}


def test_deadline_of_what_is_gone_is_removed_from_the_order(house: TopicHouse) -> None:
    house.append(1)
    deliver(house, 1)
    house.keyspace.remove(house.topic)
    house.end_turn()
    assert deadlines.first(house.keyspace.reading()) is not None
    house.now_ms += TIMEOUT_MS + 20
    work(house)
    assert deadlines.first(house.keyspace.reading()) is None
    house.keyspace.create_topic(0, b"topic")


@pytest.mark.parametrize("seed", range(6))
def test_random_work_leaves_what_a_plain_dictionary_has(house: TopicHouse, seed: int) -> None:
    """in flight: number -> (delivered, deliveries); released: number -> (due, deliveries)."""
    random_ = random.Random(seed)
    flying: dict[int, tuple[int, int]] = {}
    waiting: dict[int, tuple[int, int]] = {}
    highest = 0
    for step in range(150):
        house.now_ms += random_.choice([0, 1, 7, 100, 400])
        now = house.now_ms
        group = house.group()
        number = random_.choice([1, 2]) if not flying else random_.choice(list(flying))
        kind = random_.random()
        if kind < 0.3:
            new = range(highest + 1, highest + 1 + random_.choice([1, 3, 200]))
            highest = new[-1]
            house.append(*new)
            deliver(house, *new, name=random_.choice([b"a", b"b"]))
            flying |= dict.fromkeys(new, (now, 1))
        elif kind < 0.45:
            wanted = [*range(number, number + random_.choice([1, 5, 150]))]
            gone = pending.acknowledge(group, packed(*wanted)) + release.forget(group, packed(*wanted))
            was_there = [one for one in wanted if flying.pop(one, None) or waiting.pop(one, None)]
            assert gone == len(was_there)
        elif kind < 0.6 and flying:
            deliveries = flying.pop(number)[1]
            delay = random_.choice([0, 50, 3000])
            claims.forget(group, [packed(number)])
            release.release(group, [Released(packed(number), now + delay if delay else 0, deliveries)])
            if delay:
                flights.bring_forward(group, now + delay)
            waiting[number] = (now + delay if delay else 0, deliveries)
        elif kind < 0.75 and flying:
            consumer = group.consumer(random_.choice([b"a", b"b"]))
            assert consumer is not None
            ids = sorted(random_.sample(list(flying), min(len(flying), random_.choice([1, 4]))))
            amendment = Amendment(group)
            for one in ids:
                flying[one] = (now, flying[one][1] + 1)
                amendment.put(packed(one), (consumer.number, *flying[one]))
            amendment.close()
        elif kind < 0.85:
            count = random_.choice([None, 1, 50])
            due = sorted((at, one) for one, (at, _) in waiting.items() if at <= now)[:count]
            again = release.take(group, count, now)
            assert [numbers(one.id)[0] for one in again] == [one for _, one in due]
            consumer = group.consumer(b"a")
            assert consumer is not None
            amendment = Amendment(group)
            for taken in again:
                one = numbers(taken.id)[0]
                assert taken.deliveries == waiting.pop(one)[1]
                flying[one] = (now, taken.deliveries + 1)
                amendment.put(taken.id, (consumer.number, *flying[one]))
            amendment.close()
        elif kind < 0.95:
            work(house)
            grain = TIMEOUT_MS // 100
            over = [one for one, (at, _) in flying.items() if at + TIMEOUT_MS <= now]
            back = given_back(house.group())
            landed = [one for one in over if one in back]
            assert all(one in landed for one in over if flying[one][0] + TIMEOUT_MS + grain <= now)
            for one in landed:
                waiting[one] = (0, flying.pop(one)[1])
        else:
            house.forget()
        if step % 5 == 0:
            assert {one: fate[1:] for one, fate in held(house.group()).items()} == flying
            assert given_back(house.group()) == waiting
    house.now_ms += 10_000
    work(house)
    assert held(house.group()) == {}
    assert set(given_back(house.group())) == set(flying) | set(waiting)
    assert deadlines.first(house.keyspace.reading()) is None


def test_who_waits_elsewhere_is_rung_where_something_is_due_sooner_than_anything_was(house: TopicHouse) -> None:
    house.append(1, 2)
    house.end_turn()
    house.keyspace.touched.clear()
    deliver(house, 1)
    assert list(house.keyspace.touched) == [(0, house.topic.name)]
    house.keyspace.touched.clear()
    house.now_ms += 100
    deliver(house, 2)
    assert not house.keyspace.touched


def test_record_of_where_to_look_is_one_for_many_deliveries(house: TopicHouse) -> None:
    house.append(*range(1, 1001))
    for number in range(1, 1001):
        deliver(house, number)
        house.now_ms += number % 2
    topic, group = house.topic, house.group()
    found = list(in_flight.walk(house.keyspace.reading(), topic.number, group.number))
    assert len(found) <= 500 // (TIMEOUT_MS // 100) + 2
    assert min(one.first for one in found) == packed(1)
    assert max(one.last for one in found) == packed(1000)
    assert all(len(one.first) == BYTES == len(one.last) for one in found)
    assert entry_ids.unpack(found[0].first) == (1, 0)
