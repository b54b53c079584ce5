"""Members drawn at random: each has the same chance, and a count that is wrong does not make a draw endless."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.errors import RecordDamaged
from rlite_pubsub.storage.keys import digests, members

PREFIX = members.prefix(7)
COUNT = 500


@pytest.fixture
def filled(environment: Environment) -> Environment:
    def fill(txn: Txn) -> None:
        for number in range(COUNT):
            txn.put(PREFIX + digests.digest(b"%d" % number), b"%d" % number)

    environment.write(fill)
    return environment


def test_every_member_is_drawn(filled: Environment) -> None:
    drawn = filled.read(lambda txn: Counter(digests.any_of(txn, PREFIX, COUNT) for _ in range(COUNT * 20)))
    assert len(drawn) == COUNT
    assert filled.read(lambda txn: len(set(digests.some_of(txn, PREFIX, COUNT, COUNT // 4)))) == COUNT // 4
    assert filled.read(lambda txn: digests.some_of(txn, PREFIX, COUNT, 0)) == []


@pytest.mark.parametrize("wanted", [3, COUNT // 40, COUNT // 4, 4 * COUNT])
def test_each_member_has_the_same_chance_however_many_are_drawn(filled: Environment, wanted: int) -> None:
    rounds = 50 * COUNT // wanted
    for way in (digests.many_of, digests.some_of):
        if way is digests.some_of and wanted > COUNT:
            continue
        drawn: Counter[bytes] = Counter()
        for _ in range(rounds):
            found = filled.read(lambda txn: way(txn, PREFIX, COUNT, wanted))  # noqa: B023
            assert len(found) == wanted and (way is digests.many_of or len(set(found)) == wanted)
            drawn.update(found)
        assert len(drawn) == COUNT and min(drawn.values()) > 5 and max(drawn.values()) < 110  # 50, and a deviation is 7


def test_those_drawn_again_and_again_come_in_no_order(filled: Environment) -> None:
    found = filled.read(lambda txn: digests.many_of(txn, PREFIX, COUNT, 10 * COUNT))
    assert found != sorted(found, key=digests.digest)


@pytest.mark.parametrize("count", [1, COUNT, 10**9])
def test_draw_from_nothing_ends_in_an_error(environment: Environment, count: int) -> None:
    with pytest.raises(RecordDamaged, match=f"is said to have {count} members"):
        environment.read(lambda txn: digests.any_of(txn, PREFIX, count))


def test_draw_of_more_than_there_are_ends_in_an_error(filled: Environment) -> None:
    with pytest.raises(RecordDamaged):
        filled.read(lambda txn: digests.some_of(txn, PREFIX, 4 * COUNT, COUNT + 1))
    with pytest.raises(RecordDamaged):
        filled.read(lambda txn: digests.some_of(txn, PREFIX, 1000 * COUNT, COUNT + 1))
    with pytest.raises(RecordDamaged):
        filled.read(lambda txn: digests.many_of(txn, PREFIX, 4 * COUNT, 2 * COUNT))


@st.composite
def sorted_digests(draw: st.DrawFn) -> list[bytes]:
    """Some of them share many of their first bits, as somebody may arrange it."""
    heads = draw(st.lists(st.binary(min_size=0, max_size=9), min_size=1, max_size=5))
    found = draw(st.lists(st.tuples(st.sampled_from(heads), st.binary(min_size=16, max_size=16)), max_size=60))
    return sorted({(head + rest)[:16] for head, rest in found})


@settings(deadline=None)
@given(sorted_digests(), st.integers(1, 20))
def test_pages_of_any_size_have_each_member_once_and_cursors_that_a_double_holds(all: list[bytes], wanted: int) -> None:
    cursor, seen = 0, 0
    for _ in range(len(all) + 1):
        assert [digest for digest in all if digest >= digests.start_of(cursor)] == all[seen:]
        upto = min(seen + wanted, len(all))
        beside, cursor = 0, 0
        while upto < len(all) and not cursor:
            cursor = digests.cursor_between(all[upto - 1], all[upto], len(all), beside)
            upto, beside = upto + (not cursor), beside + 1
        assert int(float(cursor)) == cursor < 1 << 52
        seen = upto
        if not cursor:
            break
    assert seen == len(all)


def test_cursors_grow_with_what_is_scanned(filled: Environment) -> None:
    cursor, cursors, seen = 0, [], []
    for _ in range(COUNT):
        cursor, found = filled.read(lambda txn: digests.page(txn, PREFIX, cursor, 3, COUNT))  # noqa: B023
        seen += found
        if not cursor:
            break
        cursors.append(cursor)
    assert sorted(seen) == sorted(b"%d" % number for number in range(COUNT))
    assert max(cursors) < 32 * COUNT and len(cursors) > COUNT // 6


@pytest.mark.parametrize("cursor", [1, 2, 3, 2**31, 2**53 + 1, 2**63, 2**64 - 1])
def test_any_integer_is_a_place(filled: Environment, cursor: int) -> None:
    following, found = filled.read(lambda txn: digests.page(txn, PREFIX, cursor, 10, COUNT))
    assert following < 32 * COUNT and len(set(found)) == len(found)
