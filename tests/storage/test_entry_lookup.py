"""Entries by their ids, over the chunks of a topic."""

from __future__ import annotations

from pathlib import Path

from engines import open_data

from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.topics import chunks, entry_ids, entry_lookup

TOPIC = 5


def looked_up(folder: Path, stored: range, wanted: list[int]) -> list[bytes | None]:
    environment = open_data(folder / "data.mdb", 1 << 24)

    def work(txn: Txn) -> list[bytes | None]:
        txn.put(b"\0", b"")  # no store begins with its entries
        ids = [entry_ids.pack((number, 0)) for number in stored]
        if ids:
            chunks.append(txn, TOPIC, None, ids, [b"entry %d" % number * 30 for number in stored])
        return entry_lookup.entries(txn, TOPIC, [entry_ids.pack((number, 0)) for number in wanted])

    try:
        return environment.write(work)
    finally:
        environment.close()


def expected(stored: range, wanted: list[int]) -> list[bytes | None]:
    return [b"entry %d" % number * 30 if number in stored else None for number in wanted]


def test_entries_in_a_row_are_found_over_many_chunks(tmp_path: Path) -> None:
    stored, wanted = range(1000), list(range(3, 700))
    assert looked_up(tmp_path, stored, wanted) == expected(stored, wanted)


def test_ids_that_no_entry_has_are_none(tmp_path: Path) -> None:
    stored = range(10, 1000, 3)
    wanted = [1, 2, 10, 11, 12, 13, 16, 500, 501, 997, 998, 999, 1000, 5000]
    assert looked_up(tmp_path, stored, wanted) == expected(stored, wanted)


def test_a_topic_without_entries_has_none(tmp_path: Path) -> None:
    assert looked_up(tmp_path, range(0), [1, 2]) == [None, None]
