"""The rules for appended entries in a topic's settings: a largest size, and that a closed segment takes none.

Every new entry passes here before anything is changed: XADD, TOPIC.DEFER, QUEUE.PUSH, the sink of Spark, PUBLISH to a
retained channel. What was accepted before stays accepted: a deferred entry whose time comes, a dead letter, an entry
from a master or from a payload of RESTORE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.storage.topics.topic_settings import NO_APPEND_RULES

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.topic.topic import Topic

TOO_LARGE = b"TOOLARGE"
"""What the error's text begins with."""
CLOSED = b"CLOSED It is a closed segment of a queue: push to the queue's own key"


def check_size(topic: Topic, size_bytes: int) -> None:
    """Raise CommandError where fields and values of an entry are more, together, than its topic takes, or where it
    takes none."""
    if not topic.has_append_rules:
        return
    retention = topic.keyspace.retention
    rules = retention.append_rules(topic) if retention is not None else NO_APPEND_RULES
    if rules.is_closed:
        raise CommandError(CLOSED)
    most_bytes = rules.max_entry_bytes
    if 0 < most_bytes < size_bytes:
        said = TOO_LARGE, size_bytes, most_bytes
        raise CommandError(b"%b The entry has %d bytes, and its topic takes %d at most (MAX-ENTRY-BYTES)" % said)
