"""Entries in chunks: whatever is appended, trimmed and removed, a list would say the same."""

from __future__ import annotations

import random

import pytest

from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.topics import chunks, entry_ids
from rlite_pubsub.storage.topics.chunks import CAPACITY, Chunk
from rlite_pubsub.storage.topics.entry_ids import MAX, MIN, Id

TOPIC = 7


def entry(number: int, size: int) -> bytes:
    return b"%d:" % number + b"x" * size


def fill(txn: Txn, sizes: list[int], topic: int = TOPIC) -> list[tuple[Id, bytes]]:
    """Append entries of these sizes at once, under the ids 1-0, 2-0, …"""
    rows = [((number, 0), entry(number, size)) for number, size in enumerate(sizes, 1)]
    chunks.append(txn, topic, None, [entry_ids.pack(row[0]) for row in rows], [row[1] for row in rows])
    return rows


def read(txn: Txn, start: Id = MIN, end: Id = MAX, limit: int | None = None) -> list[tuple[Id, bytes]]:
    found = []
    for part in chunks.between(txn, TOPIC, start, end, limit):
        entries = part.chunk.entries(part.start, part.stop)
        assert b"".join(entries) == part.wire
        found += list(zip(entry_ids.unpack_all(part.ids), entries, strict=True))
    return found


def read_backward(txn: Txn, start: Id, end: Id, limit: int | None) -> list[tuple[Id, bytes]]:
    found = []
    for part in chunks.between_backward(txn, TOPIC, start, end, limit):
        entries = part.chunk.entries(part.start, part.stop)
        found += list(zip(entry_ids.unpack_all(part.ids), entries, strict=True))[::-1]
    return found


def all_chunks(txn: Txn) -> list[Chunk]:
    return list(chunks.forward(txn, TOPIC, MIN))


@pytest.mark.parametrize("seed", range(8))
def test_a_log_and_a_list_agree_whatever_happens_to_them(environment: Environment, seed: int) -> None:
    rng = random.Random(seed)

    def live(txn: Txn) -> None:
        model: list[tuple[Id, bytes]] = []
        tail: Chunk | None = None
        last = 0
        fill(txn, [10, 10], TOPIC - 1)
        fill(txn, [10, 10], TOPIC + 1)
        for _ in range(300):
            deed = rng.random()
            if deed < 0.5:
                rows = []
                for _ in range(rng.choice((1, 1, 3, 60))):
                    last += rng.randint(1, 3)
                    rows.append(((last, rng.randint(0, 2)), entry(last, rng.choice((1, 80, 300, CAPACITY, 9000)))))
                ids, entries = [entry_ids.pack(row[0]) for row in rows], [row[1] for row in rows]
                tail = chunks.append(txn, TOPIC, tail or chunks.last(txn, TOPIC), ids, entries)
                model += rows
            elif deed < 0.6:
                count = rng.choice((1, 2, 10, 100))
                trimmed = chunks.trim(txn, TOPIC, count)
                gone, model = model[:count], model[count:]
                assert trimmed.entries == len(gone)
                assert trimmed.size_bytes == sum(len(row[1]) for row in gone)
                assert trimmed.last == (entry_ids.pack(gone[-1][0]) if gone else b"")
                tail = None
            elif deed < 0.8 and model:
                wanted = {rng.choice(model)[0] for _ in range(rng.choice((1, 2, 30)))} | {(last + 5, 0), (0, 1)}
                found = list(chunks.find(txn, TOPIC, sorted(map(entry_ids.pack, wanted))))
                assert sum(len(places) for _, places in found) == sum(row[0] in wanted for row in model)
                for chunk, places in found:
                    chunks.remove(txn, chunk, places)
                model = [row for row in model if row[0] not in wanted]
                tail = None
            start, end = sorted((rng.randint(0, last + 2), rng.randint(0, last + 2)))
            low, high, limit = (start, 0), (end, rng.randint(0, 2)), rng.choice((None, None, 0, 1, 7, 100))
            expected = [row for row in model if low <= row[0] <= high]
            assert read(txn, low, high, limit) == expected[:limit]
            assert read_backward(txn, low, high, limit) == expected[::-1][:limit]
        assert read(txn) == model
        assert all(len(chunk) <= CAPACITY or chunk.count == 1 for chunk in all_chunks(txn))

    environment.write(live)


def test_a_page_is_filled_before_the_next_is_begun(environment: Environment) -> None:
    def live(txn: Txn) -> None:
        tail = None
        for number in range(1, 200):
            tail = chunks.append(txn, TOPIC, tail, [entry_ids.pack((number, 0))], [entry(number, 100)])
        one_by_one = [chunk.count for chunk in all_chunks(txn)]
        chunks.trim(txn, TOPIC, 1000)
        assert not all_chunks(txn)
        fill(txn, [100] * 199)
        assert [chunk.count for chunk in all_chunks(txn)] == one_by_one
        assert len(one_by_one) == -(-199 * 124 // CAPACITY)

    environment.write(live)


def test_an_entry_larger_than_a_page_has_a_chunk_to_itself(environment: Environment) -> None:
    def live(txn: Txn) -> None:
        rows = fill(txn, [10, 100_000, 10, CAPACITY, 10])
        assert [chunk.count for chunk in all_chunks(txn)] == [1, 1, 1, 1, 1]
        assert read(txn) == rows

    environment.write(live)


def test_a_trim_that_ends_in_a_chunk_leaves_its_key(environment: Environment) -> None:
    """Keys only have to be at most the first id: a rewritten chunk stays where it is in the tree."""

    def live(txn: Txn) -> None:
        rows = fill(txn, [100] * 20)
        key = all_chunks(txn)[0].key
        chunks.trim(txn, TOPIC, 5)
        assert all_chunks(txn)[0].key == key
        assert read(txn) == rows[5:]
        assert read(txn, (6, 0), (6, 0)) == rows[5:6]
        assert read(txn, (1, 0), (5, 9)) == []

    environment.write(live)


def test_a_copy_has_all_and_shares_nothing(environment: Environment) -> None:
    def live(txn: Txn) -> None:
        rows = fill(txn, [100] * 1000, TOPIC + 1)
        chunks.copy(txn, TOPIC + 1, TOPIC)
        chunks.trim(txn, TOPIC + 1, 500)
        assert read(txn) == rows

    environment.write(live)
