"""A pytest fixture that gives a test its own server: `def test_x(rlite_server): redis.Redis(port=rlite_server.port)`.

Installed with the package. It imports the server only when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rlite_pubsub.server.background import Server


@pytest.fixture
def rlite_server() -> Iterator[Server]:
    """A server on a free port of the loopback, with a store of its own; gone after the test."""
    from rlite_pubsub import Server

    with Server() as server:
        yield server


@pytest.fixture(scope="session")
def rlite_session_server() -> Iterator[Server]:
    """Like `rlite_server`, one for the whole run: quicker, but its state is shared."""
    from rlite_pubsub import Server

    with Server() as server:
        yield server
