"""Servers of both kinds, as real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from other_server import RedisProcess, redis_servers


@pytest.fixture
def start_redis(tmp_path: Path) -> Iterator[Callable[..., RedisProcess]]:
    with redis_servers(tmp_path) as start:
        yield start
