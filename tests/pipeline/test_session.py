"""A session leaves nothing behind, and changes nothing of one that is there."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rlite_pubsub.pipeline import session
from rlite_pubsub.pipeline.spark import jvm_archive
from rlite_pubsub.pipeline.spark.progress import Done, Progress, line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
_HOLD = """
import sys
from rlite_pubsub.pipeline.session import _own_folder
print(_own_folder(), flush=True)
sys.stdin.read()
"""


def test_the_folder_of_a_session_that_was_killed_is_removed_by_the_next_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    holders = [
        subprocess.Popen(
            [sys.executable, "-c", _HOLD],
            cwd=ROOT,
            env=os.environ | {"TMPDIR": str(tmp_path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        dead, living = (Path(str(holder.stdout and holder.stdout.readline().strip())) for holder in holders)
        (dead / "blockmgr").mkdir()
        holders[0].send_signal(signal.SIGKILL)
        holders[0].wait()
        mine = session._own_folder()
        assert sorted(tmp_path.glob("rlite-spark-*")) == sorted([living, mine])
    finally:
        for holder in holders:
            holder.kill()
            holder.communicate()
    assert dead != living


def test_a_session_that_is_there_is_taken_and_outlives_the_block(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    with session.session(settings={"spark.sql.shuffle.partitions": "77"}) as found:
        assert found is spark
    assert spark.range(3).count() == 3
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_the_spark_home_has_no_zipped_python_and_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = jvm_archive.home()
    assert jvm_archive.home() == home and home.is_relative_to(tmp_path)
    assert (home / "bin" / "spark-submit").exists() and any((home / "jars").glob("spark-core*.jar"))
    assert not (home / "python").exists()
    assert not jvm_archive.is_there() and not jvm_archive.options()
    jvm_archive.archive().write_bytes(b"")
    assert any("classes.jsa" in option for option in jvm_archive.options())


def test_what_the_user_has_set_is_left_and_nothing_stays_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/their/python")
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    monkeypatch.setenv("SPARK_HOME", "/their/spark")
    before = dict(os.environ)
    with session._environment(None):
        assert os.environ["PYSPARK_PYTHON"] == "/their/python" and os.environ["SPARK_HOME"] == "/their/spark"
        assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert dict(os.environ) == before
    with session._environment("spark://host:7077"):
        assert "SPARK_LOCAL_IP" not in os.environ


def test_a_bar_says_how_much_of_how_much() -> None:
    assert line("stats", None, 3.2) == "stats … 3 s"
    assert line("stats", Done(1, 4, "1/4 tasks"), 3) == f"stats [{'█' * 8}{'·' * 22}]  25% 1/4 tasks 3 s"
    assert "100%" in line("stats", Done(9, 4), 3)
    assert line("archive", Done(0, 0, "1,000 entries"), 3) == "archive 1,000 entries 3 s"


def test_a_bar_goes_when_its_work_is_done_and_is_not_there_without_a_terminal() -> None:
    quiet = io.StringIO()
    with Progress(quiet).bar("work", lambda: Done(1, 2)):
        pass
    assert not quiet.getvalue()
    looked: list[int] = []
    shown = io.StringIO()

    def look() -> Done:
        looked.append(1)
        return Done(1, 2)

    with Progress(shown, is_shown=True).bar("work", look):
        while not looked:
            pass
    assert "work [" in shown.getvalue() and shown.getvalue().endswith("\r\x1b[K")
