"""The rules for appended entries in a topic's settings: a largest size.

Every new entry passes here before anything is changed: XADD, TOPIC.DEFER, QUEUE.PUSH, the sink of Spark, PUBLISH to a
retained channel. What was accepted before stays accepted: a deferred entry whose time comes, a dead letter, an entry
from a master or from a payload of RESTORE.
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
