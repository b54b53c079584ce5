"""A consumer of a group: who it is, when it was seen last, how much is pending with it."""

from __future__ import annotations

from rlite_pubsub.storage.groups.consumers import ConsumerRecord


class Consumer:
    """One consumer. `Group.changed_consumer` is called for each change."""

    __slots__ = ("name", "number", "pending_count", "seen_ms")

    def __init__(self, record: ConsumerRecord) -> None:
        self.number = record.number
        self.name = record.name
        self.seen_ms = record.seen_ms
        self.pending_count = record.pending

    def see(self, at_ms: int) -> None:
        """Note that the consumer has sent something."""
        self.seen_ms = at_ms

    def count_pending(self, more: int) -> None:
        """Count this many more pending entries, or fewer."""
        self.pending_count += more

    @property
    def record(self) -> ConsumerRecord:
        """The record to store."""
        return ConsumerRecord(self.number, self.name, self.seen_ms, self.pending_count)
