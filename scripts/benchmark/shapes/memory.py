"""What an idle subscriber costs in resident memory."""

from __future__ import annotations

import time
from contextlib import ExitStack

from .. import wire
from ..contestant import Server
from ..shape import Effort, Figure, Reading, Shape, Target

SUBSCRIBERS = 2000
IDLE_S = 3.0  # Redis shrinks an idle client's buffers after about two seconds
QUICK_SUBSCRIBERS = 200
QUICK_IDLE_S = 0.3


class IdleMemory(Shape):
    """Growth of VmRSS per RESP2 subscriber, in a server that has done nothing else."""

    rounds_at_most = 3
    warms_up = False

    def __init__(self, name: str, sentence: str, shared_channel: bool) -> None:
        self.name = name
        self.sentence = sentence
        self.figures = (Figure("memory", "bytes/subscriber", higher_is_better=False, target=Target(1.0)),)
        self._shared_channel = shared_channel

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        count = QUICK_SUBSCRIBERS if effort.quick else SUBSCRIBERS
        with ExitStack() as stack:
            first = stack.enter_context(server.connect())
            first.subscribe(b"idle:first")  # what the first subscriber alone brings into memory is not per subscriber
            first.call(wire.command(b"PING"), wire.command(b"pong", b""))
            server.settle()
            before = server.resident_bytes()
            for number in range(count):
                channel = b"idle:shared" if self._shared_channel else b"idle:%06d" % number
                stack.enter_context(server.connect()).subscribe(channel)
            time.sleep(QUICK_IDLE_S if effort.quick else IDLE_S)
            server.check()
            return (Reading((server.resident_bytes() - before) / count),)


SHAPES: tuple[Shape, ...] = (
    IdleMemory("idle-memory-own", "2000 idle subscribers, each on a channel of its own", shared_channel=False),
    IdleMemory("idle-memory-shared", "2000 idle subscribers on one channel", shared_channel=True),
)
