"""What a continuous backup costs: the server itself, and the process that follows the store."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle

from .. import beside, load, wire
from ..contestant import OURS, Server
from ..shape import Effort, Figure, Reading, Shape, Target
from ..traffic import Publisher, Tally, alternate, drive

CONNECTIONS = 50
KEYS = 1000
VALUE = b"v" * 100
MOST = 1.05


class Backup(Shape):
    """SET, by fifty connections, on a server with `backup-to` and on one without."""

    contestants = (OURS,)
    warms_up = False

    def __init__(self, name: str, depth: int) -> None:
        self.name = name
        pipeline = f"{depth}-deep pipelines" if depth > 1 else "no pipeline"
        self.sentence = f"SET of 100 bytes, {KEYS:,} keys, 50 connections, {pipeline}: with backup-to over without"
        self._depth = depth
        self.figures = (
            Figure("CPU of the server", "times", higher_is_better=False, target=Target(MOST, of_ratio=False)),
            Figure("CPU of the server", "µs/SET", higher_is_better=False),
            Figure("CPU of the process that follows", "µs/SET", higher_is_better=False),
        )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        with ExitStack() as stack:
            target = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-backup-"))
            backed = stack.enter_context(server.contestant.start(f"--backup-to {target}"))
            for each in (server, backed):
                self._work(each, effort.seconds / beside.TURNS)  # so that all keys are there, and the first snapshot
                each.settle()
            found = beside.compare(server, backed, self._work, effort.seconds)
            return Reading(found.times), Reading(found.own_us), Reading(found.companions_us)

    def _work(self, server: Server, seconds: float) -> Tally:
        requests = [wire.command(b"SET", b"key:%04d" % number, VALUE) for number in range(KEYS)]
        with ExitStack() as clients:
            connected = [clients.enter_context(server.connect()) for _ in range(CONNECTIONS)]
            if self._depth == 1:
                return alternate(server, connected, cycle(requests), b"+OK\r\n".__eq__, seconds)
            publishers = [Publisher(client, _batches(requests, self._depth)) for client in connected]
            return drive(server, publishers, (), seconds)


def _batches(requests: list[bytes], depth: int) -> Iterator[load.Batch]:
    return cycle(
        [
            load.Batch(b"".join(requests[first : first + depth]), b"+OK\r\n" * depth, depth)
            for first in range(0, len(requests), depth)
        ]
    )


SHAPES: tuple[Shape, ...] = (Backup("backup-set-50", 1), Backup("backup-set-pipelined-50", 50))
