"""Deltas: what is saved of a commit is read again, and nothing that is torn, stale or of another base is believed."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlite_pubsub.storage.checkpoints import deltas
from rlite_pubsub.storage.checkpoints.deltas import Checkpointed, append, follow
from rlite_pubsub.storage.pages.meta import BYTES as META_BYTES
from rlite_pubsub.storage.pages.tree import Runs

PAGE = 4096
BOOT = b"5f9c0b7e-0000-4000-8000-000000000001"
META = bytes(META_BYTES)


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path / "data.delta", os.O_RDWR | os.O_CREAT | os.O_DSYNC)
    yield opened
    os.close(opened)


def base(number: int = 10, boot: bytes = BOOT, meta: bytes = META) -> Checkpointed:
    return Checkpointed(boot, number, meta)


def runs_of(luck: random.Random, count: int = 4) -> Runs:
    return [(luck.randrange(1 << 40), luck.randbytes(luck.choice([1, 1, 3]) * PAGE)) for _ in range(count)]


def meta_of(number: int) -> bytes:
    return number.to_bytes(META_BYTES, "little")


def all_behind(descriptor: int, last: Checkpointed) -> list[tuple[int, bytes, Runs]]:
    found = []
    while (runs := follow(descriptor, last, PAGE)) is not None:
        found.append((last.number, last.meta, runs))
    return found


@pytest.mark.parametrize("counts", [[0], [1], [4, 0, 7], [deltas.MOST_PAGES // 3, 1, deltas.MOST_PAGES // 4, 2]])
def test_what_was_saved_is_read_again(descriptor: int, counts: list[int]) -> None:
    luck = random.Random(1)
    last, saved = base(), []
    for number, count in enumerate(counts, 11):
        runs = runs_of(luck, count)
        assert append(descriptor, last, number, meta_of(number), runs, PAGE)
        saved.append((number, meta_of(number), runs))
    assert all_behind(descriptor, base()) == saved


def test_who_has_appended_finds_nothing_behind(descriptor: int) -> None:
    last = base()
    assert append(descriptor, last, 11, META, runs_of(random.Random(1)), PAGE)
    assert (last.number, all_behind(descriptor, last)) == (11, [])


def test_two_who_append_in_turns_make_one_line(descriptor: int) -> None:
    luck = random.Random(2)
    one, other = base(), base()
    for number in range(11, 17):
        one, other = other, one
        all_behind(descriptor, one)
        assert append(descriptor, one, number, meta_of(number), runs_of(luck), PAGE)
    assert [number for number, _, _ in all_behind(descriptor, base())] == list(range(11, 17))


@pytest.mark.parametrize("seed", range(20))
def test_a_torn_one_is_as_if_it_had_not_been_begun(tmp_path: Path, descriptor: int, seed: int) -> None:
    luck = random.Random(seed)
    last = base()
    for number in (11, 12):
        assert append(descriptor, last, number, meta_of(number), runs_of(luck), PAGE)
    path, before = tmp_path / "data.delta", last.end
    old = bytearray(path.read_bytes())
    assert append(descriptor, last, 13, meta_of(13), runs_of(luck), PAGE)
    new = path.read_bytes()
    sectors = [at for at in range(before, last.end, 512) if old[at : at + 512] != new[at : at + 512]]
    for at in luck.sample(sectors, luck.randrange(len(sectors))):
        old[at : at + 512] = new[at : at + 512]
    path.write_bytes(old)
    assert [number for number, _, _ in all_behind(descriptor, base())] == [11, 12]


def test_one_of_another_base_counts_for_nothing(descriptor: int) -> None:
    last = base()
    assert append(descriptor, last, 11, META, runs_of(random.Random(3)), PAGE)
    for other in (base(9), base(11), base(boot=b"another"), base(meta=meta_of(1))):
        assert all_behind(descriptor, other) == []


def test_a_line_is_left_where_it_breaks(tmp_path: Path, descriptor: int) -> None:
    """The end of a longer line of an earlier time, behind a shorter one of today."""
    luck = random.Random(4)
    runs = runs_of(luck)
    last = base(10)
    for number in (11, 12, 13):
        assert append(descriptor, last, number, META, runs, PAGE)
    last = base(20)
    assert append(descriptor, last, 21, META, runs, PAGE)
    assert [number for number, _, _ in all_behind(descriptor, base(20))] == [21]
    assert all_behind(descriptor, base(10)) == []


def test_where_there_is_no_room_nothing_is_written(descriptor: int) -> None:
    limit_bytes = 10 * PAGE
    last, runs = base(), [(7, bytes(3 * PAGE))]
    assert append(descriptor, last, 11, META, runs, PAGE, limit_bytes)
    assert append(descriptor, last, 12, META, runs, PAGE, limit_bytes)
    assert not append(descriptor, last, 13, META, runs, PAGE, limit_bytes)
    assert [number for number, _, _ in all_behind(descriptor, base())] == [11, 12]
    assert append(descriptor, base(30), 31, META, runs, PAGE, limit_bytes)  # a new base begins anew


def test_a_short_write_is_an_error(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda to, data, at: pwrite(to, data[:5000], at))
    last = base()
    with pytest.raises(OSError, match="No space"):
        append(descriptor, last, 11, META, runs_of(random.Random(5)), PAGE)
    assert (last.number, last.end) == (10, 0)
    assert all_behind(descriptor, base()) == []


def test_the_file_is_not_made_longer_with_every_record(tmp_path: Path, descriptor: int) -> None:
    last, sizes = base(), set()
    for number in range(11, 40):
        assert append(descriptor, last, number, META, [(7, bytes(3 * PAGE))], PAGE)
        sizes.add((tmp_path / "data.delta").stat().st_size)
    assert sizes == {deltas.AHEAD_BYTES}
