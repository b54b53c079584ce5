"""A Spark session that is there soon, and leaves nothing behind.

Promises:
 - Where the program has a session already, that one is taken and nothing of it is changed.
 - On this machine: all cores, no web page, the loopback only, a folder of its own for everything temporary, which is
   removed when the session ends (and, where its process was killed, by the next one). What the JVM and the workers
   write to standard error is there, too (`LOG`), unless it is wanted.
 - On a cluster (`master`) what the cluster's own configuration says stands: only how the driver starts is ours.

Most of a start is the JVM loading classes: an archive of them (jvm_archive.py) halves it.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rlite_pubsub.pipeline.spark import jvm_archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APPLICATION = "rlite-pubsub"
LOG = "stderr"
_FOLDERS = "rlite-spark-"
_RETRIES = 3
"""Of a task: `local[n]` alone has none."""
_LAUNCHER = "-Xshare:auto -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Of the JVM that only says how the real one is to be started."""
_SHORT = ("-XX:TieredStopAtLevel=1",)
_LOG_CONFIGURATION = """\
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{{1}}: %m%n%ex{{short}}
logger.repl.name = org.apache.spark.repl.Main
logger.repl.level = error
"""
_EVERYWHERE = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.streaming.stopTimeout": "60s",
}
"""Times are UTC, a flipped bit in a Parquet file is found, and a topic `02` stays `02`."""
_HERE = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.shuffle.compress": "false",
}


def is_here(master: str | None) -> bool:
    """Return whether the executors run on this machine."""
    return master is None or master.startswith("local")


def start(
    application: str = APPLICATION,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    is_quiet: bool = True,
    is_short: bool = False,
    log: str | None = None,
) -> SparkSession:
    """The program's session, or a new one. `settings` are Spark's own, and go before ours. `is_short`: it will not live
    for minutes, so that the JVM need not compile for the long run. `log`: a file to which is appended what the JVM and
    the workers write to standard error; without one it is `LOG`, or, not `is_quiet`, our own standard error."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    folder = _own_folder()
    builder = SparkSession.builder.appName(application).master(master or f"local[{os.cpu_count() or 1},{_RETRIES}]")
    level = "error" if is_quiet and log is None else "info"
    for name, value in {**_settings(folder, master, is_short, level), **(settings or {})}.items():
        builder = builder.config(name, value)
    with (
        _environment(master),
        _errors_to(folder / LOG if log is None else Path(log)) if is_quiet or log else contextlib.nullcontext(),
        _interrupts_as_they_are(),
    ):
        return builder.getOrCreate()


def stop(session: SparkSession) -> None:
    """End the session and its JVM, and wait until it is gone: it no longer holds what is to be removed or archived."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    session.stop()
    if gateway is None:
        return
    gateway.shutdown()
    process = gateway.proc
    process.stdin.close()
    process.wait()
    SparkContext._gateway = SparkContext._jvm = None


@contextlib.contextmanager
def session(
    application: str = APPLICATION,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    is_quiet: bool = True,
    is_short: bool = False,
    log: str | None = None,
) -> Iterator[SparkSession]:
    """One that ends with the block, unless it was there before."""
    from pyspark.sql import SparkSession

    was_there = SparkSession.getActiveSession() is not None
    made = start(application, master, settings, is_quiet=is_quiet, is_short=is_short, log=log)
    try:
        yield made
    finally:
        if not was_there:
            stop(made)


def _settings(folder: Path, master: str | None, is_short: bool, level: str) -> dict[str, str]:
    log = folder / "log4j2.properties"
    log.write_text(_LOG_CONFIGURATION.format(level=level))
    java = [
        "-XX:+UseSerialGC",
        f"-Djava.io.tmpdir={folder}",
        f"-Dlog4j2.configurationFile=file:{log}",
        *jvm_archive.options(),
        *(_SHORT if is_short else ()),
    ]
    settings = {
        **_EVERYWHERE,
        "spark.driver.extraJavaOptions": " ".join(java),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    if is_here(master):
        cores = str(os.cpu_count() or 1)
        settings |= {**_HERE, "spark.local.dir": str(folder), "spark.sql.shuffle.partitions": cores}
    return settings


@contextlib.contextmanager
def _environment(master: str | None) -> Iterator[None]:
    """Set the environment that the JVM starts with. PYSPARK_PYTHON and SPARK_HOME are the user's, if they are set."""
    said = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if "SPARK_HOME" not in os.environ:
        said["SPARK_HOME"] = str(jvm_archive.home())
    if is_here(master):
        said |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LAUNCHER_OPTS": _LAUNCHER}
    new = {name: value for name, value in said.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            del os.environ[name]


@contextlib.contextmanager
def _interrupts_as_they_are() -> Iterator[None]:
    """Spark's own answer to Ctrl-C talks to the JVM in the middle of whatever is being said to it."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """Give processes started meanwhile this file as their standard error."""
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _own_folder() -> Path:
    """A folder that is locked as long as we live."""
    base = Path(tempfile.gettempdir())
    for old in base.glob(f"{_FOLDERS}*"):
        _remove_if_dead(old)
    folder = Path(tempfile.mkdtemp(prefix=_FOLDERS))
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _remove_if_dead(folder: Path) -> None:
    """Law 4: the lock is the proof."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:  # somebody else's, or it is gone
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    else:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
