"""Adding entries to one topic, each acknowledged under the same promise: written, or synced.

Redis rewrites its AOF by itself while it grows, with a child on the server's core. Here it may not: what is measured is
XADD.
"""

from __future__ import annotations

from contextlib import ExitStack

from .. import entries, wire
from ..contestant import Server
from ..redis_benchmark import redis_benchmark
from ..shape import Effort, Figure, Reading, Shape, Target, command_reading
from ..traffic import Appender, alternate, drive

CONNECTIONS = 50
DEPTH = 64
RATE_EXPECTED = 100_000
PERSISTENT = "--appendonly yes --auto-aof-rewrite-percentage 0 --appendfsync "


class Append(Shape):
    """Entries a second; afterwards all of them must be there."""

    def __init__(self, name: str, sentence: str, sync: str, at_least: float) -> None:
        self.name = name
        self.sentence = sentence
        self.options = PERSISTENT + sync
        self.figures = (Figure("rate", "XADD/s", target=Target(at_least)),)


class UnpipelinedByRedisBenchmark(Append):
    """Its one thread is busy before either server is."""

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        topic = entries.new_topic()
        count = int(RATE_EXPECTED * effort.seconds)
        command = (b"XADD", topic, b"*", entries.FIELD, entries.payloads()[0])
        reading = redis_benchmark(server, CONNECTIONS, count, command)
        with server.connect() as client:
            entries.check_length(client, topic, count)
        return (reading,)


class Unpipelined(Append):
    """Fifty connections, each sending its next entry when the last one is acknowledged."""

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        topic = entries.new_topic()
        request = entries.addition(topic, b"*", entries.payloads()[0])
        with ExitStack() as stack:
            clients = [stack.enter_context(server.connect()) for _ in range(CONNECTIONS)]
            tally = alternate(server, clients, request, wire.is_id, effort.seconds)
            entries.check_length(stack.enter_context(server.connect()), topic, tally.commands)
            return (command_reading(tally),)


class Pipelined(Append):
    """Fifty connections, each sending its next pipeline when the last one is acknowledged."""

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        topic = entries.new_topic()
        with ExitStack() as stack:
            appenders = [
                Appender(stack.enter_context(server.connect()), entries.batches(topic, DEPTH))
                for _ in range(CONNECTIONS)
            ]
            tally = drive(server, appenders, (), effort.seconds)
            entries.check_length(stack.enter_context(server.connect()), topic, tally.commands)
            return (command_reading(tally),)


SHAPES: tuple[Shape, ...] = (
    UnpipelinedByRedisBenchmark(
        "xadd-50-everysec", "XADD of 100 bytes, 50 connections, no pipeline, by redis-benchmark; fsync every second",
        "everysec", 1.0),
    UnpipelinedByRedisBenchmark("xadd-50-always", "the same; each reply waits for fsync", "always", 1.0),
    Unpipelined("xadd-50-saturated-everysec", "as xadd-50-everysec, by a generator that keeps the server busy",
                "everysec", 1.0),
    Unpipelined("xadd-50-saturated-always", "the same; each reply waits for fsync", "always", 1.0),
    Pipelined("xadd-pipelined-everysec", "XADD of 100 bytes, 64-deep pipelines, 50 connections; fsync every second",
              "everysec", 0.8),
    Pipelined("xadd-pipelined-always", "the same; each reply waits for fsync", "always", 1.0),
)  # fmt: skip
