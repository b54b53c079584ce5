"""What may be appended to a topic, where its settings say so: no entry of more than so many bytes.

All ways by which somebody says a new entry come by here before they change anything: XADD, TOPIC.DEFER, QUEUE.PUSH, the
sink of Spark, PUBLISH to a retained channel. What was accepted before stays so: a deferred entry whose time comes, a
dead letter, what a master or a payload of RESTORE says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.protocol.errors import CommandError

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.topic.topic import Topic

TOO_LARGE = b"TOOLARGE"
"""What the error's text begins with."""


def check_size(topic: Topic, size_bytes: int) -> None:
    """Raise CommandError where fields and values of an entry are more, together, than its topic takes."""
    if not topic.has_append_rules:
        return
    retention = topic.keyspace.retention
    most_bytes = retention.append_rules(topic).max_entry_bytes if retention is not None else 0
    if 0 < most_bytes < size_bytes:
        said = TOO_LARGE, size_bytes, most_bytes
        raise CommandError(b"%b The entry has %d bytes, and its topic takes %d at most (MAX-ENTRY-BYTES)" % said)
