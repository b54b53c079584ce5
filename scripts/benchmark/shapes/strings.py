"""Setting and getting strings, with and without a pipeline. Redis keeps an append-only file synced every second, for
that is what our store promises."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle

from .. import wire
from ..contestant import Server
from ..load import Batch
from ..shape import Effort, Figure, Reading, Shape, Target, command_reading
from ..traffic import Publisher, alternate, drive
from .append import PERSISTENT

CONNECTIONS = 50
DEPTH = 64
KEYS = 1000
VALUE = b"v" * 100
BATCHES = 64
SEED = 20_26


class Strings(Shape):
    """One command on keys that are all there."""

    options = PERSISTENT + "everysec"

    def __init__(self, name: str, sentence: str, word: bytes, at_least: float) -> None:
        self.name = name
        self.sentence = sentence
        self.figures = (Figure("rate", f"{word.decode()}/s", target=Target(at_least)),)
        self._word = word
        self._reply = b"+OK\r\n" if word == b"SET" else wire.bulk(VALUE)

    def request(self, key: bytes) -> bytes:
        return wire.command(self._word, key, VALUE) if self._word == b"SET" else wire.command(self._word, key)

    def fill(self, server: Server) -> None:
        """Every key is there, so that SET replaces and GET finds."""
        with server.connect() as client:
            for key in keys():
                client.call(wire.command(b"SET", key, VALUE), b"+OK\r\n")


class Unpipelined(Strings):
    """Fifty connections, each sending its next command when the last one is answered."""

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        self.fill(server)
        with ExitStack() as stack:
            clients = [stack.enter_context(server.connect()) for _ in range(CONNECTIONS)]
            request = self.request(keys()[0])
            return (command_reading(alternate(server, clients, request, self._reply.__eq__, effort.seconds)),)


class Pipelined(Strings):
    """Fifty connections, each sending its next pipeline, over keys in any order, when the last one is answered."""

    def batches(self, connection: int) -> Iterator[Batch]:
        chance = random.Random(SEED + connection)
        names = keys()
        pipelines = [b"".join([self.request(chance.choice(names)) for _ in range(DEPTH)]) for _ in range(BATCHES)]
        return cycle([Batch(pipeline, self._reply * DEPTH, DEPTH) for pipeline in pipelines])

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        self.fill(server)
        with ExitStack() as stack:
            publishers = [
                Publisher(stack.enter_context(server.connect()), self.batches(number)) for number in range(CONNECTIONS)
            ]
            return (command_reading(drive(server, publishers, (), effort.seconds)),)


def keys() -> list[bytes]:
    return [b"key:%04d" % number for number in range(KEYS)]


SHAPES: tuple[Shape, ...] = (
    Unpipelined("set-50", "SET of 100 bytes, 50 connections, no pipeline; fsync every second", b"SET", 0.9),
    Unpipelined("get-50", "GET of 100 bytes, 50 connections, no pipeline", b"GET", 0.9),
    Pipelined("set-pipelined-50", "SET of 100 bytes, 64-deep pipelines, 50 connections", b"SET", 0.8),
    Pipelined("get-pipelined-50", "GET of 100 bytes, 64-deep pipelines, 50 connections", b"GET", 0.8),
)
