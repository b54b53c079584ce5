"""What holds for all tests, those of compat_tests too."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

INDIVISIBLE = ("tests/pipeline/",)
"""Rooms whose tests stay in one worker of pytest-xdist: they share what is dear, a session of Spark."""
LONGEST = ("tests/pipeline/", "tests/soak/", "tests/history/", "tests/docs/")
"""What takes longest in one worker, and therefore begins first: begun last, it would keep the other workers waiting."""


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
        items.sort(key=lambda item: next((at for at, begin in enumerate(LONGEST) if item.nodeid.startswith(begin)), 99))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests stay in one worker, as what they share does. The next file goes to whichever worker is free."""
    from xdist.scheduler import LoadScopeScheduling

    class Files(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return next((room for room in INDIVISIBLE if file.startswith(room)), file)

    config.option.loadscopereorder = False
    return Files(config, log)
