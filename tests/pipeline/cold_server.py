"""A server whose topics are in blocks, for tests of what is done with these."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from patience import PATIENCE_S

if TYPE_CHECKING:
    import redis

SMALL_BLOCKS = ("--cold-store", "local", "--cold-block-size", "4096", "--cold-grace", "5")


def fill(
    client: redis.Redis, topic: str | bytes, count: int, first_ms: int = 1_700_000_000_000, size: int = 20
) -> None:
    """Entries of some shapes, with ids that are known."""
    pipe = client.pipeline(transaction=False)
    for number in range(count):
        fields: dict[Any, Any] = {"value": b"%d " % number + bytes([number % 256]) * size}
        if number % 3 == 0:
            fields["kind"] = f"k{number % 7}"
        pipe.xadd(topic, fields, id=f"{first_ms + number // 2}-{number % 2}")
        if number % 1000 == 999:
            pipe.execute()
    pipe.execute()


def blocks(client: redis.Redis, topic: str) -> list[Any]:
    told = client.execute_command("TOPIC.BLOCKS", topic)
    known = told if isinstance(told, dict) else dict(zip(told[::2], told[1::2], strict=True))
    return list(known[b"blocks"])


def wait_for_blocks(client: redis.Redis, topic: str, count: int) -> int:
    """Until the topic has so many, and no more are being made of it."""
    deadline = time.monotonic() + PATIENCE_S
    before, since = -1, time.monotonic()
    while True:
        there = len(blocks(client, topic))
        if there != before:
            before, since = there, time.monotonic()
        if there >= count and time.monotonic() - since > 1.0:
            return there
        assert time.monotonic() < deadline, f"there are {there} blocks of {topic}"
        time.sleep(0.02)
