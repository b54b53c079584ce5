"""Sorted sets against a model, with commits in between: small ones, large ones, and such as become large."""

from __future__ import annotations

import math
import random

import pytest

from rlite_pubsub.keyspace import collection
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.packing import Packing
from rlite_pubsub.keyspace.sorted_sets import SortedSet
from rlite_pubsub.keyspace.sweeping import sweep_some
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.keys import ranks
from rlite_pubsub.storage.keys.order import Order
from rlite_pubsub.storage.keys.proof import faults
from rlite_pubsub.storage.keys.rows import Rows

NAME = b"z"
SCORES = (0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, 1e-300, -7.0, 100.0)


def zset(keyspace: Keyspace) -> SortedSet:
    found = keyspace.for_change(0, NAME)
    return found if isinstance(found, SortedSet) else keyspace.create(SortedSet, 0, NAME)


def check(keyspace: Keyspace, model: dict[bytes, float], luck: random.Random) -> None:
    found = zset(keyspace)
    order = sorted(model.items(), key=lambda scored: (scored[1], scored[0]))
    size = len(order)
    assert len(found) == size
    assert list(found.walk()) == order
    assert list(found.slice(0, size, backwards=True)) == order[::-1]
    for _ in range(10):
        start, stop = luck.randrange(-3, size + 3), luck.randrange(-3, size + 3)
        assert list(found.slice(start, stop)) == order[max(0, start) : max(0, stop)]
        assert list(found.slice(start, stop, backwards=True)) == order[::-1][max(0, start) : max(0, stop)]
        score = luck.choice(SCORES)
        assert found.below(score, included=False) == sum(one < score for one in model.values())
        assert found.below(score, included=True) == sum(one <= score for one in model.values())
        if order:
            member = luck.choice(order)[0]
            assert found.rank(member) == [one for one, _ in order].index(member)
            assert found.score(member) == model[member]
    assert found.rank(b"nobody") is None
    assert found.score(b"nobody") is None


@pytest.mark.parametrize("most", [2, 20, 128])
@pytest.mark.parametrize("seed", range(3))
def test_sorted_set_is_what_a_dictionary_in_order_is(keyspace: Keyspace, most: int, seed: int) -> None:
    keyspace.stored.pack_by(Packing(sorted_set_entries=most))
    luck = random.Random(seed)
    model: dict[bytes, float] = {}
    names = [b"m%d" % number for number in range(600)] + [b"", b"x" * 65, b"y" * 500, b"z" * 3000, b"\xff\xff", b"\0"]
    for _ in range(60):
        found = zset(keyspace)
        for _ in range(luck.randrange(40)):
            member = luck.choice(names)
            if luck.random() < 0.7:
                score = luck.choice(SCORES) if luck.random() < 0.5 else luck.uniform(-5, 5)
                found.put(member, score)
                model[member] = score
            else:
                assert found.remove([member]) == (member in model)
                model.pop(member, None)
        if luck.random() < 0.3:
            assert keyspace.end_turn() is None
            keyspace.stored.forget()
        check(keyspace, model, luck)


def test_counts_of_posts_are_those_of_the_members_between_them(keyspace: Keyspace) -> None:
    luck = random.Random(1)
    found = zset(keyspace)
    members = [b"%06d" % number for number in range(9000)]
    luck.shuffle(members)
    for member in members:
        found.put(member, float(luck.randrange(20)))
    found.remove(members[:4000])
    keyspace.settle()
    txn = keyspace.writing()
    levels = ranks.levels_for(9000)
    assert levels == 2
    order = Order(found.number, levels, Rows())
    assert order.count_before(txn, ranks.behind(math.inf)) == 5000
    members_before = Order(found.number, 0, Rows()).count_before
    for level in (1, 2):
        prefix = ranks.prefix(found.number, level)
        rows = [(key[len(prefix) :], int.from_bytes(value, "big")) for key, value in databases.items(txn, prefix)]
        assert rows[0][0] == b"" and len(rows) > 2
        assert sum(count for _, count in rows) == 5000
        before = 0
        for place, count in rows:
            if place:
                assert before == members_before(txn, place)
            before += count


def test_what_turns_of_two_processes_leave_fits(data: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns of many changes, some undone; members that come and go in one turn, and posts of two levels."""
    monkeypatch.setattr(collection, "_MOST_HELD_BYTES", 500_000)
    one, other = Keyspace(data, lambda: 1000), Keyspace(data, lambda: 1000)
    luck = random.Random(5)
    names = [b"%06d" % number for number in range(6000)] + [b"%d" % number + b"long" * 200 for number in range(50)]
    model = {name: 1.0 for name in names[:4500]}
    zset(one).take(list(model.items()))
    assert one.end_turn() is None
    for step in range(40):
        here = luck.choice((one, other))
        found = zset(here)
        assert len(found) == len(model)
        grows = step < 20
        turn = dict(model)
        for member in luck.choices(names, k=luck.choice((1, 40, 600))):
            if luck.random() < (0.8 if grows else 0.35):
                turn[member] = score = float(luck.randrange(300))
                found.put(member, score)
            else:
                assert found.remove([member]) == (turn.pop(member, None) is not None)
            if luck.random() < 0.01:
                order = sorted(turn.items(), key=lambda scored: (scored[1], scored[0]))
                start = luck.randrange(len(order) + 1)
                assert list(found.slice(start, start + 40)) == order[start : start + 40]
                assert found.members(0, 30, backwards=True) == [member for member, _ in order[: -31 : -1]]
        if luck.random() < 0.2:
            here.fail(RuntimeError("undone"))
            assert here.end_turn() is not None
        else:
            assert here.end_turn() is None
            model = turn
        assert data.read(lambda txn: list(faults(txn))) == []
    assert list(zset(one).walk()) == sorted(model.items(), key=lambda scored: (scored[1], scored[0]))
    one.end_turn()


def test_what_is_dropped_leaves_no_records(keyspace: Keyspace, data: Environment) -> None:
    found = zset(keyspace)
    for number in range(1000):
        found.put(b"%d" % number, float(number))
    assert keyspace.end_turn() is None
    keyspace.delete(0, NAME)
    assert keyspace.end_turn() is None
    while sweep_some([keyspace.stored], 100):
        assert keyspace.end_turn() is None
    keyspace.end_turn()
    for byte in SortedSet.database_bytes:
        assert data.read(lambda txn, byte=byte: list(databases.items(txn, byte))) == []  # type: ignore[misc]


@pytest.mark.parametrize("score", SCORES)
def test_places_sort_as_scores_do(score: float) -> None:
    for other in (*SCORES, -0.0, 5e-324, -5e-324, 1.7e308):
        assert (ranks.sortable(score) < ranks.sortable(other)) == (score < other)
        assert (ranks.sortable(other) < ranks.behind(score)) == (other <= score)


def test_copy_is_a_sorted_set_of_its_own(keyspace: Keyspace) -> None:
    found = zset(keyspace)
    for number in range(500):
        found.put(b"%d" % number, float(number))
    keyspace.copy(found, 0, b"copy")
    found.remove([b"7"])
    copied = keyspace.for_change(0, b"copy")
    assert isinstance(copied, SortedSet)
    assert len(copied) == 500 and copied.rank(b"8") == 8
    assert zset(keyspace).rank(b"8") == 7
