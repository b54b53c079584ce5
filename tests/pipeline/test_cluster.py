"""Spark standalone: a master and two workers as processes of their own, on loopback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from patience import until
from ports import free_port

from tests.pipeline.spark_process import SparkProcess
from tests.pipeline.test_reader import fill

DRIVER = Path(__file__).parent / "cluster_driver.py"
Run = Callable[..., SparkProcess]


@pytest.fixture
def run() -> Iterator[Run]:
    started: list[SparkProcess] = []

    def begin(*words: str, **environment: str) -> SparkProcess:
        started.append(SparkProcess(list(words), **environment))
        return started[-1]

    yield begin
    for process in reversed(started):
        process.clean_up()


def test_a_cluster_reads_and_writes_with_nothing_but_the_package_and_the_url(
    client: redis.Redis, url: str, run: Run, tmp_path: Path
) -> None:
    import pyspark

    fill(client, "t", 20_000)
    spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    package = "org.apache.spark.deploy"
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    options = {
        "SPARK_NO_DAEMONIZE": "1", "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOG_DIR": str(tmp_path),
        "SPARK_DAEMON_JAVA_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", ""),
    }  # fmt: skip
    master_words = (f"{package}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
    master = run(spark_class, *master_words, **options)
    until(lambda: "New state: ALIVE" in master.output() or master.is_over(), "the master")
    for number in range(2):
        folder = tmp_path / f"worker{number}"
        words = ("--host", "127.0.0.1", "-c", "1", "--memory", "700m", "--webui-port", "0", "--work-dir", str(folder))
        run(spark_class, f"{package}.worker.Worker", *words, address, **options)
    until(lambda: master.output().count("Registering worker") == 2 or master.is_over(), "the workers")
    driver = run(sys.executable, str(DRIVER), address, url, str(tmp_path))
    until(driver.is_over, "the driver")
    assert f"RESULT 20000 {20_000 * 20_001 // 2} 20000" in driver.output(), driver.output() + master.output()
    assert driver.process.returncode == 0, driver.output()
    assert len(list(tmp_path.glob("worker*/app-*/[0-9]*"))) == 2  # each of them had an executor
    found = client.xrange("copy")
    assert [int(fields[b"value"]) for _, fields in found] == list(range(1, 20_001))  # type: ignore[union-attr]
