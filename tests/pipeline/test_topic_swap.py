"""TOPIC.SWAP and what calls it, without Spark."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis
from patience import until

from rlite_pubsub.cold import checking
from rlite_pubsub.pipeline.cold_topic import cold_topic, place_of
from rlite_pubsub.pipeline.jobs import compact
from rlite_pubsub.pipeline.jobs.compact import Compact, CompactRun
from tests.pipeline.cold_server import SMALL_BLOCKS, blocks, fill, wait_for_blocks

if TYPE_CHECKING:
    from server_process import Serve

COUNT = 2000


@pytest.fixture
def options(serve: Serve) -> Compact:
    server = serve(*SMALL_BLOCKS)
    options = Compact(url=f"redis://127.0.0.1:{server.port}/0", topics=("news",), target_entries=600)
    fill(options.connect(), "news", COUNT)
    wait_for_blocks(options.connect(), "news", 20)
    return options


def runs_of(options: Compact) -> list[CompactRun]:
    client = options.connect()
    cold = cold_topic(client, b"news")
    return compact.runs_of(place_of(client, cold, None), b"news", cold, options)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_nobody_who_reads_notices_that_blocks_were_swapped(options: Compact) -> None:
    client = options.connect()
    entries = client.xrange("news")
    gone = (2, 300, 301, 700)  # in the first block, in another of the first run, in the second run
    client.xdel("news", *(entries[place][0] for place in gone))
    client.xtrim("news", minid=entries[5][0].decode(), approximate=False)
    entries = [entry for place, entry in enumerate(entries) if place >= 5 and place not in gone]
    before = len(blocks(client, "news"))
    for run in runs_of(options):
        assert compact.swap(client, run, compact.merge(run, now_ms()))
    assert len(blocks(client, "news")) < before / 10
    assert client.xrange("news") == entries
    assert client.xrevrange("news", count=COUNT) == entries[::-1]
    assert client.xlen("news") == len(entries)
    for kept in (1500, 1200, 100):  # the counts of the first block are those of the new one
        client.xtrim("news", maxlen=kept, approximate=False)
        assert client.xrange("news") == entries[-kept:]


def _place(client: redis.Redis) -> compact.Place:
    return place_of(client, cold_topic(client, b"news"), None)


def test_a_swap_that_is_asked_for_again_is_done_once(options: Compact) -> None:
    client = options.connect()
    run = runs_of(options)[0]
    made = compact.merge(run, now_ms())
    assert compact.swap(client, run, made)
    there = len(blocks(client, "news"))
    assert not compact.swap(client, run, made)
    assert len(blocks(client, "news")) == there


def test_blocks_are_not_swapped_for_one_with_other_entries(options: Compact) -> None:
    client = options.connect()
    one, other, *_ = runs_of(options)
    made = compact.merge(one, now_ms())
    before = blocks(client, "news")
    for wrong in (
        other,
        one._replace(blocks=one.blocks[:-1]),
        one._replace(blocks=(*one.blocks, other.blocks[0])),
        one._replace(blocks=one.blocks[::2]),
        one._replace(origin=one.origin._replace(number=one.origin.number + 1)),
    ):
        with pytest.raises(redis.ResponseError, match="not adjacent blocks of the topic"):
            compact.swap(client, wrong, made)
    assert blocks(client, "news") == before


def test_a_cold_store_is_whole_after_compaction(options: Compact) -> None:
    client = options.connect()
    place = _place(client)
    for run in runs_of(options):
        compact.swap(client, run, compact.merge(run, now_ms()))
    compact.mirror(client, place, b"news")
    found = list(checking.verify(place))
    assert not [each for each in found if each.is_wrong]
    manifest = next(each for each in found if each.path.endswith("_manifest.json"))
    listed = [each for each in found if each.kind == checking.OK and each.path != manifest.path]
    assert sum(each.entries for each in listed) >= sum(
        int(dict(one)[b"count"] if isinstance(one, dict) else one[one.index(b"count") + 1])
        for one in blocks(client, "news")
    )


def test_a_damaged_block_is_not_merged(options: Compact) -> None:
    run = runs_of(options)[0]
    victim = Path(run.place.url) / run.blocks[1].path
    data = bytearray(victim.read_bytes())
    data[40] ^= 1  # in a page
    victim.write_bytes(data)
    with pytest.raises(compact.BlockDamaged, match=run.blocks[1].path.rpartition("/")[2]):
        compact.merge(run, now_ms())
    assert not (Path(run.place.url) / run.path).exists()


def test_row_groups_of_small_blocks_are_filled(tmp_path: Path) -> None:
    from cold_logs import NEWS, log_of, seal

    from rlite_pubsub.cold.columns import GROUP_ROWS
    from rlite_pubsub.cold.places import open_place

    place = open_place(str(tmp_path), "/")
    size = 7000
    infos = [seal(place, log_of(size, 1_700_000_000_000 + number * size)) for number in range(12)]
    made = compact.merge(CompactRun(place, NEWS, tuple(infos)), now_ms())
    assert [group.count for group in made.groups[:-1]] == [GROUP_ROWS] * (12 * size // GROUP_ROWS)
    assert made.count == 12 * size


def test_a_large_run_is_shared_out_among_tasks(tmp_path: Path) -> None:
    from cold_logs import NEWS, log_of, seal

    from rlite_pubsub.cold.places import open_place
    from rlite_pubsub.pipeline.cold_topic import ColdTopic

    place = open_place(str(tmp_path), "/")
    one = seal(place, log_of(10))
    blocks = tuple(
        compact.BlockInfo(
            f"{number}.parquet", (number * 10, 0), (number * 10 + 9, 0), 100_000, 1, 1, one.sha256, 0, ()
        )
        for number in range(10)
    )
    cold = ColdTopic("", NEWS.store, 7, (1 << 60, 0), (0, 0), frozenset(), blocks)
    for tasks, wanted in ((1, [10]), (2, [5, 5]), (3, [2, 3, 5]), (100, [2, 3, 2, 3])):
        runs = compact.runs_of(place, b"news", cold, Compact(min_tasks=tasks))
        assert [len(run.blocks) for run in runs] == wanted
        assert [each for run in runs for each in run.blocks] == list(blocks)


def test_another_server_of_the_store_reads_on_and_old_files_go_after_their_grace(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(*SMALL_BLOCKS)
    (tmp_path / "other").mkdir()
    beside = serve(*SMALL_BLOCKS, folder=tmp_path / "other", store_folder=server.store_folder)
    options = Compact(url=f"redis://127.0.0.1:{server.port}/0", target_entries=600)
    client, other = options.connect(), redis.Redis(port=beside.port, protocol=2)
    fill(client, "news", COUNT)
    wait_for_blocks(client, "news", 20)
    entries = client.xrange("news")
    assert other.xrange("news") == entries
    old = [one for run in runs_of(options) for one in run.blocks]
    place = _place(client)
    for run in runs_of(options):
        compact.swap(client, run, compact.merge(run, now_ms()))
    assert other.xrange("news") == entries
    until(lambda: not any((Path(place.url) / one.path).exists() for one in old), "the end of the grace")
    assert other.xrange("news") == client.xrange("news") == entries
