"""INFO's section Topics: the rules of retention, and what this process has removed."""

from __future__ import annotations

from collections.abc import Iterator

from rlite_pubsub.engine.engine import Engine


def topics(engine: Engine) -> Iterator[tuple[str, object]]:
    """Yield what this process has done for topics since its start; TOPIC.INFO shows what a topic has lost in all."""
    keeping = engine.keeping
    if keeping is None:
        return
    yield "retention_rules", len(keeping.rules.all)
    yield "retention_removed_entries", keeping.retention.removed_entries
    yield "retention_removed_bytes", keeping.retention.removed_bytes
    yield "retained_messages", keeping.retained.entries
    yield "retained_messages_refused", keeping.retained.refused
    cold = engine.keyspace.cold.shelf
    if cold is not None:
        yield "cold_cached_bytes", cold.held_bytes
        yield "cold_row_groups_read", cold.fetched
        yield "cold_failures", cold.failures
