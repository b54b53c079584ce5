"""What something costs that runs beside a server: the same work on two servers in turns, one of them without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import process
from .contestant import Server
from .traffic import Tally

TURNS = 10


class Beside(NamedTuple):
    """CPU time per operation."""

    times: float
    """The server's own, over that of the one without."""
    own_us: float
    """Of the server itself."""
    companions_us: float
    """Of the processes that it has started."""


def compare(bare: Server, server: Server, work: Callable[[Server, float], Tally], seconds: float) -> Beside:
    """`work` on each in turns, `seconds` long altogether."""
    spent = {bare: 0.0, server: 0.0}
    done = {bare: 0, server: 0}
    beside = -_companions(server)
    for number in range(2 * TURNS):
        each = (bare, server)[(number + number // 2) % 2]
        before = process.own_cpu_seconds(each.pid)
        done[each] += work(each, seconds / TURNS).commands
        spent[each] += process.own_cpu_seconds(each.pid) - before
    server.settle()
    beside += _companions(server)
    costs = {each: spent[each] / done[each] for each in spent}
    return Beside(costs[server] / costs[bare], costs[server] * 1e6, beside / done[server] * 1e6)


def _companions(server: Server) -> float:
    return server.cpu_seconds() - process.own_cpu_seconds(server.pid)
