"""Jobs that are killed in the middle, and started again: nothing is lost and nothing is there twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis
from patience import PATIENCE_S, until

from rlite_pubsub.pipeline.jobs import archive, compact, replay, verify
from rlite_pubsub.pipeline.jobs.archive import Archive
from rlite_pubsub.pipeline.jobs.compact import Compact
from rlite_pubsub.pipeline.jobs.replay import Replay
from rlite_pubsub.pipeline.jobs.verify import Verify
from tests.pipeline.cold_server import SMALL_BLOCKS, blocks, fill, wait_for_blocks
from tests.pipeline.test_jobs import archived, there

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from server_process import Serve

ROOT = Path(__file__).parents[2]
Kill = Callable[[list[str], Callable[[], object]], None]


@pytest.fixture
def kill() -> Iterator[Kill]:
    """Start a job, and kill it with its JVM as soon as something is there."""
    running: list[subprocess.Popen[bytes]] = []

    def run(words: list[str], is_there: Callable[[], object]) -> None:
        job = subprocess.Popen(
            [sys.executable, "-m", "rlite_pubsub", "pipeline", *words],
            cwd=ROOT,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        running.append(job)
        until(lambda: is_there() or job.poll() is not None, "what it makes")
        assert job.poll() is None, job.communicate()[0].decode()
        os.killpg(job.pid, signal.SIGKILL)
        job.communicate()

    yield run
    for job in running:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.communicate()


def test_an_archive_that_is_killed_has_every_entry_once_in_the_end(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path, kill: Kill
) -> None:
    fill(client, "news", 1500)
    to = tmp_path / "archive"

    def batches() -> set[str]:
        return {path.name.rpartition("-")[0] for path in to.glob("topic_folder=*/date=*/batch-*.parquet")}

    kill(["archive", "news", "--url", url, "--to", str(to), "--batch-entries", "200"], lambda: len(batches()) > 1)
    assert 0 < len(archived(to)) < 1500
    assert archive.run(spark, Archive(url=url, topics=("news",), to=str(to))).rows
    assert archived(to) == there(client, "news")


def test_a_batch_that_died_before_it_was_all_there_is_done_again_as_a_whole(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(client, "news", 100)
    options = Archive(url=url, topics=("news",), to=str(tmp_path / "archive"), batch_entries=40)
    archive.run(spark, options)
    commits = (tmp_path / "archive" / "_checkpoint" / "commits").glob("[0-9]*")
    last = max(commits, key=lambda path: int(path.name))
    last.unlink()  # as if it had died between the last file and the note that the batch is done
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    archive.run(spark, options)
    assert archived(tmp_path / "archive") == there(client, "news")


def test_a_replay_that_is_killed_has_every_entry_once_and_in_order_in_the_end(
    spark: SparkSession, client: redis.Redis, url: str, kill: Kill
) -> None:
    fill(client, "news", 1200)
    kill(["replay", "news", "--to", "copy", "--rate", "100", "--url", url], lambda: client.xlen("copy"))
    assert 0 < client.xlen("copy") < 1200
    outcome = replay.run(spark, Replay(url=url, topics=("news",), to="copy"))
    assert outcome.rows[0]["resumed"]
    assert client.xrange("copy") == client.xrange("news")


def test_a_compaction_that_is_killed_leaves_every_entry_and_is_finished_by_the_next(
    spark: SparkSession, serve: Serve, kill: Kill
) -> None:
    server = serve(*SMALL_BLOCKS)
    url = f"redis://127.0.0.1:{server.port}/0"
    client = redis.Redis(port=server.port)
    fill(client, "news", 3000)
    before = wait_for_blocks(client, "news", 40)
    entries = client.xrange("news")
    options = Compact(url=url, target_entries=150)
    runs = compact._all_runs(options.connect(), options)
    compact.merge(runs[1], 1)  # its file is there, as if its driver had died before it could say so
    kill(
        ["compact", "--target-entries", "150", "--url", url],
        lambda: len(blocks(client, "news")) < before,
    )
    assert client.xrange("news") == entries
    compact.run(spark, options)
    assert client.xrange("news") == entries
    assert len(blocks(client, "news")) < before / 2
    assert verify.run(spark, Verify(url=url)).is_well


def test_a_dry_run_without_an_expression_touches_nothing_and_starts_no_spark(
    client: redis.Redis, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rlite_pubsub.cli.command_line import main
    from rlite_pubsub.pipeline import session

    monkeypatch.setattr(session, "start", lambda *words, **more: pytest.fail("a session was started"))
    fill(client, "news", 100)
    entries = client.xrange("news")
    rows = tmp_path / "rows.csv"
    rows.write_text("value\n1\n")
    for words in (
        ["archive", "--to", str(tmp_path / "archive")],
        ["compact"],
        ["retain", "--keep-entries", "10"],
        ["replay", "news", "--to", "copy"],
        ["backfill", "--from", str(rows), "--topic", "news"],
        ["stats", "--report", str(tmp_path / "report.html"), "--to", str(tmp_path / "windows")],
        ["verify"],
        ["export", "--to", str(tmp_path / "table")],
    ):
        assert main(["pipeline", *words, "--url", url, "--dry-run", "--json"]) == 0, words
        told = json.loads(capsys.readouterr().out)
        assert told["job"] == words[0] and told["ok"]
        assert main(["pipeline", *words, "--url", url, "--dry-run"]) == 0
        assert capsys.readouterr().out.strip()
    assert client.xrange("news") == entries and client.keys() == [b"news"]
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("store", "log")] == ["rows.csv"]


def test_the_plan_says_blocks_tasks_and_time(capsys: pytest.CaptureFixture[str]) -> None:
    from rlite_pubsub.cli.command_line import main

    assert main(["pipeline", "plan", "--terabytes", "1", "--cores", "100", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["totals"]["entries"] == 10_000_000_000 and told["totals"]["blocks"] == 14_902
    assert all(row["tasks"] and row["time"] for row in told["rows"])


def test_an_archive_that_follows_ends_well_when_it_is_interrupted(
    client: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(client, "news", 50)
    to = tmp_path / "archive"
    words = ["archive", "--follow", "--every", "1s", "--to", str(to), "--url", url, "--json"]
    job = subprocess.Popen(
        [sys.executable, "-m", "rlite_pubsub", "pipeline", *words],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        for count, first_ms in ((50, 1_700_000_000_000), (80, 1_800_000_000_000)):
            if count == 80:
                fill(client, "news", 30, first_ms=first_ms)
            until(lambda: len(archived(to)) >= count or job.poll() is not None, f"{count} entries")  # noqa: B023
            assert job.poll() is None
        job.send_signal(signal.SIGINT)
        told, errors = job.communicate(timeout=PATIENCE_S)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.communicate()
    assert (job.returncode, errors) == (0, b"")
    assert json.loads(told)["rows"][0]["rows"] in (50, 80)  # it may be that the last batch was not told of yet
    assert archived(to) == there(client, "news")
