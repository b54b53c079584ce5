"""Topics and Spark: the source, the sink and the jobs, each beside what one would have without them, in one session.

Executors and server share the cores, as they do on one machine. Times are those of warm sessions, but for
`pipeline-stats`, which is one command from the shell to its result.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any

from .. import cold_topics, entries
from ..client import WrongAnswer
from ..contestant import OURS, Server, ServerFailed
from ..library import Program, python
from ..shape import Effort, Figure, NotHere, Reading, Shape, Target
from .append import PERSISTENT

EVERYSEC = PERSISTENT + "everysec"
MODULES = "pyspark, pyarrow, redis, rlite_pubsub"
ENTRIES = 1_000_000
QUICK_ENTRIES = 20_000
TIMES = 5
"""In one session, alternating."""
BLOCK_BYTES = 32 << 20
BATCHES = 2
SMALL_BLOCK_ENTRIES = 10_000
SMALL_BLOCKS = 100
QUICK_SMALL_BLOCKS = 5
COMPACTIONS = 3
HOT_SHARE = 4 / 3
"""A topic keeps a quarter of the block size hot."""
ENTRY_BYTES = len(entries.numbered(0))
COMMAND_LIMIT_S = 300.0


@functools.cache
def interpreter() -> str:
    """A Python that can start Spark. Raises NotHere."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise NotHere("there is no java")
    try:
        return python(MODULES)
    except ServerFailed as failure:
        raise NotHere(str(failure)) from failure


class Pipeline(Shape):
    """What Spark does with a server's topics."""

    contestants = (OURS,)
    options = EVERYSEC
    rounds_at_most = 3
    warms_up = False


def _times(effort: Effort) -> int:
    return 1 if effort.quick else TIMES


def _heard(program: Program, times: int) -> list[Any]:
    """What it says so many times, once it is ready."""
    program.hear()
    return [program.hear() for _ in range(times)]


def _filled(server: Server, effort: Effort, count: int = ENTRIES) -> tuple[bytes, int]:
    """A new topic, and how many entries it has."""
    topic = entries.new_topic()
    count = QUICK_ENTRIES if effort.quick else count
    with server.connect() as client:
        entries.fill_numbered(client, topic, count)
        entries.check_length(client, topic, count)
    return topic, count


