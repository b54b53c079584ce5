"""How much of an ephemeral topic is kept: what the rules say and it says itself, and never more than fits into memory.

Law 8: what goes for this is counted and told as whatever else retention removes.
"""

from __future__ import annotations

from rlite_pubsub.keyspace.topic.rules import Rules
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.topics.topic_settings import NO_LIMITS, RetentionLimits

MAX_TOPIC_BYTES = 64 << 20
"""Of one topic; the newest entries stay."""


class MemoryRules(Rules):
    """The store's rules, for topics that are not in the store."""

    def __init__(self, memory: Environment, stored: Rules) -> None:
        super().__init__(memory)
        self._stored = stored

    def of(self, name: bytes) -> RetentionLimits | None:
        return _limited(self._stored.of(name) or NO_LIMITS)

    def limits(self, own: RetentionLimits, name: bytes) -> RetentionLimits:
        return _limited(self._stored.limits(own, name))

    def pattern_of(self, name: bytes) -> bytes | None:
        return self._stored.pattern_of(name)

    def follow(self, txn: Txn) -> None:
        """They are not in the memory; what the store's part of the turn sees counts."""


def _limited(limits: RetentionLimits) -> RetentionLimits:
    return limits._replace(size_bytes=min(limits.size_bytes or MAX_TOPIC_BYTES, MAX_TOPIC_BYTES))
