"""What holds for all tests, those of compat_tests too."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def programs_hear_ctrl_c() -> Iterator[None]:
    """A shell without job control starts what runs in its background with SIGINT ignored. Every program that the tests
    start would inherit that, and those that are to end by Ctrl-C would never end."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
