"""A client where the test says: of the server, or with no server of the folder `./store`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import redis

import rlite_pubsub

URL = os.environ.get("REDIS_URL")


def client(**options: Any) -> redis.Redis:
    return redis.Redis.from_url(URL, **options) if URL else rlite_pubsub.Redis("./store", **options)


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait for it."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, condition
        time.sleep(0.02)
