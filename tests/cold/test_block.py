"""A block gives back what it was given, or says what is wrong with it; never anything else."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from cold_logs import NEWS, SEALED_MS, STORE, Log, chunk_of, log_of, pages_of, read_all, seal
from hypothesis import HealthCheck, given, settings
from test_columns import entries

from rlite_pubsub.cold import block, columns, footer, paths
from rlite_pubsub.cold.errors import BlockDamaged, BlockMissing, ColdError, ForeignBlock
from rlite_pubsub.cold.local_place import LocalPlace
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.cold.place import Place
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
from rlite_pubsub.storage.topics.entry_ids import PART_MAX


def file_of(place: Place, info: BlockInfo) -> Path:
    assert isinstance(place, LocalPlace)
    return place.folder / info.path


def fresh(place: Place) -> Place:
    """The same place, of which nothing is known yet."""
    return open_place(place.url, "/")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries().filter(bool))
def test_any_entry_survives_a_block_byte_for_byte(place: Place, log: Log) -> None:
    info = seal(place, log)
    assert (info.first, info.last, info.count) == (log[0][0], log[-1][0], len(log))
    assert info.wire_bytes == len(chunk_of(log).blob)
    assert block.read_group(place, info, 0).value == chunk_of(log).value
    assert columns.to_chunk(block.read_batch(place, info, 0)).value == chunk_of(log).value
    block.verify(place, info)


def test_entries_of_megabytes_and_the_highest_ids_survive(place: Place) -> None:
    log: Log = [
        ((0, 1), [b"", b""]),
        ((5, 2**63 - 1), [b"big", bytes(range(256)) * 20_000]),
        ((5, 2**63), [b"big", b"\r\n" * 3_000_000, b"big", b"again"]),
        ((2**63, 0), [b"f", b"v"]),
        ((PART_MAX, PART_MAX), [b"f", b"v"]),
    ]
    info = seal(place, log)
    assert len(info.groups) > 1
    assert read_all(place, info) == chunk_of(log).blob
    assert (info.groups[0].first, info.groups[-1].last) == ((0, 1), (PART_MAX, PART_MAX))


def test_row_groups_are_as_large_as_they_may_be(place: Place) -> None:
    log = log_of(40_000)
    info = seal(place, log)
    assert max(group.count for group in info.groups) <= 16_384
    assert len(info.groups) == 3
    assert read_all(place, info) == chunk_of(log).blob
    for group, other in zip(info.groups, info.groups[1:], strict=False):
        assert group.last < other.first


def test_batches_of_any_size_become_full_row_groups(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of(5_000)
    whole = columns.to_batch(pages_of(log), b"news")
    small = [whole.slice(at, 7) for at in range(0, len(log), 7)]
    path = paths.block_of(b"news", 7, log[0][0], log[-1][0])
    assert [group.count for group in block.write(place, path, NEWS, small, 1).groups] == [5_000]
    monkeypatch.setattr(columns, "GROUP_ROWS", 300)
    monkeypatch.setattr(columns, "GROUP_BYTES", 9_000)
    info = block.write(place, path, NEWS, [whole], 2)
    assert all(group.count <= 300 for group in info.groups)
    assert read_all(place, info) == chunk_of(log).blob


def test_entries_out_of_order_are_not_written(place: Place) -> None:
    one, other = (columns.to_batch(pages_of(log), b"news") for log in (log_of(10, 1000), log_of(10, 2000)))
    with pytest.raises(ValueError, match="out of order"):
        block.write(place, "news/7/x.parquet", NEWS, [other, one], 1)
    with pytest.raises(ValueError, match="without an entry"):
        block.write(place, "news/7/x.parquet", NEWS, [], 1)
    assert not list(place.files())


def test_any_parquet_reader_sees_the_columns(place: Place) -> None:
    log = log_of(100)
    info = seal(place, log, Origin(STORE, b"\xffnews", 7))
    table = pq.read_table(file_of(place, info), partitioning=None)
    assert table.column_names == ["topic", "ms", "seq", "fields"]
    assert set(table.column("topic").to_pylist()) == {"\\xffnews"}
    assert table.column("ms").to_pylist() == [ms for (ms, _), _ in log]
    assert table.column("seq").to_pylist() == [seq for (_, seq), _ in log]
    fields = table.column("fields").to_pylist()
    assert [[word for pair in each for word in (pair["name"], pair["value"])] for each in fields] == [f for _, f in log]


def test_the_file_is_drawn_as_the_format_says(place: Place) -> None:
    metadata = pq.read_metadata(file_of(place, seal(place, log_of(20_000))))
    assert metadata.metadata.keys() == {b"rlite.block"}
    group = metadata.row_group(0)
    assert 16_000 < group.num_rows <= 16_384
    by_name = {group.column(place).path_in_schema: group.column(place) for place in range(group.num_columns)}
    assert {chunk.compression for chunk in by_name.values()} == {"ZSTD"}
    assert all("DELTA_BINARY_PACKED" in by_name[name].encodings for name in ("ms", "seq"))
    assert all(by_name[name].has_dictionary_page for name in ("topic", "fields.list.element.name"))
    assert all(chunk.has_offset_index for chunk in by_name.values())
    assert by_name["ms"].has_column_index
    assert by_name["ms"].statistics.min == 1_700_000_000_000


def test_what_is_known_of_a_block_is_in_its_file(place: Place) -> None:
    info = seal(place, log_of(40_000))
    assert block.info_of(fresh(place), info.path) == (info, NEWS)
    known_elsewhere = replace(info, groups=(), sealed_ms=0)
    assert block.complete(fresh(place), known_elsewhere) == info
    assert block.read_group(place, known_elsewhere, 1).value == block.read_group(place, info, 1).value


@pytest.mark.parametrize("seed", range(12))
def test_a_flipped_bit_is_found_wherever_it_is(place: Place, seed: int) -> None:
    log = log_of(3_000)
    info = seal(place, log)
    path = file_of(place, info)
    whole = path.read_bytes()
    expected = chunk_of(log).value
    chosen = random.Random(seed)
    for _ in range(60):
        # Half of them where Parquet has no checksums: page headers, indexes, metadata.
        at = chosen.choice([chosen.randrange(len(whole)), chosen.randrange(len(whole) * 4 // 5, len(whole))])
        flipped = bytearray(whole)
        flipped[at] ^= 1 << chosen.randrange(8)
        path.write_bytes(flipped)
        with pytest.raises((BlockDamaged, ForeignBlock), match=info.path):
            block.verify(fresh(place), info)
        try:
            assert block.read_group(fresh(place), info, 0).value == expected  # where the bit matters to nobody
        except (BlockDamaged, ForeignBlock) as failure:
            assert info.path in str(failure)


def test_a_block_alone_knows_of_every_changed_byte(place: Place) -> None:
    info = seal(place, [((1, seq), [b"f", b"v%d" % seq]) for seq in range(20)])
    path = file_of(place, info)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes((whole[at] ^ 1,)) + whole[at + 1 :])
        with pytest.raises((BlockDamaged, ForeignBlock), match=info.path):
            block.info_of(place, info.path)


def test_no_changed_byte_gives_wrong_entries_or_ends_the_process(place: Place) -> None:
    log: Log = [((1, seq), [b"f", b"v%d" % seq]) for seq in range(20)]
    info = seal(place, log)
    path = file_of(place, info)
    whole = path.read_bytes()
    expected = chunk_of(log).value
    assert len(whole) < 10_000
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes((whole[at] ^ 0x5A,)) + whole[at + 1 :])
        try:
            found = block.read_group(fresh(place), info, 0).value
        except (BlockDamaged, ForeignBlock):
            continue
        assert found == expected, f"byte {at}"


def test_other_row_groups_of_a_damaged_block_can_be_read(place: Place) -> None:
    log = log_of(40_000)
    info = seal(place, log)
    path = file_of(place, info)
    good = [block.read_group(place, info, number).value for number in range(3)]
    whole = bytearray(path.read_bytes())
    extent = footer.known(place, info).extents[1]
    whole[(extent.start + extent.stop) // 2] ^= 4
    path.write_bytes(whole)
    assert block.read_group(place, info, 0).value == good[0]
    assert block.read_group(place, info, 2).value == good[2]
    with pytest.raises(BlockDamaged, match="row group 1"):
        block.read_group(place, info, 1)
    with pytest.raises(BlockDamaged, match=r"sha256.*row groups that cannot be read: 1 \(\d+-\d to \d+-\d\)$"):
        block.verify(place, info)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9, 0.9999])
def test_a_block_that_is_cut_off_is_found(place: Place, part: float) -> None:
    info = seal(place, log_of(3_000))
    path = file_of(place, info)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * part)])
    for reader in (place, fresh(place)):
        with pytest.raises(BlockDamaged, match=info.path):
            block.verify(reader, info)
        with pytest.raises(BlockDamaged, match=f"{info.path}: it has .* bytes and was written with"):
            block.read_group(fresh(reader), info, 0)


def test_a_block_that_is_cut_off_while_it_is_used_is_found(place: Place) -> None:
    info = seal(place, log_of(3_000))
    block.read_group(place, info, 0)
    path = file_of(place, info)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(BlockDamaged, match="it ends at byte 100"):
        block.read_group(place, info, 0)


def test_a_block_that_is_not_there_is_named(place: Place) -> None:
    info = seal(place, log_of(10))
    block.read_group(place, info, 0)
    place.delete(info.path)
    for reader in (place, fresh(place)):
        for action in (lambda r: block.read_group(r, info, 0), lambda r: block.verify(r, info)):
            with pytest.raises(BlockMissing, match=f"{info.path}: this block is not there"):
                action(reader)


@pytest.mark.parametrize(
    "other",
    [Origin(STORE, b"news", 8), Origin(STORE, b"olds", 7)],
    ids=["a topic of the same name that was before it", "another topic"],
)
def test_a_block_of_another_topic_is_foreign(place: Place, other: Origin) -> None:
    info, foreign = seal(place, log_of(100)), seal(place, log_of(100), other)
    shutil.copy(file_of(place, foreign), file_of(place, info))
    swapped = replace(info, file_bytes=foreign.file_bytes)
    with pytest.raises(ForeignBlock, match=f"{info.path}: this is block {foreign.path}"):
        block.read_group(fresh(place), swapped, 0)
    with pytest.raises(ColdError, match=info.path):
        block.verify(fresh(place), info)
    with pytest.raises(ForeignBlock, match=f"{info.path}: this is block {foreign.path}"):
        block.info_of(place, info.path)


def test_a_block_of_the_same_name_with_other_entries_is_foreign(place: Place, tmp_path: Path) -> None:
    elsewhere = open_place(str(tmp_path / "other"), tmp_path)
    log = list(log_of(100))
    info = seal(place, log)
    log[50] = log[50][0], [b"value", b"changed"]
    foreign = seal(elsewhere, log, Origin("another store", b"news", 7), SEALED_MS + 5)
    shutil.copy(file_of(elsewhere, foreign), file_of(place, info))
    with pytest.raises(ColdError, match=info.path):
        block.read_group(fresh(place), info, 0)
    with pytest.raises(ForeignBlock, match=info.path):
        block.read_group(fresh(place), replace(info, file_bytes=foreign.file_bytes), 0)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"\0" * 5000, b"{}" * 4000, b"PAR1" + b"\xff" * 500 + b"PAR1"])
def test_a_file_that_is_no_block_is_found(place: Place, content: bytes) -> None:
    info = seal(place, log_of(10))
    file_of(place, info).write_bytes(content)
    for action in (lambda: block.read_group(fresh(place), replace(info, file_bytes=len(content)), 0),
                   lambda: block.verify(fresh(place), info), lambda: block.info_of(place, info.path)):  # fmt: skip
        with pytest.raises((BlockDamaged, ForeignBlock), match=info.path):
            action()


def test_a_parquet_file_of_somebody_else_is_foreign(place: Place) -> None:
    info = seal(place, log_of(10))
    path = file_of(place, info)
    pq.write_table(pq.read_table(path, partitioning=None).replace_schema_metadata(None), path)
    with pytest.raises(ForeignBlock, match=f"{info.path}: not a block of rlite-pubsub"):
        block.info_of(place, info.path)


def test_a_block_of_a_later_format_is_refused_by_name(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as later:
        later.setattr(footer, "FORMAT", footer.FORMAT + 1)
        info = seal(place, log_of(10))
    with pytest.raises(ForeignBlock, match="a block of format 2, and this version reads format 1"):
        block.read_group(place, info, 0)


def test_blocks_are_written_and_read_wherever_the_store_is(any_place: Place) -> None:
    log = log_of(20_000)
    info = seal(any_place, log)
    assert read_all(any_place, info) == chunk_of(log).blob
    block.verify(any_place, info)
    assert block.info_of(any_place, info.path) == (info, NEWS)
    data = bytearray(any_place.read(info.path))
    data[len(data) // 3] ^= 1
    any_place.write(info.path, bytes(data))
    with pytest.raises(BlockDamaged, match=info.path):
        block.verify(any_place, info)
    any_place.delete(info.path)
    with pytest.raises(BlockMissing, match=info.path):
        block.read_group(any_place, info, 0)


def test_errors_go_from_process_to_process() -> None:
    import pickle

    failure = pickle.loads(pickle.dumps(BlockDamaged("a/b", "why")))
    assert isinstance(failure, BlockDamaged) and (failure.path, failure.reason) == ("a/b", "why")
