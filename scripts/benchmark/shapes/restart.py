"""What lies on the disk: how soon a server is there again, and how much space an entry takes.

The pages of both stores are in the kernel's cache, as after any crash of a process.
"""

from __future__ import annotations

import time

from .. import entries, wire
from ..client import Client, WrongAnswer
from ..contestant import Server
from ..shape import Effort, Figure, Reading, Shape, Target

QUICK_ENTRIES = 20_000
REWRITE_LIMIT_S = 120.0
LOOK_AGAIN_S = 0.05


class Restart(Shape):
    """kill -9 and a start: from there to the right answer to XLEN. Redis rewrites its AOF as it is set up to, and once
    more before the space is taken. The 100 bytes of an entry can't be compressed (entries.py)."""

    name = "restart"
    sentence = "kill -9 with 5 M entries of 100 bytes, start, first reply; then the space on disk, after BGREWRITEAOF"
    options = "--appendonly yes --appendfsync everysec"
    warms_up = False
    rounds_at_most = 3
    figures = (
        Figure("time to the first reply", "ms", higher_is_better=False, target=Target(0.2)),
        Figure("space", "bytes/entry", higher_is_better=False, target=Target(2.0)),
        Figure("filling it", "XADD/s"),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        count = min(QUICK_ENTRIES, effort.entries) if effort.quick else effort.entries
        topic = entries.new_topic()
        with server.connect() as client:
            began = time.perf_counter()
            entries.fill(client, topic, count)
            rate = count / (time.perf_counter() - began)
            _await_rewrite(client)
        server.settle()
        seconds = server.restart(wire.command(b"XLEN", topic), wire.integer(count))
        with server.connect() as client:
            _rewrite(client)
            entries.check_length(client, topic, count)
        server.settle()
        return Reading(seconds * 1e3), Reading(server.disk_bytes() / count), Reading(rate)


def _rewrite(client: Client) -> None:
    """Where there is an AOF. Redis may just be rewriting it by itself, with the same entries."""
    answer = client.ask(wire.command(b"BGREWRITEAOF"))
    if not answer.startswith((b"+Background", b"-ERR Background", b"-ERR unknown command")):
        raise WrongAnswer(f"BGREWRITEAOF was answered {answer!r}")
    _await_rewrite(client)


def _await_rewrite(client: Client) -> None:
    limit = time.monotonic() + REWRITE_LIMIT_S
    while any(
        line in (b"aof_rewrite_in_progress:1", b"aof_rewrite_scheduled:1")
        for line in client.ask(wire.command(b"INFO", b"persistence")).split(b"\r\n")
    ):
        if time.monotonic() > limit:
            raise WrongAnswer(f"the AOF is still being rewritten after {REWRITE_LIMIT_S:.0f} s")
        time.sleep(LOOK_AGAIN_S)


SHAPES: tuple[Shape, ...] = (Restart(),)
