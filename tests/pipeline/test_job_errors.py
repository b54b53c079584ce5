"""What a scheduler and its people get of a job that cannot be done: a sentence, an exit code, one shape of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
from pyspark.errors import AnalysisException

from rlite_pubsub.cold.errors import BlockDamaged
from rlite_pubsub.pipeline.errors import DataLoss, OptionRefused, TopicMissing
from rlite_pubsub.pipeline.jobs import backfill, replay, retain
from rlite_pubsub.pipeline.jobs.backfill import Backfill
from rlite_pubsub.pipeline.jobs.outcome import Outcome
from rlite_pubsub.pipeline.jobs.replay import Replay
from rlite_pubsub.pipeline.jobs.retain import Retain
from rlite_pubsub.pipeline.spark.failures import Failed, JobFailed, naming, one_line, reason
from tests.pipeline.conftest import spark_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ended(*words: str) -> subprocess.CompletedProcess[str]:
    """A job as a process of its own."""
    command = [sys.executable, "-m", "rlite_pubsub", "pipeline", *words]
    return subprocess.run(command, env=os.environ | spark_environment(), capture_output=True, text=True, check=False)


def orders(client: redis.Redis) -> None:
    for number in range(20):
        client.xadd("orders", {"item": "tea" if number % 2 else "milk", "price": f"{number}.50"}, id=f"{number + 1}-0")


def test_an_expression_that_spark_does_not_understand_is_named_in_one_sentence(
    client: redis.Redis, url: str, tmp_path: Path
) -> None:
    orders(client)
    log = tmp_path / "log"
    words = ("replay", "orders", "--to", "copy", "--url", url, "--where", "pric > 3", "--fields", "price double")
    found = ended(*words, "--json", "--log-file", str(log))
    assert found.returncode == Failed.OPTIONS
    (line,) = [line for line in found.stderr.splitlines() if line.startswith("rlite-pubsub:")]
    assert "where: 'pric > 3': " in line and "`pric`" in line and "Traceback" not in found.stderr
    told = json.loads(found.stdout)
    assert told["job"] == "replay" and not told["ok"] and told["error"]["kind"] == "options"
    assert told["error"]["text"].startswith("where: 'pric > 3': ")
    assert log.exists()


def test_a_dry_run_checks_the_expression_and_counts_what_it_takes(
    spark: SparkSession, client: redis.Redis, url: str
) -> None:
    orders(client)
    where = "price >= 10 and item = 'tea'"
    some = Replay(url=url, topics=("orders",), to="copy", where=where, fields="item, price double")
    assert replay.plan(some, spark).totals["matching"] == 5
    assert replay.run(spark, some).rows[0]["written"] == 5
    gone = Retain(url=url, topics=("orders",), delete="price < 3", fields="price double")
    assert retain.plan(gone, spark).totals["matching"] == 3
    assert retain.run(spark, gone).totals["deleted"] == 3
    assert client.xlen("orders") == 17
    with pytest.raises(OptionRefused, match="delete: 'price < ': Syntax error"):
        retain.plan(Retain(url=url, topics=("orders",), delete="price < ", fields="price double"), spark)
    with pytest.raises(OptionRefused, match="fields: there is a column 'id' already; say `id as other_name`"):
        replay.plan(Replay(url=url, topics=("orders",), to="x", where="id = '1'", fields="id"), spark)
    with pytest.raises(TopicMissing, match="there is no topic 'order'"):
        replay.plan(Replay(url=url, topics=("order",), to="x"))


def test_a_backfill_is_named_by_its_source_so_that_twice_is_once(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"item": "tea"}\n{"item": "milk"}\n')
    options = Backfill(url=url, path=str(tmp_path / "rows.jsonl"), topic="orders")
    assert backfill.run(spark, options).rows[0]["written"] == 2
    again = backfill.run(spark, options).rows[0]
    assert again["written"] == 0 and again["done before"]
    assert client.xlen("orders") == 2
    other = Backfill(url=url, path=str(tmp_path / "rows.jsonl"), topic="orders", name="once more")
    assert backfill.run(spark, other).rows[0]["written"] == 2


@pytest.mark.parametrize(
    ("failure", "kind", "text"),
    [
        (OptionRefused("say to"), Failed.OPTIONS, "say to"),
        (TopicMissing("t"), Failed.OPTIONS, "there is no topic 't'; allowMissingTopic=true reads it as an empty one"),
        (BlockDamaged("t/1/b.parquet", "its sha256 is another"), Failed.DAMAGE, "t/1/b.parquet: its sha256 is another"),
        (redis.ConnectionError("refused"), Failed.SERVER, "refused"),
        (AnalysisException("[A_B.C] No `x`. SQLSTATE: 42703; line 1"), Failed.OPTIONS, "No `x`"),
    ],
)
def test_each_kind_of_failure_has_its_exit_code(failure: Any, kind: Failed, text: str) -> None:
    with pytest.raises(JobFailed) as failed, one_line():
        raise failure
    assert (failed.value.kind, str(failed.value)) == (kind, text)


def test_of_what_spark_tells_the_sentence_that_says_it_is_shown() -> None:
    told = """[PYTHON_DATA_SOURCE_ERROR] Failed to plan: Traceback (most recent call last):
      File "reader.py", line 3, in partitions
    rlite_pubsub.pipeline.errors.DataLoss: topic 'news': entries are gone
     SQLSTATE: 38000"""
    assert reason(told) == ("topic 'news': entries are gone", Failed.LOSS)
    assert reason("rlite_pubsub.cold.errors.BlockMissing: a: gone") == ("a: gone", Failed.DAMAGE)
    assert reason("[SOME_ERROR] no\n\nmore") == ("no", None)
    assert str(DataLoss("t", "x")).startswith("topic 't': x")
    with pytest.raises(OptionRefused, match="where: 'x': No column"), naming("where", "x"):
        raise AnalysisException("[A] No column. SQLSTATE: 1")


def test_all_jobs_share_one_shape_of_json() -> None:
    outcome = Outcome("verify", [{"path": "a", "problem": "gone"}], {"rows": 3}, False)
    assert outcome.about() == {
        "job": "verify", "ok": False, "rows": [{"path": "a", "problem": "gone"}], "totals": {"rows": 3},
    }  # fmt: skip
