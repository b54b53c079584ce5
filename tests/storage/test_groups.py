"""Records of groups, of their consumers, and of what is pending."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.groups import consumers, groups, pending
from rlite_pubsub.storage.groups.consumers import ConsumerRecord
from rlite_pubsub.storage.groups.group_settings import GroupSettings
from rlite_pubsub.storage.groups.groups import GroupRecord
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import BYTES

Write = Callable[[Callable[[Txn], object]], object]


@pytest.fixture
def write(environment: Environment) -> Write:
    return environment.write


def record(name: bytes, number: int = 1, **more: object) -> GroupRecord:
    fields = {"last_id": (1, 2), "entries_read": 3, "pending": 4, "consumers": 5, "last_consumer": 6}
    return GroupRecord(name, number, settings=GroupSettings(), **{**fields, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [b"", b"g", b"\x00\xff" * 3, b"n" * 254, b"n" * 255, b"n" * 100_000])
def test_a_group_of_any_name_comes_back_as_it_was(write: Write, name: bytes) -> None:
    stored = record(name, entries_read=None)

    def work(txn: Txn) -> object:
        groups.put(txn, 7, stored)
        return groups.get(txn, 7, name), list(groups.of_topic(txn, 7)), list(groups.of_topic(txn, 8))

    assert write(work) == (stored, [stored], [])


def test_settings_stand_in_the_record_beside_a_long_name(write: Write) -> None:
    settings = GroupSettings(timeout_ms=30_000, max_deliveries=5, dead_letter=b"dead\xff", is_paused=True, requeued=9)
    stored = record(b"long" * 100)._replace(settings=settings)

    def work(txn: Txn) -> object:
        groups.put(txn, 7, stored)
        return groups.get(txn, 7, stored.name), list(groups.of_topic(txn, 7))

    assert write(work) == (stored, [stored])


def test_a_group_that_was_deleted_is_not_there(write: Write) -> None:
    def work(txn: Txn) -> object:
        groups.put(txn, 7, record(b"g"))
        groups.delete(txn, 7, b"g")
        return groups.get(txn, 7, b"g")

    assert write(work) is None


@pytest.mark.parametrize("name", [b"", b"c", b"n" * 255])
def test_a_consumer_is_found_by_its_name_and_by_its_number(write: Write, name: bytes) -> None:
    stored = ConsumerRecord(3, name, 1_700_000_000_000, 12)

    def work(txn: Txn) -> object:
        consumers.add(txn, 7, 1, stored)
        return consumers.number_of(txn, 7, 1, name), consumers.get(txn, 7, 1, 3), list(consumers.of_group(txn, 7, 1))

    assert write(work) == (3, stored, [stored])


def test_consumers_of_another_group_are_left_alone(write: Write) -> None:
    def work(txn: Txn) -> object:
        for group in (1, 2):
            consumers.add(txn, 7, group, ConsumerRecord(1, b"c", 0, 0))
        consumers.delete_all(txn, 7, 1)
        numbers = [consumers.number_of(txn, 7, group, b"c") for group in (1, 2)]
        return numbers, list(consumers.of_group(txn, 7, 1)), len(list(consumers.of_group(txn, 7, 2)))

    assert write(work) == ([None, 1], [], 1)


def packed(*numbers: int) -> bytes:
    return b"".join(entry_ids.pack((number, 0)) for number in numbers)


def test_many_ids_are_cut_into_runs_that_share_pages(write: Write) -> None:
    of_group = pending.prefix(7, 1)
    ids = packed(*range(1, 301))

    def work(txn: Txn) -> object:
        pending.add(txn, of_group, (1, 2, 3), ids)
        return [(run.fate, run.low, run.ids) for run in pending.walk(txn, of_group)]

    size = pending.MAX_RUN_BYTES
    parts = [ids[at : at + size] for at in range(0, len(ids), size)]
    assert write(work) == [((1, 2, 3), part[:BYTES], part) for part in parts]


def test_the_run_that_covers_an_id_is_found_in_its_bounds_only(write: Write) -> None:
    of_group = pending.prefix(7, 1)

    def work(txn: Txn) -> object:
        pending.add(txn, pending.prefix(7, 0), (1, 1, 1), packed(1, 100))
        pending.add(txn, of_group, (1, 1, 1), packed(10, 12))
        pending.add(txn, of_group, (2, 1, 1), packed(20, 22))
        pending.add(txn, pending.prefix(7, 2), (1, 1, 1), packed(1, 100))
        found = [pending.covering(txn, of_group, packed(number)) for number in (9, 10, 11, 12, 13, 20, 22, 23)]
        return [None if run is None else run.fate[0] for run in found]

    assert write(work) == [None, 1, 1, 1, None, 2, 2, None]


def test_a_walk_begins_in_the_middle_of_a_run(write: Write) -> None:
    of_group = pending.prefix(7, 1)

    def work(txn: Txn) -> object:
        pending.add(txn, of_group, (1, 1, 1), packed(10, 12))
        pending.add(txn, of_group, (2, 1, 1), packed(20, 22))
        starts = [packed(number) for number in (1, 11, 13, 23)]
        return [[run.fate[0] for run in pending.walk(txn, of_group, start)] for start in starts]

    assert write(work) == [[1, 2], [1, 2], [2], []]
