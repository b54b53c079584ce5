"""Topics with continuity: publish to them, and follow them from any point, over a folder or a URL.

    from rlite_pubsub import topics

    topics.publish("./store", "orders", {"item": "tea"})
    for entry in topics.subscribe("./store", "orders", since=yesterday):
        print(entry.id, entry.time, entry["item"])

    async for entry in topics.aio.subscribe("redis://127.0.0.1:6379", "orders", since=last_id): ...
"""

from __future__ import annotations

from rlite_pubsub.topics import aio
from rlite_pubsub.topics.entry import BEGINNING, LATEST, Entry, Gap
from rlite_pubsub.topics.subscription import Subscription, publish, subscribe

__all__ = ["BEGINNING", "LATEST", "Entry", "Gap", "Subscription", "aio", "publish", "subscribe"]
