"""Entries become columns and entries again, byte for byte, whatever is in them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from cold_logs import chunk_of, pages_of
from hypothesis import given, settings
from hypothesis import strategies as st

from rlite_pubsub.cold import columns
from rlite_pubsub.cold.errors import EntryMalformed
from rlite_pubsub.storage.topics import chunks, entry_ids
from rlite_pubsub.storage.topics.chunks import ChunkSlice
from rlite_pubsub.storage.topics.entry_ids import PART_MAX, Id

HALVES = st.integers(0, PART_MAX) | st.sampled_from([0, 1, 2**63 - 1, 2**63, PART_MAX]) | st.integers(0, 3)
IDS = st.sets(st.tuples(HALVES, HALVES), max_size=40).map(sorted)
HARD_WORDS = [b"", b"\r\n", b"$5\r\nhello\r\n", b"*2\r\n", b"-ERR\r\n", b"\xff\x00", b"v"]
WORDS = st.binary(max_size=40) | st.sampled_from(HARD_WORDS)
FIELDS = st.lists(WORDS, min_size=1, max_size=6).flatmap(
    lambda names: st.lists(WORDS, min_size=len(names), max_size=len(names)).map(
        lambda values: [word for pair in zip(names, values, strict=True) for word in pair]
    )
)


@st.composite
def entries(draw: st.DrawFn) -> list[tuple[Id, list[bytes]]]:
    return [(entry_id, draw(FIELDS)) for entry_id in draw(IDS)]


@settings(max_examples=200, deadline=None)
@given(entries())
def test_any_entry_survives_columns_byte_for_byte(log: list[tuple[Id, list[bytes]]]) -> None:
    batch = columns.to_batch(pages_of(log), b"news")
    assert columns.to_chunk(batch).value == chunk_of(log).value


@settings(max_examples=100, deadline=None)
@given(entries())
def test_columns_say_what_the_entries_say(log: list[tuple[Id, list[bytes]]]) -> None:
    batch = columns.to_batch(pages_of(log), b"news")
    assert batch.schema.equals(columns.SCHEMA)
    rows = batch.to_pylist()
    assert [columns.id_at(batch, place) for place in range(batch.num_rows)] == [entry_id for entry_id, _ in log]
    assert [[w for pair in row["fields"] for w in (pair["name"], pair["value"])] for row in rows] == [f for _, f in log]
    assert {row["topic"] for row in rows} <= {"news"}
    batch.validate(full=True)


@settings(max_examples=60, deadline=None)
@given(entries(), st.data())
def test_a_slice_of_a_batch_is_a_slice_of_its_entries(log: list[tuple[Id, list[bytes]]], data: st.DataObject) -> None:
    batch = columns.to_batch(pages_of(log), b"news")
    start = data.draw(st.integers(0, len(log)))
    stop = data.draw(st.integers(start, len(log)))
    assert columns.to_chunk(batch.slice(start, stop - start)).value == chunk_of(log[start:stop]).value


@settings(max_examples=60, deadline=None)
@given(entries(), st.data())
def test_parts_of_chunks_are_taken_as_parts(log: list[tuple[Id, list[bytes]]], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(log)))
    stop = data.draw(st.integers(start, len(log)))
    batch = columns.to_batch([ChunkSlice(chunk_of(log), start, stop)], b"news")
    assert columns.to_chunk(batch).value == chunk_of(log[start:stop]).value


def test_an_entry_of_megabytes_survives() -> None:
    log = [((5, 0), [b"", bytes(range(256)) * 20_000, b"", b""]), ((5, 1), [b"small", b"one"])]
    assert columns.to_chunk(columns.to_batch(pages_of(log), b"news")).value == chunk_of(log).value


def test_batches_are_no_larger_than_a_row_group_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "GROUP_ROWS", 10)
    monkeypatch.setattr(columns, "GROUP_BYTES", 1000)
    log = [((1, seq), [b"f", b"x" * (seq * 37 % 400)]) for seq in range(200)] + [((2, 0), [b"f", b"x" * 5000])]
    made = list(columns.to_batches([chunk_of(log).value], b"news"))
    assert sum(batch.num_rows for batch in made) == len(log)
    assert all(batch.num_rows <= 10 for batch in made)
    sizes = [len(columns.to_chunk(batch).blob) for batch in made]
    assert all(size <= 1000 for size in sizes[:-1]) and made[-1].num_rows == 1
    assert b"".join(columns.to_chunk(batch).blob for batch in made) == chunk_of(log).blob


def test_small_pages_share_a_batch() -> None:
    log = [((1, seq), [b"f", b"x" * 100]) for seq in range(1000)]
    assert len(pages_of(log)) > 10
    assert [batch.num_rows for batch in columns.to_batches(pages_of(log), b"news")] == [1000]


@pytest.mark.parametrize(
    "wire",
    [
        b"",
        b"*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r",
        b"*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n*0\r\n",
        b"*2\r\n$3\r\n1-1\r\n*1\r\n$1\r\nf\r\n",
        b"*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$-1\r\n",
        b"*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n:5\r\n",
        b"*1\r\n$3\r\n1-1\r\n",
        b"$3\r\n1-1\r\n",
        b"\0\0\0\0",
    ],
)
def test_what_is_no_entry_is_refused_by_name(wire: bytes) -> None:
    value = chunks.pack([entry_ids.pack((1, 1))], [wire])
    with pytest.raises(EntryMalformed, match="news: .*between 1-1 and 1-1"):
        columns.to_batch([value], b"news")


@pytest.mark.parametrize(
    "wire",
    [
        b"*2\r\n$3\r\n1-2\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n",
        b"*2\r\n$3\r\n1-1\r\n*2\r\n$01\r\nf\r\n$1\r\nv\r\n",
        b"*2\r\n$3\r\n1-1\r\n*2\r\n+f\r\n$1\r\nv\r\n",
        b"*3\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n$1\r\nx\r\n",
    ],
    ids=["another id", "a length that nobody writes", "another kind of string", "more than an entry has"],
)
def test_an_entry_that_would_come_back_otherwise_is_not_sealed(wire: bytes) -> None:
    value = chunks.pack([entry_ids.pack((1, 1))], [wire])
    with pytest.raises(EntryMalformed):
        list(columns.to_batches([value], b"news"))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(HALVES, HALVES), max_size=6))
def test_order_is_that_of_ids_without_a_sign(ids: list[Id]) -> None:
    batch = columns.to_batch([chunk_of([(each, [b"f", b"v"]) for each in ids]).value], b"news")
    assert columns.is_in_order(batch) == (ids == sorted(set(ids)))


def test_a_topic_that_is_no_text_has_a_name_that_is() -> None:
    batch = columns.to_batch([chunk_of([((1, 1), [b"f", b"v"])]).value], b"\xffnews")
    assert batch.column("topic").to_pylist() == ["\\xffnews"]


def test_the_columns_are_what_a_reader_expects() -> None:
    assert str(columns.SCHEMA.field("fields").type) == (
        "list<element: struct<name: binary not null, value: binary not null> not null>"
    )
    assert [columns.SCHEMA.field(name).type for name in ("topic", "ms", "seq")] == [pa.string(), pa.int64(), pa.int64()]
