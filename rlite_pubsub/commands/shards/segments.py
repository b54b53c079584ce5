"""SHARD.READ: a member reads a closed segment that another one has, for a subscriber of its queue. An extension, for
members of the same version only."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.arguments.lookup import find_topic
from rlite_pubsub.engine.arguments.stream_ids import strict_id
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.shards.chains import gone
from rlite_pubsub.engine.shards.segment_pieces import AT_ONCE_BYTES
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.errors import SYNTAX
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage.topics import chunks, entry_ids


@command(
    "shard.read",
    arity=4,
    flags="readonly admin noscript no_multi",
    group="cluster",
    since="1.0.0",
    summary="Read entries of a closed segment, for another member",
    complexity="O(N) where N is the number of entries",
    arguments=(Arg("segment", "key", key_spec=0), Arg("after"), Arg("count", "integer")),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    ours=True,
)
def shard_read(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer the id up to which these are all of its entries, and the entries as a chunk."""
    after, count = strict_id(args[2]), integer(args[3], 1, LONG_MAX, SYNTAX)
    segment = find_topic(session, args[1])
    if segment is None:
        raise gone(args[1])
    ids: list[bytes] = []
    entries: list[bytes] = []
    size_bytes = 0
    start = entry_ids.after(after)
    for part in segment.between(start, limit=count) if start is not None else ():
        for place, entry in enumerate(part.chunk.entries(part.start, part.stop), part.start):
            ids.append(part.chunk.id(place))
            entries.append(entry)
            size_bytes += len(entry)
            if size_bytes >= AT_ONCE_BYTES:
                return ids[-1] + chunks.pack(ids, entries)
    return (ids[-1] if len(ids) == count else entry_ids.pack(entry_ids.MAX)) + chunks.pack(ids, entries)
