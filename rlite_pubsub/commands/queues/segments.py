"""QUEUE.CUT, DROP, INFO, LEN: a queue as a chain of segments, which may be on several members of a sharded store
(groups/chain.py). An extension."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.lookup import find_topic
from rlite_pubsub.engine.arguments.queue_lookup import no_queue, queue_for_change
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.shards.slots import slot_of
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.groups import chain
from rlite_pubsub.groups.group import all_groups
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage.topics import entry_ids, segments
from rlite_pubsub.storage.topics.segments import Segment

SINCE = "1.0.0"
_NAME = Arg("name", "key", key_spec=0)
_READ = (KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),)
_UPDATE = (KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),)
_REMOVE = (KeySpec(("RW", "DELETE"), ("index", 1), ("range", 0, 1, 0)),)


@command(
    "queue.cut",
    arity=2,
    flags="write denyoom",
    group="stream",
    since=SINCE,
    summary="Close what a queue of a sharded store has so far as a segment, which can be moved to another member",
    complexity="O(N) where N is the number of the queue's groups, consumers and pending entries",
    arguments=(_NAME,),
    key_specs=_UPDATE,
    ours=True,
)
def queue_cut(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer the name of the segment's key; null if the queue has nothing under its own key."""
    queue = queue_for_change(session, args[1])
    segment = session.engine.chains.cut(queue)
    return None if segment is None else segment.name


@command(
    "queue.drop",
    arity=3,
    flags="write",
    group="stream",
    since=SINCE,
    summary="Remove a closed segment of a queue, with its values",
    complexity="O(1) for the oldest segment, else O(N) where N is the number of segments",
    arguments=(_NAME, Arg("segment")),
    key_specs=_REMOVE,
    ours=True,
)
def queue_drop(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer 1, or 0 if the queue has no such segment. Subscribers continue behind it."""
    queue = queue_for_change(session, args[1])
    for segment in list(_segments(queue)):
        if segment.name == args[2]:
            queue.lose_segment(segment)
            return 1
    return 0


@command(
    "queue.len",
    arity=2,
    flags="readonly fast",
    group="stream",
    since=SINCE,
    summary="Return the number of values in a queue, with those of its closed segments",
    complexity="O(1)",
    arguments=(_NAME,),
    key_specs=_READ,
    ours=True,
)
def queue_len(session: CommandSession, args: list[bytes]) -> Reply:
    queue = find_topic(session, args[1])
    return 0 if queue is None else queue.length + _totals(queue)[0]


@command(
    "queue.info",
    arity=2,
    flags="readonly",
    group="stream",
    since=SINCE,
    summary="Show a queue: its segments and the places of its subscribers",
    complexity="O(N) where N is the number of segments and subscribers",
    arguments=(_NAME,),
    key_specs=_READ,
    ours=True,
)
def queue_info(session: CommandSession, args: list[bytes]) -> Reply:
    """`segments` are the closed ones, oldest first; `segment` of a subscriber is the key that has its next values."""
    queue = find_topic(session, args[1])
    if queue is None:
        raise no_queue(args[1])
    entries, size_bytes = _totals(queue)
    return {
        b"name": queue.name,
        b"length": queue.length + entries,
        b"bytes": queue.size_bytes + size_bytes,
        b"own-length": queue.length,
        b"own-bytes": queue.size_bytes,
        b"last-id": entry_ids.text(queue.last_id),
        b"segments": [_shown(segment) for segment in _segments(queue)],
        b"subscribers": [
            {
                b"name": subscriber.name,
                b"position": entry_ids.text(subscriber.last_id),
                b"behind": chain.lag(subscriber),
                b"segment": _next_of(queue, subscriber.last_id),
            }
            for subscriber in all_groups(queue)
        ],
    }


def _shown(segment: Segment) -> Reply:
    return {
        b"name": segment.name,
        b"slot": slot_of(segment.name),
        b"first": entry_ids.text(segment.first),
        b"last": entry_ids.text(segment.last),
        b"length": segment.entries,
        b"bytes": segment.size_bytes,
    }


def _segments(queue: Topic) -> list[Segment]:
    return list(segments.of_topic(queue.keyspace.reading(), queue.number)) if queue.has_segments else []


def _totals(queue: Topic) -> tuple[int, int]:
    return segments.totals(queue.keyspace.reading(), queue.number) if queue.has_segments else (0, 0)


def _next_of(queue: Topic, place: entry_ids.Id) -> bytes:
    found = segments.behind(queue.keyspace.reading(), queue.number, place) if queue.has_segments else None
    return queue.name if found is None else found.name
