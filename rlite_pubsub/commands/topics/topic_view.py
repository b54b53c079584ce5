"""What TOPIC.INFO tells of a topic."""

from __future__ import annotations

from rlite_pubsub.commands.topics.topic_group import view as group_view
from rlite_pubsub.engine.arguments.topic_limits import limits_of, retention_of
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.groups.group import all_groups
from rlite_pubsub.keyspace.topic import deferral
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage.cold.cold_blocks import ColdState
from rlite_pubsub.storage.topics.entry_ids import text


def view(session: CommandSession, topic: Topic) -> dict[Reply, Reply]:
    """`earliest-id` is what can still be read from; `trimmed-id` is the last entry that is gone from before it, by
    retention or by XTRIM and its kin."""
    settings = retention_of(topic).settings(topic)
    cold = topic.cold.state if topic.has_cold else ColdState()
    return {
        b"name": topic.name,
        b"length": topic.length,
        b"bytes": topic.size_bytes,
        b"earliest-id": text(topic.first_id),
        b"last-id": text(topic.last_id),
        b"entries-added": topic.entries_added,
        b"max-deleted-id": text(topic.max_deleted_id),
        b"groups": topic.group_count,
        b"group-list": [group_view(group) for group in all_groups(topic)],
        b"ephemeral": int(topic.keyspace is not session.instance.keyspace),
        b"paused": int(topic.is_paused),
        b"deferred": deferral.count(topic),
        **limits_of(topic),
        b"removed-entries": settings.removed_entries if settings is not None else 0,
        b"removed-bytes": settings.removed_bytes if settings is not None else 0,
        b"trimmed-entries": topic.trimmed,
        b"trimmed-id": text(topic.trimmed_id),
        b"cold-entries": cold.live,
        b"cold-bytes": cold.live_bytes,
        b"sealed-to": text(cold.sealed_to),
    }
