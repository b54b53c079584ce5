"""The other way to read a topic: what XRANGE says, as rows of the source."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import redis

from rlite_pubsub.cold.columns import FIELDS
from rlite_pubsub.pipeline.reading.field_text import json_of


class Row(NamedTuple):
    """As the source has it."""

    topic: str
    id: str
    ms: int
    seq: int
    timestamp: datetime | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes, bytes]]


def rows(client: redis.Redis, topic: str) -> list[Row]:
    """All entries of a topic."""
    found = []
    for entry_id, fields in raw(client, topic):
        ms, seq = map(int, entry_id.split(b"-"))
        pairs = list(zip(fields[::2], fields[1::2], strict=True))
        keys = [value for name, value in pairs if name == b"key"]
        values = [value for name, value in pairs if name == b"value"]
        if not values:
            values = [json_of(pa.array([pairs], FIELDS))[0].as_py()]  # which has tests of its own
        found.append(
            Row(
                topic,
                entry_id.decode(),
                signed(ms),
                signed(seq),
                datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms) if ms < 253_370_764_800_000 else None,
                keys[0] if keys else None,
                values[0] if values else None,
                pairs,
            )
        )
    return found


def raw(client: redis.Redis, topic: str) -> list[Any]:
    """[id, [name, value, …]] of all entries: redis-py's own reading would lose order and repeats."""
    connection: Any = client.connection_pool.get_connection()
    try:
        connection.send_command("XRANGE", topic, "-", "+")
        found: list[Any] = connection.read_response()
        return found
    finally:
        client.connection_pool.release(connection)


def signed(half: int) -> int:
    """As a column of 64 bits with a sign has it."""
    return half - (1 << 64) if half >> 63 else half


def of_spark(row: Any) -> Row:
    """A row that Spark has collected, with headers."""
    pairs = [(bytes(one["name"]), bytes(one["value"])) for one in row["headers"]]
    key, value = (None if row[name] is None else bytes(row[name]) for name in ("key", "value"))
    when = row["timestamp"]
    when = None if when is None else when.astimezone(UTC)
    return Row(row["topic"], row["id"], row["ms"], row["seq"], when, key, value, pairs)
