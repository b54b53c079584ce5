"""A store's keys as an RDB file, which redis-server 7.0 loads.

Promises:
 - One consistent state: all is read in one snapshot. As long as that is open others' writes reuse no page of it, so the
   store grows by what they change meanwhile.
 - A topic is written whole, with what of it is in the cold store, and is never in memory as a whole.
 - What Redis has no form for stays behind: retention, pauses, deferred entries, durable subscribers, ephemeral topics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.engine.payloads import pieces
from rlite_pubsub.keyspace.keyspace import MAX_CACHED_BYTES
from rlite_pubsub.protocol.rdb import envelope
from rlite_pubsub.protocol.rdb.file import STREAM_DATABASE, FileWriter
from rlite_pubsub.storage.commons import function_libraries, replica_stream
from rlite_pubsub.storage.commons.replica_stream import Stream
from rlite_pubsub.storage.keys import fields

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine

_END_OF_TIME_MS = 1 << 62


class Dumped(NamedTuple):
    """What was written."""

    keys: int
    libraries: int


def dump(
    engine: Engine,
    write: Callable[[bytes], object],
    *,
    only_functions: bool = False,
    for_replica: Callable[[Stream], None] | None = None,
) -> Dumped:
    """Write all keys that the store has, and its functions. `for_replica` is called before, with where the store's
    stream is in this snapshot; fields that expire are written so that redis-server 7.0 reads them. To be called as a
    turn. Raises StoreError, and what `write` and `for_replica` do."""
    keyspace = engine.keyspace
    stored = keyspace.stored
    keyspace.times.hold("dumping")  # nothing may be changed meanwhile
    try:
        txn = keyspace.settle()
        about = {
            b"redis-ver": engine.redis_version.encode(),
            b"redis-bits": b"64",
            b"ctime": b"%d" % int(engine.clock()),
            b"used-mem": b"0",
            b"aof-base": b"0",
        }
        if for_replica is not None:
            stream = replica_stream.get(txn)
            assert stream is not None, "it was begun before"
            about[STREAM_DATABASE] = b"%d" % max(stream.database, 0)
            for_replica(stream)
        has_expiring_fields = for_replica is None and bool(fields.due(txn, _END_OF_TIME_MS, 1))
        writer = FileWriter(write, envelope.LATEST_VERSION if has_expiring_fields else envelope.VERSION)
        writer.begin(about)
        codes = function_libraries.codes(txn)
        for code in codes:
            writer.library(code)
        count = 0
        for database, space in stored.spaces().items():
            if not space.size or only_functions:
                continue
            writer.database(database, space.size, space.expiring)
            for _, _, _, name in stored.walk(database):
                record = stored.get(database, name)
                assert record is not None, "it is in the snapshot that is walked"
                writer.key(name, record.expires_ms, pieces(record, with_times=for_replica is None))
                count += 1
                if stored.cached_bytes > MAX_CACHED_BYTES:
                    stored.forget()
                    stored.dropped.clear()  # in a process of its own, whose turn does not end
        writer.end()
        return Dumped(count, len(codes))
    finally:
        keyspace.times.go_on("dumping")
