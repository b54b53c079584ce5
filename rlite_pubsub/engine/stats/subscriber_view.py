"""A subscriber as SUBSCRIBER.LIST, SUBSCRIBER.INFO and `rlite-pubsub subscribers` show it."""

from __future__ import annotations

from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.pubsub.census import DATABASES, CensusEntry
from rlite_pubsub.storage.names.durables import Durable

FIELDS = (
    ("kind", "server, embedded (a program that opens the store itself) or durable."),
    ("id, pid", "The ids of the subscriber in the store and of its process."),
    ("state, alive", "alive, dead or unknown, and whether it is alive; a durable one is as its process, or away."),
    ("names", "How many it holds; *_count counts them by kind; channels, patterns and shards are the first of them."),
    ("backlog_*", "Messages and bytes that wait for it."),
    ("oldest_age_ms", "How long the oldest of them has waited; 0: none waits, -1: unknown."),
    ("last_bell_ms", "When its process was last rung, or joined: ms since 1970; 0: it has no bell."),
    ("spilled_*", "What waits on disk for slow sessions of the process itself."),
    ("attached, client", "Whether a connection is attached to the durable subscriber, and its id there."),
    ("made_ms, seen_ms", "When a durable subscriber was made, and last seen; joined_ms: when a process joined."),
    ("ttl, max_*", "The guarantees of a durable subscriber."),
    ("expired, dropped_messages, lost_untold", "What it lost, and how much of that it has not been told of."),
)
"""(names, meaning)"""


def view(entry: CensusEntry, now_ms: int) -> dict[Reply, Reply]:
    """Return its fields: a map in RESP3, a flat array in RESP2."""
    shown: dict[Reply, Reply] = {b"kind": entry.kind.encode()}
    if entry.durable is not None:
        shown[b"name"] = entry.durable.name
    shown |= {
        b"id": b"%016x" % entry.id,
        b"pid": entry.process.record.pid if entry.process is not None else 0,
        b"state": entry.state.encode(),
        b"alive": int(entry.state == "alive"),
        b"names": sum(entry.counts.values()),
    }
    for database in DATABASES:
        shown[_count_field(database)] = entry.counts[database]
    for database in DATABASES:
        shown[database.encode()] = entry.names[database]
    shown |= {
        b"backlog_messages": entry.waiting.backlog.messages,
        b"backlog_bytes": entry.waiting.backlog.bytes,
        b"oldest_age_ms": entry.waiting.age_ms(now_ms),
        b"last_bell_ms": entry.process.last_bell_ms if entry.process is not None else 0,
    }
    return shown | (_of_process(entry, now_ms) if entry.durable is None else _of_durable(entry, entry.durable))


def _count_field(database: str) -> bytes:
    return f"{database.removesuffix('s')}_count".encode()


def _of_process(entry: CensusEntry, now_ms: int) -> dict[Reply, Reply]:
    return {
        b"joined_ms": entry.process.record.joined_ms if entry.process is not None else 0,
        b"spilled_sessions": entry.spilled_sessions,
        b"spilled_bytes": entry.spilled.backlog.bytes,
        b"spilled_oldest_age_ms": entry.spilled.age_ms(now_ms),
    }


def _of_durable(entry: CensusEntry, durable: Durable) -> dict[Reply, Reply]:
    return {
        b"attached": int(entry.attachment is not None),
        b"client": entry.attachment.session if entry.attachment is not None else 0,
        b"ttl": durable.ttl_s,
        b"max_bytes": durable.max_bytes,
        b"max_messages": durable.max_messages,
        b"made_ms": durable.made_ms,
        b"seen_ms": durable.seen_ms,
        b"expired": int(durable.is_expired),
        b"dropped_messages": durable.dropped,
        b"lost_untold": entry.lost_untold,
    }
