"""A block that comes from another store is this one's then, and its row groups are what they were."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from cold_logs import NEWS, Log, log_of, read_all, seal

from rlite_pubsub.cold import adopting, block, footer, paths
from rlite_pubsub.cold.errors import BlockDamaged, ForeignBlock
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.cold.place import Place

HERE = Origin("f" * 32, b"news, as they are called here: " + b"n" * 200, 123456789)
"""Longer than before, so that the footer's lengths change."""


def path_here(log: Log) -> str:
    return paths.block_of(HERE.topic, HERE.number, log[0][0], log[-1][0])


@pytest.mark.parametrize("count", [1, 10, 9000])
def test_an_adopted_block_is_this_store_s_and_has_the_same_row_groups(place: Place, count: int) -> None:
    log = log_of(count)
    sealed = seal(place, log)
    file = place.read(sealed.path)
    before = footer.known(place, sealed)
    made, info = adopting.adopted(file, replace(sealed, path=path_here(log)), HERE)
    place.write(info.path, made)
    block.verify(place, info)
    assert block.info_of(place, info.path) == (info, HERE)
    assert (info.groups, info.sealed_ms) == (sealed.groups, sealed.sealed_ms)
    assert footer.known(place, info).extents == before.extents
    start = len(file) - before.size
    assert made[:start] == file[:start]
    assert read_all(place, info) == read_all(place, sealed)
    assert pq.read_table(place.url + "/" + info.path).equals(pq.read_table(place.url + "/" + sealed.path))


def test_it_can_go_back(place: Place) -> None:
    log = log_of(100)
    sealed = seal(place, log)
    file = place.read(sealed.path)
    made, info = adopting.adopted(file, replace(sealed, path=path_here(log)), HERE)
    assert adopting.adopted(made, replace(info, path=sealed.path), NEWS) == (file, sealed)


def test_what_is_not_the_block_that_was_sealed_is_refused(place: Place) -> None:
    sealed = seal(place, log_of(100))
    file = place.read(sealed.path)
    for at in range(0, len(file), 97):
        changed = file[:at] + bytes([file[at] ^ 1]) + file[at + 1 :]
        with pytest.raises(BlockDamaged):
            adopting.adopted(changed, sealed, HERE)
    with pytest.raises(BlockDamaged):
        adopting.adopted(file[:-1], sealed, HERE)
    with pytest.raises(BlockDamaged, match="not the block"):
        adopting.adopted(file, replace(sealed, count=99), HERE)


def test_a_file_that_is_no_block_is_refused(place: Place) -> None:
    from hashlib import sha256

    sealed = seal(place, log_of(10))
    for file, error in ((b"PAR1 and so on", BlockDamaged), (b"x" * 500 + b"\1\0\0\0PAR1", ForeignBlock)):
        said = replace(sealed, file_bytes=len(file), sha256=sha256(file).digest())
        with pytest.raises(error):
            adopting.adopted(file, said, HERE)
