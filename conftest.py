"""What holds for all tests, those of compat_tests too."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

LONGEST = (
    "tests/pipeline/test_exactly_once.py",
    "tests/pipeline/",
    "tests/scripts/test_bench.py",
    "tests/docs/test_blocks.py",
    "tests/history/test_history.py",
    "compat_tests/test_master.py",
    "compat_tests/test_sharded_moves.py",
    "compat_tests/test_spread_queues.py",
    "tests/gateway/test_openapi.py",
    "tests/soak/test_soak.py",
    "tests/faults/test_power_cut.py",
)
"""What takes longest in one worker of pytest-xdist, and therefore begins first: begun last, it would keep the other
workers waiting. A room stays in one worker, because its tests share what is dear, a session of Spark."""


@pytest.fixture(autouse=True, scope="session")
def programs_hear_ctrl_c() -> Iterator[None]:
    """A shell without job control starts what runs in its background with SIGINT ignored. Every program that the tests
    start would inherit that, and those that are to end by Ctrl-C would never end."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In workers of pytest-xdist, the longest first."""
    if hasattr(config, "workerinput"):
        order = {begin: place for place, begin in enumerate(LONGEST)}
        items.sort(key=lambda item: order.get(_unit_of(item.nodeid), len(order)))


def _unit_of(nodeid: str) -> str:
    """What stays in one worker: a file, or one of the rooms above."""
    file = nodeid.partition("::")[0]
    return next((begin for begin in LONGEST if file.startswith(begin)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests stay in one worker, as what they share does. The next file goes to whichever worker is free."""
    from xdist.scheduler import LoadScopeScheduling

    class Files(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _unit_of(nodeid)

    config.option.loadscopereorder = False
    return Files(config, log)
