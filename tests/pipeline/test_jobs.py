"""Jobs over a real server and real Spark, held against XRANGE."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import redis

from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.jobs import archive, backfill, compact, export, replay, retain, stats, verify
from rlite_pubsub.pipeline.jobs.archive import Archive
from rlite_pubsub.pipeline.jobs.backfill import Backfill
from rlite_pubsub.pipeline.jobs.compact import Compact
from rlite_pubsub.pipeline.jobs.export import Export
from rlite_pubsub.pipeline.jobs.replay import Replay
from rlite_pubsub.pipeline.jobs.retain import Retain
from rlite_pubsub.pipeline.jobs.stats import Stats
from rlite_pubsub.pipeline.jobs.verify import Verify
from tests.pipeline.cold_server import SMALL_BLOCKS, blocks, fill, wait_for_blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from server_process import Serve

FIRST_MS = 1_700_000_000_000


def archived(folder: Path) -> list[tuple[str, str, list[tuple[bytes, bytes]]]]:
    """(topic, id, fields) of all files of an archive, as somebody without Spark reads them; in order."""
    files = [str(path) for path in folder.glob("topic_folder=*/date=*/*.parquet")]
    if not files:
        return []
    rows = ds.dataset(files).to_table().sort_by([("topic", "ascending"), ("ms", "ascending"), ("seq", "ascending")])
    return [
        (row["topic"], row["id"], [(each["name"], each["value"]) for each in row["headers"]])
        for row in rows.to_pylist()
    ]


def there(client: redis.Redis, *topics: str) -> list[tuple[str, str, list[tuple[bytes, bytes]]]]:
    """The same, by XRANGE."""
    return [
        (topic, entry_id.decode(), list(fields.items()))
        for topic in sorted(topics)
        for entry_id, fields in client.xrange(topic)
    ]


def test_an_archive_has_every_entry_once_and_goes_on_where_it_ended(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    long_name = "long " + "ü" * 200
    topics = ["02", "a/b:c%d", "_hidden", long_name]
    for topic in topics:
        fill(client, topic, 50)
    options = Archive(url=url, to=str(tmp_path / "archive"), batch_entries=110)
    assert archive.plan(options).totals["rows"] == 200
    assert archive.run(spark, options).rows[0]["rows"] == 200
    assert archived(tmp_path / "archive") == there(client, *topics)
    assert archive.run(spark, options).rows[0]["rows"] == 0
    fill(client, "02", 10, first_ms=FIRST_MS + 86_400_000)
    archive.run(spark, options)
    assert archived(tmp_path / "archive") == there(client, *topics)
    read = spark.read.parquet(str(tmp_path / "archive"))
    assert {row.topic for row in read.select("topic").distinct().collect()} == set(topics)
    assert {str(row.date) for row in read.where("topic = '02'").select("date").distinct().collect()} == {
        "2023-11-14",
        "2023-11-15",
    }


def test_what_was_archived_can_be_filled_back_byte_for_byte(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(client, "news", 300)
    archive.run(spark, Archive(url=url, topics=("news",), to=str(tmp_path / "archive")))
    options = Backfill(url=url, path=str(tmp_path / "archive"), topic="again", id="id", name="once")
    assert backfill.run(spark, options).rows[0]["written"] == 300
    assert client.xrange("again") == client.xrange("news")
    assert backfill.run(spark, options).rows[0]["written"] == 0
    assert client.xlen("again") == 300


def test_rows_of_any_table_become_entries(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    lines = [{"item": "tea", "count": 3, "at": FIRST_MS + 5}, {"item": None, "count": 4, "at": FIRST_MS + 1}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    backfill.run(spark, Backfill(url=url, path=str(tmp_path / "rows.jsonl"), topic="json", time="at"))
    assert client.xrange("json") == [
        (b"%d-0" % (FIRST_MS + 1), {b"at": b"%d" % (FIRST_MS + 1), b"count": b"4"}),
        (b"%d-0" % (FIRST_MS + 5), {b"at": b"%d" % (FIRST_MS + 5), b"count": b"3", b"item": b"tea"}),
    ]
    (tmp_path / "rows.csv").write_text("topic,name,text\nnews,a,hello\nother,b,world\n")
    backfill.run(spark, Backfill(url=url, path=str(tmp_path / "rows.csv"), value="text", key="name"))
    assert [fields for _, fields in client.xrange("news")] == [{b"key": b"a", b"value": b"hello"}]
    assert [fields for _, fields in client.xrange("other")] == [{b"key": b"b", b"value": b"world"}]
    with pytest.raises(OptionRefused, match="no column 'nothing'"):
        backfill.run(spark, Backfill(url=url, path=str(tmp_path / "rows.csv"), topic="x", value="nothing"))


def test_a_replay_keeps_ids_and_takes_only_what_is_chosen(
    spark: SparkSession, client: redis.Redis, url: str
) -> None:
    fill(client, "news", 400)
    entries = client.xrange("news")
    some = Replay(
        url=url, topics=("news",), to="part", since_ms=FIRST_MS + 10, until_ms=FIRST_MS + 110, where="seq = 1"
    )
    assert replay.plan(some).totals["rows"] == 200
    assert replay.run(spark, some).rows[0]["written"] == 100
    wanted = [entry for entry in entries if FIRST_MS + 10 <= int(entry[0][:13]) < FIRST_MS + 110]
    assert client.xrange("part") == [entry for entry in wanted if entry[0].endswith(b"-1")]

    whole = Replay(url=url, topics=("news",), prefix="copy.", rate=1_000_000)
    replay.run(spark, whole)
    assert client.xrange("copy.news") == entries
    fill(client, "news", 50, first_ms=FIRST_MS + 1000)
    assert replay.plan(whole).totals["rows"] == 50
    assert replay.run(spark, whole).rows[0] == {
        "topic": "news", "to topic": "copy.news", "read": 50, "written": 50, "resumed": True,
    }  # fmt: skip
    assert client.xrange("copy.news") == client.xrange("news")
    client.xadd("copy.news", {"other": "entry"})
    with pytest.raises(OptionRefused, match="an entry that is not of 'news'"):
        replay.run(spark, whole)
    with pytest.raises(OptionRefused, match="into itself"):
        replay.plan(Replay(url=url, topics=("news",)))


def test_what_is_too_old_or_too_much_goes_and_nothing_else(client: redis.Redis, url: str) -> None:
    fill(client, "news", 400)
    entries = client.xrange("news")
    with pytest.raises(OptionRefused, match="say what stays"):
        retain.plan(Retain(url=url))
    old = Retain(url=url, keep_since_ms=FIRST_MS + 50)
    assert retain.plan(old).totals["rows"] == 100
    assert retain.run(None, old).totals["trimmed"] == 100
    assert client.xrange("news") == entries[100:]
    retain.run(None, Retain(url=url, keep_entries=200))
    assert client.xrange("news") == entries[-200:]
    half = int(retain._lengths(Retain(url=url).connect(), b"news")[1]) // 2
    retain.run(None, Retain(url=url, keep_bytes=half))
    left = client.xrange("news")
    assert left == entries[-len(left) :] and 80 <= len(left) <= 100
    assert retain._lengths(Retain(url=url).connect(), b"news")[1] <= half
    assert retain.run(None, Retain(url=url, keep_bytes=half)).totals["trimmed"] == 0


def test_what_matches_goes_wherever_it_is(spark: SparkSession, serve: Serve) -> None:
    server = serve(*SMALL_BLOCKS)
    url = f"redis://127.0.0.1:{server.port}/0"
    client = redis.Redis(port=server.port)
    fill(client, "news", 1000)
    wait_for_blocks(client, "news", 10)
    entries = client.xrange("news")
    outcome = retain.run(spark, Retain(url=url, topics=("news",), delete="cast(value as string) like '%7 %'"))
    kept = [entry for entry in entries if b"7 " not in entry[1][b"value"]]
    assert client.xrange("news") == kept
    assert outcome.totals["deleted"] == len(entries) - len(kept) > 0


def test_topics_of_any_name_are_worked_on(spark: SparkSession, client: redis.Redis, url: str) -> None:
    names = [b"a,b", b" spaces ", b"no \xff text", b"star.*"]
    for name in names:
        fill(client, name, 20)
    outcome = retain.run(spark, Retain(url=url, delete="seq = 1"))
    assert outcome.totals["deleted"] == 40
    assert [client.xlen(name) for name in names] == [10] * 4
    replay.run(spark, Replay(url=url, pattern="a,b| spaces |star..", prefix="copy."))
    for name in (b"a,b", b" spaces ", b"star.*"):
        assert client.xrange(b"copy." + name) == client.xrange(name)
    with pytest.raises(OptionRefused, match="not text"):
        replay.run(spark, Replay(url=url, pattern="no.*", prefix="copy."))
    replay.run(spark, Replay(url=url, pattern="no.*", to="copied"))
    assert client.xrange("copied") == client.xrange(b"no \xff text")


@pytest.fixture
def cold(serve: Serve) -> tuple[redis.Redis, str]:
    server = serve(*SMALL_BLOCKS)
    client = redis.Redis(port=server.port)
    fill(client, "news", 2000)
    wait_for_blocks(client, "news", 20)
    return client, f"redis://127.0.0.1:{server.port}/0"


def test_compaction_changes_nothing_but_the_blocks(spark: SparkSession, cold: tuple[redis.Redis, str]) -> None:
    client, url = cold
    entries = client.xrange("news")
    before = len(blocks(client, "news"))
    options = Compact(url=url, target_entries=500)
    planned = compact.plan(options)
    assert compact.run(spark, options).totals["rows"] == planned.totals["rows"]
    assert len(blocks(client, "news")) == before - int(str(planned.totals["blocks"])) + len(planned.rows)
    assert client.xrange("news") == entries
    assert not compact.plan(options).rows
    outcome = verify.run(spark, Verify(url=url))
    assert outcome.is_well and outcome.totals["wrong"] == 0


def test_jobs_see_blocks_and_hot_log_as_one_topic(
    spark: SparkSession, cold: tuple[redis.Redis, str], tmp_path: Path
) -> None:
    client, url = cold
    entries = client.xrange("news")
    client.xdel("news", entries[30][0], entries[31][0], entries[-1][0])
    client.xtrim("news", minid=entries[7][0].decode(), approximate=False)
    fill(client, "news", 5, first_ms=FIRST_MS + 10_000)
    length = client.xlen("news")
    options = Archive(url=url, to=str(tmp_path / "archive"))
    planned = archive.plan(options)
    assert planned.totals["rows"] == length and int(str(planned.totals["blocks"])) >= 20
    archive.run(spark, options)
    assert archived(tmp_path / "archive") == there(client, "news")
    assert stats.run(spark, Stats(url=url)).totals["entries"] == length
    replay.run(spark, Replay(url=url, topics=("news",), to="copy"))
    assert client.xrange("copy") == client.xrange("news")
    retain.run(None, Retain(url=url, topics=("news",), keep_since_ms=FIRST_MS + 500))
    left = client.xrange("news")  # no block is read for it: the one in which the time lies stays whole
    assert 0 <= FIRST_MS + 500 - int(left[0][0].split(b"-")[0]) < 50
    retain.run(None, Retain(url=url, topics=("news",), keep_since_ms=FIRST_MS + 500, exact=True))
    assert client.xrange("news") == [entry for entry in left if int(entry[0].split(b"-")[0]) >= FIRST_MS + 500]


def test_verify_names_the_block_that_is_damaged_and_the_one_that_is_gone(
    spark: SparkSession, cold: tuple[redis.Redis, str]
) -> None:
    client, url = cold
    place = compact.place_of(Verify(url=url).connect(), compact.cold_topic(Verify(url=url).connect(), b"news"), None)
    files = sorted(Path(place.url).rglob("*.parquet"))
    data = bytearray(files[3].read_bytes())
    data[50] ^= 4
    files[3].write_bytes(data)
    files[5].unlink()
    assert verify.plan(Verify(url=url)).totals["blocks"] == len(files)
    outcome = verify.run(spark, Verify(url=url))
    assert not outcome.is_well
    wrong = {str(row["path"]).rpartition("/")[2]: str(row["problem"]) for row in outcome.rows if "path" in row}
    assert wrong.keys() == {files[3].name, files[5].name}
    assert wrong[files[3].name].startswith("BlockDamaged") and wrong[files[5].name].startswith("BlockMissing")


def test_a_delta_table_has_every_entry_once(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    deltalake = pytest.importorskip("deltalake")
    fill(client, "news", 100)
    table = str(tmp_path / "table")
    options = Export(url=url, topics=("news",), to=table, checkpoint=str(tmp_path / "checkpoint"), batch_entries=40)
    assert export.run(spark, options).rows[0]["rows"] == 100
    assert export.run(spark, options).rows[0]["rows"] == 0
    found: Any = pa.table(deltalake.DeltaTable(table).to_pyarrow_table())
    rows = found.sort_by([("ms", "ascending"), ("seq", "ascending")])
    assert rows["id"].to_pylist() == [entry_id.decode() for entry_id, _ in client.xrange("news")]
    assert export.append(table, rows, "some-query", 3) == 100
    assert export.append(table, rows, "some-query", 3) == 0
    assert export.append(table, rows, "some-query", 2) == 0
