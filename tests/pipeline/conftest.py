"""One Spark session for all tests of the pipeline, and servers for each."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from patience import PATIENCE_S

from rlite_pubsub.pipeline.spark import jvm_archive

if TYPE_CHECKING:
    import redis
    from pyspark.sql import SparkSession
    from server_process import ServerProcess

ROOT = Path(__file__).parents[2]


def missing() -> str:
    """What these tests need and cannot find."""
    lacking = [name for name in ("pyspark", "pyarrow") if importlib.util.find_spec(name) is None]
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        lacking.append("java")
    return ", ".join(lacking)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    lacking = missing()
    if lacking:
        for item in items:
            if item.path.is_relative_to(Path(__file__).parent):
                item.add_marker(pytest.mark.skip(f"there is no {lacking}"))


def spark_environment() -> dict[str, str]:
    """Of drivers, masters and workers: loopback only, our own package, and Spark's Python from no zip file, which each
    worker would compile anew."""
    found = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(jvm_archive.home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(found),
    }


def settings(folder: Path) -> dict[str, str]:
    """Of every session here."""
    return {
        "spark.ui.enabled": "false",
        "spark.local.dir": str(folder),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder} -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.streaming.stopTimeout": f"{PATIENCE_S:.0f}s",
        "spark.log.level": "ERROR",
    }


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    before = dict(os.environ)
    os.environ.update(spark_environment())
    builder = SparkSession.builder.master("local[2,3]").appName("tests")
    for name, value in settings(tmp_path_factory.mktemp("spark")).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def url(server: ServerProcess) -> str:
    return f"redis://127.0.0.1:{server.port}/0"


@pytest.fixture
def client(url: str) -> Iterator[redis.Redis]:
    import redis

    connected: Any = redis.Redis.from_url(url)
    yield connected
    connected.close()
