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
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.keys import ranks, words
from rlite_pubsub.storage.keys.order import Order, OrderNode
from rlite_pubsub.storage.keys.proof import faults

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
        assert found.members(start, stop) == [member for member, _ in order[max(0, start) : max(0, stop)]]
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
            elif luck.random() < 0.7:
                assert found.remove([member]) == (member in model)
                model.pop(member, None)
            else:
                highest = luck.random() < 0.5
                popped = sorted(model.items(), key=lambda scored: (scored[1], scored[0]), reverse=highest)[:2]
                assert found.pop(2, highest=highest) == popped
                for name, _ in popped:
                    del model[name]
            if luck.random() < 0.1:  # these are held, until the next change
                in_order = sorted(model, key=lambda name: (model[name], name))
                assert found.members(0, len(found)) == in_order
        if luck.random() < 0.3:
            assert keyspace.end_turn() is None
            keyspace.stored.forget()
        check(keyspace, model, luck)


def nodes(keyspace: Keyspace, level: int) -> list[list[bytes]]:
    """The words of each node of a level, as they are stored."""
    found = zset(keyspace)
    keyspace.settle()
    prefix = ranks.prefix(found.number, level)
    return [words.unpack(value, 0) for _, value in databases.items(keyspace.writing(), prefix)]


def test_order_of_many_is_a_tree_whose_nodes_are_neither_small_nor_large(keyspace: Keyspace, data: Environment) -> None:
    luck = random.Random(1)
    found = zset(keyspace)
    members = [b"%06d" % number for number in range(20_000)]
    luck.shuffle(members)
    for member in members:
        found.put(member, float(luck.randrange(20)))
    leaves = nodes(keyspace, 0)
    assert len(leaves) > 300
    assert all(ranks.LEAST_BYTES <= sum(map(len, leaf)) + 4 * len(leaf) <= ranks.MOST_BYTES for leaf in leaves)
    assert [ranks.unpack_post(word)[0] for node in nodes(keyspace, 1) for word in node] == [*map(len, leaves)]
    assert len(nodes(keyspace, 2)) == 1 and nodes(keyspace, 3) == []
    assert keyspace.end_turn() is None

    found = zset(keyspace)
    found.remove(members[:19_900])
    assert len(nodes(keyspace, 0)) < 10 and nodes(keyspace, 2) == []
    assert keyspace.end_turn() is None
    assert data.read(lambda txn: list(faults(txn))) == []
    found = zset(keyspace)
    assert [member for member, _ in found.walk()] == found.members(0, 100)
    found.remove(members[19_900:])
    assert nodes(keyspace, 0) == [[]]
    found.put(b"one", 1.0)
    assert keyspace.end_turn() is None
    assert data.read(lambda txn: list(faults(txn))) == []


