"""Publishing to channels that nobody hears."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from .. import load, wire
from ..contestant import Server
from ..redis_benchmark import redis_benchmark
from ..shape import Effort, Figure, Reading, Shape, Target, command_reading
from ..traffic import Publisher, alternate, drive

PIPELINE_DEPTH = 64
CONNECTIONS = 50
SHORT_PAYLOAD = b"abc"
PAYLOAD = b"p" * 100


class Unpipelined(Shape):
    """Fifty connections, each sending its next command when the last one is answered."""

    def __init__(self, name: str, sentence: str, payload: bytes) -> None:
        self.name = name
        self.sentence = sentence
        self.figures = (Figure("rate", "publish/s", target=Target(1.0)),)
        self._request = wire.publish(b"channel", payload)

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        with ExitStack() as stack:
            clients = [stack.enter_context(server.connect()) for _ in range(CONNECTIONS)]
            tally = alternate(server, clients, self._request, wire.integer(0).__eq__, effort.seconds)
            return (command_reading(tally),)


class UnpipelinedByRedisBenchmark(Shape):
    """The same with redis-benchmark, which is what people run. Its one thread is busy at half of what servers can take,
    so the rate says whether a server is a bottleneck for such a client, and the CPU column what it costs."""

    name = "publish-50"
    sentence = "PUBLISH of 3 bytes, 50 connections, no pipeline, by redis-benchmark"
    figures = (Figure("rate", "publish/s", target=Target(1.0)),)
    rate_expected = 100_000

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        command = (b"PUBLISH", b"channel", SHORT_PAYLOAD)
        return (redis_benchmark(server, CONNECTIONS, int(self.rate_expected * effort.seconds), command),)


class Pipelined(Shape):
    """So many connections, each with a channel of its own, sending the next batch when the last one is answered."""

    def __init__(self, name: str, sentence: str, connections: int) -> None:
        self.name = name
        self.sentence = sentence
        self.figures = (Figure("rate", "publish/s", target=Target(1.0)),)
        self._connections = connections

    def batches(self, connection: int) -> Iterator[load.Batch]:
        return load.same(b"channel:%02d" % connection, PAYLOAD, PIPELINE_DEPTH)

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        with ExitStack() as stack:
            publishers = [
                Publisher(stack.enter_context(server.connect()), self.batches(number))
                for number in range(self._connections)
            ]
            return (command_reading(drive(server, publishers, (), effort.seconds)),)


class Mixed(Pipelined):
    """No two commands in a row are alike."""

    def batches(self, connection: int) -> Iterator[load.Batch]:
        return load.mixed(PIPELINE_DEPTH, skip=connection)


SHAPES: tuple[Shape, ...] = (
    UnpipelinedByRedisBenchmark(),
    Unpipelined("publish-50-saturated", "as publish-50, by a generator that keeps the server busy", SHORT_PAYLOAD),
    Unpipelined("publish-50-100b", "PUBLISH of 100 bytes, 50 connections, no pipeline, the same generator", PAYLOAD),
    Pipelined("publish-pipelined-50", "PUBLISH, 64-deep pipelines, 50 connections", CONNECTIONS),
    Pipelined("publish-pipelined-1", "PUBLISH, 64-deep pipelines, 1 connection", 1),
    Mixed(
        "publish-mixed-50",
        "PUBLISH, 64-deep pipelines, 50 connections, other channel and length each time",
        CONNECTIONS,
    ),
)