class ReadCold(Pipeline):
    """The same columns of the very same entries, by read_topic, by the source and by Spark itself: the files' columns,
    and the source's. read_topic proves the digests of all files each time."""

    name = "spark-read-cold"
    sentence = f"batch read of {ENTRIES:,} entries of 100 bytes from blocks, over Spark's own reading of these files"
    own_options = f"--cold-store local --cold-block-size {BLOCK_BYTES}"
    figures = (
        Figure("read_topic over native Parquet, the files' columns", "times", target=Target(0.7, of_ratio=False)),
        Figure("read_topic over native Parquet, the source's columns", "times", target=Target(0.7, of_ratio=False)),
        Figure("read_topic's rate, the source's columns", "entries/s"),
        Figure("the source over native Parquet, the files' columns", "times"),
        Figure("the source over native Parquet, the source's columns", "times"),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        interpreter()
        block_bytes = BLOCK_BYTES >> 5 if effort.quick else BLOCK_BYTES
        with server.connect() as client:
            cold_topics.seal_from(client, block_bytes)
            topic, _ = _filled(server, effort, ENTRIES + BLOCK_BYTES // ENTRY_BYTES)
            count = cold_topics.until_sealed(client, topic, block_bytes)
        server.settle()
        words = (server.url, topic.decode(), count, _times(effort), server.store / "cold")
        with Program("spark_reading", *words, interpreter=interpreter()) as program:
            took = _heard(program, _times(effort))
        return (
            Reading(median(each["files"] / each["topic as the files"] for each in took)),
            Reading(median(each["files as the source"] / each["topic"] for each in took)),
            Reading(count / median(each["topic"] for each in took)),
            Reading(median(each["files"] / each["source as the files"] for each in took)),
            Reading(median(each["files as the source"] / each["source"] for each in took)),
        )


class ReadServer(Pipeline):
    """The better of two sizes of page, for redis-py."""

    name = "spark-read-server"
    sentence = f"batch read of {ENTRIES:,} entries of 100 bytes from the server, over XRANGE by redis-py with hiredis"
    figures = (
        Figure("over paging with redis-py", "times", target=Target(1.5, of_ratio=False)),
        Figure("rate", "entries/s"),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        interpreter()
        topic, count = _filled(server, effort)
        server.settle()
        words = (server.url, topic.decode(), count, _times(effort))
        with Program("spark_reading", *words, interpreter=interpreter()) as program:
            took = _heard(program, _times(effort))
        return (
            Reading(median(min(each["1000"], each["10000"]) / each["source"] for each in took)),
            Reading(count / median(each["source"] for each in took)),
        )


class Stream(Pipeline):
    """From the start of the query to its end."""

    name = "spark-stream"
    sentence = f"a streaming query over {ENTRIES:,} entries of 100 bytes, in {BATCHES} batches"
    figures = (Figure("rate", "rows/s", target=Target(300_000, of_ratio=False)),)

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        interpreter()
        topic, count = _filled(server, effort)
        server.settle()
        words = (server.url, topic.decode(), count, _times(effort), server.folder, BATCHES)
        with Program("spark_streaming", *words, interpreter=interpreter()) as program:
            return (Reading(count / median(_heard(program, _times(effort)))),)


class Sink(Pipeline):
    """From the start of the query to its end; all rows are there, and once."""

    name = "spark-sink"
    sentence = f"a streaming query from Parquet files into a topic, exactly once: {ENTRIES:,} rows of 100 bytes"
    figures = (Figure("rate", "rows/s", target=Target(100_000, of_ratio=False)),)

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        count = QUICK_ENTRIES if effort.quick else ENTRIES
        words = (server.url, entries.new_topic().decode(), count, _times(effort), server.folder)
        with Program("spark_streaming", *words, interpreter=interpreter()) as program:
            return (Reading(count / median(_heard(program, _times(effort)))),)


class Compaction(Pipeline):
    """The job, which proves what it reads and writes and swaps it under the server, over reading and writing alone."""

    name = "compaction"
    sentence = f"about {SMALL_BLOCKS} blocks of {SMALL_BLOCK_ENTRIES:,} entries become few, over joining by pyarrow"
    own_options = f"--cold-store local --cold-block-size {int(SMALL_BLOCK_ENTRIES * ENTRY_BYTES * HOT_SHARE)}"
    figures = (
        Figure("time over pyarrow's", "times", higher_is_better=False, target=Target(3.0, of_ratio=False)),
        Figure("rate", "entries/s"),
        Figure("blocks before", "blocks"),
        Figure("blocks after", "blocks", higher_is_better=False),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        interpreter()
        count = SMALL_BLOCK_ENTRIES * ((QUICK_SMALL_BLOCKS if effort.quick else SMALL_BLOCKS) + 1)
        topics = [entries.new_topic() for _ in range(1 + (1 if effort.quick else COMPACTIONS))]
        block_bytes = int(self.own_options.split()[-1])
        with server.connect() as client:
            for topic in topics:
                entries.fill_numbered(client, topic, count)
                cold_topics.until_sealed(client, topic, block_bytes)
        server.settle()
        words = (server.url, server.store / "cold", *(topic.decode() for topic in topics))
        with Program("spark_compaction", *words, interpreter=interpreter()) as program:
            said = _heard(program, len(topics) - 1)
        return (
            Reading(median(each["compact"] / each["pyarrow"] for each in said)),
            Reading(median(each["entries"] / each["compact"] for each in said)),
            Reading(median(each["blocks"] for each in said)),
            Reading(median(each["left"] for each in said)),
        )


class Stats(Pipeline):
    """A fresh process each time: Python, the JVM, the session, the job."""

    name = "pipeline-stats"
    sentence = f"`rlite-pubsub pipeline stats` on {ENTRIES:,} entries, from the shell to its result"
    rounds_at_most = 1
    figures = (
        Figure("after `pipeline prepare`", "s", higher_is_better=False, target=Target(10.0, of_ratio=False)),
        Figure("without", "s", higher_is_better=False),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        topic, count = _filled(server, effort)
        prepared, bare = server.folder / "prepared", server.folder / "bare"
        if effort.quick:
            prepared = bare  # a JVM less: it is to run, and no more
        else:
            _command(prepared, "prepare")
        server.settle()
        took: dict[Path, list[float]] = {prepared: [], bare: []}
        for number in range(_times(effort)):
            for cache in dict.fromkeys((prepared, bare) if number % 2 else (bare, prepared)):
                start = time.perf_counter()
                told = json.loads(_command(cache, "stats", "--json", "--url", server.url, topic.decode()))
                took[cache].append(time.perf_counter() - start)
                if told.get("totals", {}).get("entries") != count:
                    raise WrongAnswer(f"{told.get('totals')} entries were counted, and not {count}")
        return Reading(median(took[prepared])), Reading(median(took[bare]))


def _command(cache: Path, *words: str) -> str:
    """What `rlite-pubsub pipeline …` prints, with this folder for what makes Spark start fast."""
    run = subprocess.run(
        [interpreter(), "-m", "rlite_pubsub", "pipeline", *words],
        capture_output=True,
        text=True,
        timeout=COMMAND_LIMIT_S,
        env=os.environ | {"XDG_CACHE_HOME": str(cache)},
    )
    if run.returncode:
        raise WrongAnswer(f"pipeline {words[0]} ended with status {run.returncode}: {run.stderr.strip()[-300:]}")
    return run.stdout


SHAPES: tuple[Shape, ...] = (ReadCold(), ReadServer(), Stream(), Sink(), Compaction(), Stats())