@pytest.mark.sources("counts the calls of a compiled method")
def test_rank_in_a_large_one_reads_one_record_of_each_level(
    keyspace: Keyspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = zset(keyspace)
    found.take([(b"%06d" % number, float(number)) for number in range(20_000)])
    assert keyspace.end_turn() is None
    keyspace.stored.forget()
    read: list[int] = []
    plainly = Order._read

    def noted(order: Order, txn: Txn, level: int, bound: bytes) -> OrderNode:
        read.append(level)
        return plainly(order, txn, level, bound)

    monkeypatch.setattr(Order, "_read", noted)
    assert zset(keyspace).rank(b"012345") == 12_345
    assert read == [2, 1, 0]
    assert zset(keyspace).members(12_345, 12_346) == [b"012345"]
    assert read == [2, 1, 0]
    keyspace.end_turn()


@pytest.mark.parametrize("highest", [False, True])
@pytest.mark.parametrize("at_once", [1, 7, 500])
def test_members_that_are_popped_leave_no_empty_nodes(
    keyspace: Keyspace, data: Environment, highest: bool, at_once: int
) -> None:
    found = zset(keyspace)
    members = [(b"%06d" % number, float(number)) for number in range(4000)]
    found.take(members)
    expected = members[::-1] if highest else members
    while expected:
        for _ in range(1000 // at_once):
            assert zset(keyspace).pop(at_once, highest=highest) == expected[:at_once]
            expected = expected[at_once:]
        assert len(zset(keyspace)) == len(expected)
        assert all(nodes(keyspace, 0)) or not expected
        assert keyspace.end_turn() is None
        assert data.read(lambda txn: list(faults(txn))) == []
    assert zset(keyspace).pop(1, highest=highest) == []


def test_zero_that_is_negative_is_said_to_be(keyspace: Keyspace, data: Environment) -> None:
    found = zset(keyspace)
    found.take([(b"%d" % number, 0.0) for number in range(200)])
    found.put(b"7", -0.0)
    found.put(b"8", -1.0)
    for _ in range(2):
        scores = {member: score for member, score in zset(keyspace).walk() if math.copysign(1, score) < 0}
        assert scores == {b"7": -0.0, b"8": -1.0} and str(scores[b"7"]) == "-0.0"
        assert data.read(lambda txn: list(faults(txn))) == []
        assert keyspace.end_turn() is None
        keyspace.stored.forget()


def test_score_and_member_are_read_from_a_place() -> None:
    for score in (*SCORES, 5e-324, -5e-324, 1.7e308):
        for member in (b"", b"m", b"x" * 440, b"y" * 441, b"\xff" * 3000):
            place = ranks.place(score, member)
            assert (ranks.score_of(place), ranks.member_of(place)) == (score, member)
            assert math.copysign(1, ranks.score_of(place)) == math.copysign(1, score)


def test_bound_is_short_and_between_its_neighbours() -> None:
    luck = random.Random(4)
    for _ in range(2000):
        left, right = sorted(luck.sample([luck.randbytes(luck.randrange(4)) for _ in range(40)], 2))
        if left == right:
            continue
        bound = ranks.between(left, right)
        assert left < bound <= right and right.startswith(bound)
        assert not bound[:-1] > left
    same = b"z" * 3000
    left, right = sorted((ranks.place(1.0, same + b"1"), ranks.place(1.0, same + b"2")))
    assert len(ranks.between(left, right)) <= ranks.MOST_BOUND_BYTES


@pytest.mark.sources("lowers a limit that is compiled in")
def test_what_turns_of_two_processes_leave_fits(data: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns of many changes, some undone; members that come and go in one turn, and several levels."""
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
            if luck.random() < 0.04:
                highest, count = luck.random() < 0.5, luck.choice((0, 1, 1, 1, 70))
                order = sorted(turn.items(), key=lambda scored: (scored[1], scored[0]))
                popped = (order[::-1] if highest else order)[:count]
                assert found.pop(count, highest=highest) == popped
                for member, _ in popped:
                    del turn[member]
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


@pytest.mark.parametrize("is_left", [False, True])
def test_members_that_are_held_are_those_of_a_node_that_joins_another(keyspace: Keyspace, is_left: bool) -> None:
    found = zset(keyspace)
    members = [b"%04d" % number for number in range(150)]
    for member in members:
        found.put(member, 1.0)
    leaves = nodes(keyspace, 0)
    assert len(leaves) == 2
    assert found.members(0, 150) == members
    small = leaves[0] if is_left else leaves[1]
    gone = {ranks.member_of(place) for place in small[1:]}
    found.remove(gone)
    keyspace.settle()
    assert len(nodes(keyspace, 0)) == 1
    assert found.members(0, 150) == [member for member in members if member not in gone]


def test_what_it_holds_does_not_grow_while_members_come_and_go(keyspace: Keyspace) -> None:
    """At a bound all of it is dropped, and read again."""
    luck = random.Random(3)
    found = zset(keyspace)
    for number in range(2000):
        found.put(b"%08d" % number, luck.random())
    keyspace.settle()
    held_bytes = found._rows.held_bytes
    for turn in range(200):
        for number in range(100):
            found.put(b"%08d" % (2000 + turn * 100 + number), luck.random())
        found.pop(100, highest=False)
        keyspace.settle()
    assert len(found) == 2000 == len(found._held)
    assert held_bytes * 0.8 < found._rows.held_bytes < held_bytes * 1.2
