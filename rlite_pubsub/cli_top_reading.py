"""One look at a server or a store: what `rlite-pubsub top` makes its rates and tables of.

A server is asked with commands that any client may send, some topics at a time, so that nobody waits for it.
A folder has no server's counters: of one, only what is in the store is told.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from rlite_pubsub.cli_text import mapping, raw

BATCH = 100
COUNTERS = (
    "messages_published",
    "messages_delivered",
    "total_commands_processed",
    "total_net_input_bytes",
    "total_net_output_bytes",
)
GAUGES = (
    "rlite_pubsub_version",
    "process_id",
    "uptime_in_seconds",
    "connected_clients",
    "subscribed_sessions",
    "used_memory",
    "spilled_bytes",
    "gaps",
)
"""Of INFO."""


@dataclass(frozen=True)
class Reading:
    """What was there at a time."""

    at_s: float
    info: dict[str, Any]
    """COUNTERS and GAUGES; empty for a folder."""
    topics: dict[bytes, dict[str, Any]]
    topic_count: int
    """With those that were not looked at."""
    subscribers: list[dict[str, Any]]


def read(client: Any, match: str, limit: int, *, is_server: bool) -> Reading:
    """Look. Raises RedisError."""
    from redis.exceptions import ResponseError

    names = [raw(name) for name in client.execute_command("TOPIC.LIST", "MATCH", match)]
    topics = {}
    for some in _batches(names[:limit]):
        pipeline = client.pipeline(transaction=False)
        for name in some:
            pipeline.execute_command("TOPIC.INFO", name)
        for name, reply in zip(some, pipeline.execute(raise_on_error=False), strict=True):
            if not isinstance(reply, Exception):
                topics[name] = mapping(reply)
            elif not (isinstance(reply, ResponseError) and "no such key" in str(reply)):
                raise reply
    info = client.info() if is_server else {}
    return Reading(
        at_s=time.monotonic(),
        info={field: info[field] for field in (*COUNTERS, *GAUGES) if field in info},
        topics=topics,
        topic_count=len(names),
        subscribers=[mapping(entry) for entry in client.execute_command("SUBSCRIBER.LIST")],
    )


def _batches(names: list[bytes]) -> list[list[bytes]]:
    return [names[at : at + BATCH] for at in range(0, len(names), BATCH)]
