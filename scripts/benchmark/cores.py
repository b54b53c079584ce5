"""Which core serves and which generates: one each where there are two, so that neither takes time from the other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_ALL = sorted(os.sched_getaffinity(0))
SERVER_CORES = set(_ALL[:1]) if len(_ALL) > 1 else set(_ALL)
GENERATOR_CORES = set(_ALL[1:]) or set(_ALL)


@contextmanager
def children_on(cores: set[int]) -> Iterator[None]:
    """What is started inside inherits these cores; the caller goes back to its own."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def generate_here() -> None:
    os.sched_setaffinity(0, GENERATOR_CORES)


def share() -> None:
    """Servers and generator run wherever the system puts them, as they do for users, who pin nothing."""
    SERVER_CORES.update(_ALL)
    GENERATOR_CORES.update(_ALL)


def separate() -> bool:
    """Whether generator and servers have cores of their own."""
    return not SERVER_CORES & GENERATOR_CORES
