"""Topics with continuity: publish to them, and follow them from any point, over a folder or a URL.

    from rlite_pubsub import topics

    topics.publish("./store", "orders", {"item": "tea"})
    for entry in topics.subscribe("./store", "orders", since=yesterday):
        print(entry.id, entry.time, entry["item"])

    for entry in topics.consume("./store", "orders", "billing", "worker-1", credit=16):
        work_on(entry)
        entry.ack()

    table = topics.arrow("./store", "orders", since="24h", columns="id, item, price double").to_table()

    async for entry in topics.aio.subscribe("redis://127.0.0.1:6379", "orders", since=last_id): ...
"""

from __future__ import annotations

from rlite_pubsub.topics import aio
from rlite_pubsub.topics.consumption import Consumed, Consumption, consume
from rlite_pubsub.topics.entry import BEGINNING, LATEST, Entry, Gap
from rlite_pubsub.topics.history import arrow
from rlite_pubsub.topics.subscription import Subscription, publish, subscribe

__all__ = [
    "BEGINNING",
    "LATEST",
    "Consumed",
    "Consumption",
    "Entry",
    "Gap",
    "Subscription",
    "aio",
    "arrow",
    "consume",
    "publish",
    "subscribe",
]
