"""The judges of the soak of topics see what is lost, twice, out of order or told wrongly, and blame nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fakeredis
import pytest

from tests.soak.topic_crew import Account, Id, Life, faults
from tests.soak.topic_killing import GROUP, SHARED, Batch, Deliveries, Writer, pending_faults, writer_faults

THERE: list[Id] = [(number, 0) for number in range(1, 7)]


def judged(*got: int, start: int | None = 2, lost: int = 0, is_trimmed: bool = False, now: bool = True) -> list[str]:
    told = Account(starts={"t": None if start is None else (start, 0)}, from_now={"t": now})
    told.got["t"] = [(number, 0) for number in got]
    told.lost["t"] = lost
    life = Life("subscriber", True, None, Path("follower.page"), Path("follower.said"))  # type: ignore[arg-type]
    return faults(life, told, "t", THERE, is_trimmed=is_trimmed)


def test_follower_that_got_all_behind_its_start_is_not_blamed() -> None:
    assert judged(3, 4, 5, 6) == judged(3, 4) == judged(5, 6, start=None) == judged() == []


@pytest.mark.parametrize("got", [(4, 5), (3, 5), (3, 4, 4), (3, 5, 4), (2, 3), (3, 9)])
def test_follower_that_got_too_little_or_too_much_is_blamed(got: tuple[int, ...]) -> None:
    assert judged(*got)


def test_follower_of_a_trimmed_topic_is_told_exactly_what_it_lost_after_it_began() -> None:
    assert judged(3, 6, lost=2, is_trimmed=True) == []
    assert judged(3, 6, lost=1, is_trimmed=True) and judged(3, 6, lost=2)
    assert judged(3, 6, lost=900, is_trimmed=True, now=False) == []


class Wrote(Writer):
    """One who has written, once."""

    def __init__(self, *batches: Batch) -> None:
        self.name, self.batches = "w", list(batches)


@pytest.fixture
def client() -> Any:
    return fakeredis.FakeRedis(decode_responses=True)


def write(client: Any, *numbers: int, shared: tuple[int, ...] | None = None) -> None:
    for number in numbers:
        client.xadd("w", {"number": number}, id=f"1-{number}")
    for number in numbers if shared is None else shared:
        client.xadd(SHARED, {"writer": "w", "number": number})


def test_writer_that_was_answered_finds_its_entries_and_perhaps_those_it_was_not_answered_for(client: Any) -> None:
    write(client, 1, 2, 3)
    assert writer_faults(client, [Wrote(Batch([1, 2], True, True), Batch([3, 4], False))]) == []


@pytest.mark.parametrize(
    ("there", "shared"), [((1,), (1,)), ((1, 2), (2, 1)), ((1, 2), (1, 2, 2)), ((1, 2, 4), (1, 2)), ((1, 2, 3), (1, 2))]
)
def test_writer_that_finds_too_little_or_too_much_is_told(
    client: Any, there: tuple[int, ...], shared: tuple[int, ...]
) -> None:
    write(client, *there, shared=shared)
    assert writer_faults(client, [Wrote(Batch([1, 2], False, True), Batch([3], True))])


def test_group_is_blamed_for_what_it_forgets_gives_twice_or_takes_back(client: Any) -> None:
    write(client, 1, 2, 3)
    client.xgroup_create(SHARED, GROUP, "0")
    ids = [entry_id for entry_id, _ in client.xreadgroup(GROUP, "c", {SHARED: ">"})[0][1]]
    client.xack(SHARED, GROUP, ids[0])
    told = Deliveries(handled=set(ids), acknowledged={ids[0]}, perhaps_acknowledged={ids[0]})
    told.new.update(ids)
    assert pending_faults(client, told) == []
    told.new.update(ids[:1])
    assert "as new twice" in pending_faults(client, told)[0]
    told.new.subtract(ids[:1])
    told.acknowledged.add(ids[1])
    assert "acknowledged and pending" in pending_faults(client, told)[0]
    told.acknowledged.remove(ids[1])
    client.xack(SHARED, GROUP, ids[2])
    assert "not pending" in pending_faults(client, told)[0]
