"""The short way to columns is exact, or is not taken."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

from rlite_pubsub.cold import plain_entries
from rlite_pubsub.cold.columns import to_batch
from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.storage.topics import chunks, entry_ids

Table = list[tuple[tuple[int, int], list[bytes]]]


def chunked(table: Table, per_chunk: int) -> list[bytes]:
    values = []
    for at in range(0, len(table), per_chunk):
        some = table[at : at + per_chunk]
        values.append(chunks.pack([entry_ids.pack(one) for one, _ in some], [encode_entry(*each) for each in some]))
    return values


IDS = st.tuples(st.integers(0, 2**64 - 1) | st.integers(1000, 2000), st.integers(0, 20))
VALUES = st.binary(max_size=12) | st.integers(0, 1100).map(lambda size: b"$5\r\n"[: size % 5] + b"x" * size)


@given(
    st.lists(IDS, min_size=1, max_size=40, unique=True),
    st.sampled_from([b"value", b"", b"\r\n", b"n" * 12]),
    st.lists(VALUES, min_size=40, max_size=40),
    st.integers(1, 41),
)
@example([(1, 0), (2, 0)], b"value", [b"", b"1" * 10] * 20, 2)
def test_entries_of_one_field_are_the_same_columns_by_either_way(
    ids: list[tuple[int, int]], name: bytes, values: list[bytes], per_chunk: int
) -> None:
    table = [(one, [name, value]) for one, value in zip(sorted(ids), values, strict=False)]
    made = chunked(table, per_chunk)
    assert plain_entries.batch_of(made, b"t") == to_batch(made, b"t")


@given(
    st.lists(st.lists(st.binary(max_size=30), min_size=2, max_size=6).filter(lambda one: len(one) % 2 == 0), min_size=1)
)
def test_entries_of_any_fields_are_the_same_columns_by_either_way(rows: list[list[bytes]]) -> None:
    made = chunked([((number, 0), row) for number, row in enumerate(rows, 1)], 5)
    assert plain_entries.batch_of(made, b"t") == to_batch(made, b"t")


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 99, 100, 999, 1000, 100_000])
def test_the_short_way_is_taken_for_values_of_any_length(size: int) -> None:
    table = [((1000 + number, 0), [b"value", b"x" * (size + number % 3)]) for number in range(30)]
    made = chunked(table, 7)
    found = plain_entries._plain(made, b"t")
    assert found is not None and found == to_batch(made, b"t")


def test_the_short_way_is_not_taken_where_one_entry_differs() -> None:
    table = [((1000 + number, 0), [b"value", b"x"]) for number in range(30)]
    for other in ([b"valuf", b"x"], [b"value", b"x", b"y", b"z"], [b"v", b"x"]):
        table[17] = (1017, 0), other
        assert plain_entries._plain(chunked(table, 7), b"t") is None
