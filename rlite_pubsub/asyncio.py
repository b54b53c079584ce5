"""`rlite_pubsub.asyncio.Redis` and `from_url`: what redis.asyncio is to redis."""

from __future__ import annotations

from rlite_pubsub.embedded.aio_client import Redis, from_url

__all__ = ["Redis", "from_url"]
