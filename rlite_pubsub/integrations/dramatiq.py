"""A broker for Dramatiq over a folder, for any number of processes with no server.

    dramatiq.set_broker(RliteBroker("./store"))

It is Dramatiq's own broker for Redis over the embedded client, so that workers on a server of the same folder take
part. Who waits for messages sleeps until there is one; Dramatiq polls.
"""

from __future__ import annotations

import os
from typing import Any

from dramatiq.brokers.redis import RedisBroker, _RedisConsumer

from rlite_pubsub.embedded.client import Redis

WAIT_SECONDS = 1.0
"""The longest sleep: each look for messages is the heartbeat by which other workers know that this one lives."""


class RliteBroker(RedisBroker):
    """`path` is the store's folder; `options` are those of RedisBroker (`namespace`, `middleware`, ...), and what is
    not one of its own is the client's (`db`, `appendfsync`, ...)."""

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        own = {name: options.pop(name) for name in _BROKER_OPTIONS & options.keys()}
        super().__init__(client=Redis(path, **options), **own)

    @property
    def consumer_class(self) -> type[RliteConsumer]:
        return RliteConsumer


_BROKER_OPTIONS = frozenset(("middleware", "namespace", "maintenance_chance", "heartbeat_timeout", "dead_message_ttl"))


class RliteConsumer(_RedisConsumer):
    """Dramatiq's consumer, which is woken."""

    def __next__(self) -> Any:
        if not self.message_cache and self.outstanding_message_count < self.prefetch:
            self.misses = 0  # it has waited: there is no need to wait for longer and longer
            queue = f"{self.broker.namespace}:{self.queue_name}"
            seconds = min(self.timeout / 1000, WAIT_SECONDS)
            self.broker.client.blmove(queue, queue, seconds, src="RIGHT", dest="RIGHT")  # which leaves it as it is
        return super().__next__()
