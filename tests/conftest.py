"""What holds for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from threading import get_ident

import pytest

from rlite_pubsub.storage import fork
from rlite_pubsub.storage.environment import Environment


@pytest.fixture(autouse=True)
def no_turn_is_left_open() -> Iterator[None]:
    """A turn that a test leaves open would keep the environment from being closed in the children of later tests."""
    yield
    for environment in list(fork.open_here):
        if isinstance(environment, Environment):
            turn = environment._turns.get(get_ident())
            if turn is not None:
                turn.end(commit=False)
