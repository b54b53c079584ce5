"""The replication stream for replicas, in Redis's bytes: whoever commits writes it, in the same commit.

    key  \\0 "stream"             value  begins u64 | ends u64 | kept bytes u64 | until ms u64 | written ms u64
                                        | database i64 | room u64 | history (40 letters)
    key  '0' + offset u64        value  bytes of the stream, from this offset on
    key  '1' + replica (8 bytes) value  sent u64 | most bytes u64 | acknowledged u64 | seen ms u64 | until ms u64
                                        | subscriber u64 | port u16 | state u8 | address

In live.mdb \\0 "stream" has the history that this store goes on with. After a power cut, which may lose what replicas
have been sent already, and in a store that was restored or copied, there is none: so a new one begins, and no replica
resumes after something that was never there.

The stream exists while a replica is attached to any server of the store, and for a while after that (`until`), so that
one that was cut off goes on where it was. Offsets count bytes from the history's beginning, as Redis's do. A replica's
record is its server's report of its progress: what it was not sent yet is kept, up to its most bytes.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.journal.recording import delete_here

_HEAD = Struct(">QQQQQqQ")
_OFFSET = Struct(">Q")
_REPLICA = Struct(">QQQQQQHB")
_ROW_BYTES = 60_000
"""Of a value: what is more is several."""
_PAGE_BYTES = 4096
_ROW_ROOM = 24
"""Of its key, and where it stands."""
FOREVER = 1 << 62
UNSAID = -1


class Stream(NamedTuple):
    """The head of the stream."""

    begins: int
    """The first byte that is still stored."""
    ends: int
    """How many bytes there have been in all."""
    kept_bytes: int
    until_ms: int
    written_ms: int
    """When the last bytes came."""
    database: int
    """The database that the stream has selected at its end; `UNSAID`: the next request must select its own."""
    room: int
    """About how many bytes its rows take of the store."""
    history: bytes


class ReplicaRecord(NamedTuple):
    """A replica, as its server has reported it."""

    sent: int
    most_bytes: int
    acknowledged: int
    seen_ms: int
    """When it last acknowledged something; 0: not yet."""
    until_ms: int
    """When its server is taken for dead."""
    subscriber: int
    """Its server."""
    port: int
    state: int
    address: bytes


def get(txn: Txn) -> Stream | None:
    """Return the head of the stream; None if nobody replicates."""
    value = txn.get(databases.STREAM)
    return None if value is None else Stream._make((*_HEAD.unpack_from(value), value[_HEAD.size :]))


def is_there(txn: Txn) -> bool:
    """Whether anybody replicates."""
    return txn.get(databases.STREAM) is not None


def begin(txn: Txn, kept_bytes: int, until_ms: int) -> Stream:
    """Return the stream; begin one, with a new history, if there is none."""
    known = get(txn)
    if known is None:
        known = Stream(0, 0, kept_bytes, until_ms, 0, UNSAID, 0, secrets.token_hex(20).encode())
    stream = known._replace(kept_bytes=kept_bytes, until_ms=until_ms)
    _put(txn, stream)
    return stream


def end(txn: Txn) -> None:
    """End the stream: nobody replicates any more. Changes from here on are in no history."""
    databases.delete_all(txn, databases.STREAM_ROWS)
    databases.delete_all(txn, databases.REPLICAS)
    txn.delete(databases.STREAM)


def _put(txn: Txn, stream: Stream) -> None:
    txn.put(databases.STREAM, _HEAD.pack(*stream[:7]) + stream.history)


def current_history(live: Txn) -> bytes | None:
    """Return the history that this store goes on with, from live.mdb."""
    return live.get(databases.STREAM)


def go_on_with(live: Txn, history: bytes) -> None:
    """Set the history that this store goes on with."""
    live.put(databases.STREAM, history)


def select_anew(txn: Txn, stream: Stream) -> None:
    """Select a database again, for a new replica that does not know what was selected before."""
    _put(txn, stream._replace(database=UNSAID))


def append(txn: Txn, stream: Stream, data: bytes, now_ms: int) -> Stream:
    """Append to the stream, and forget the oldest bytes that nobody needs any more. `stream` names the database that
    this leaves selected."""
    at, room = stream.ends, stream.room
    for start in range(0, len(data), _ROW_BYTES):
        row = data[start : start + _ROW_BYTES]
        txn.put(databases.STREAM_ROWS + _OFFSET.pack(at + start), row)
        room += _room_of(row)
    stream = stream._replace(ends=at + len(data), written_ms=now_ms, room=room)
    if stream.ends - stream.begins > stream.kept_bytes + _ROW_BYTES:
        stream = _trimmed(txn, stream, now_ms)
    _put(txn, stream)
    return stream


def _room_of(row: bytes) -> int:
    """Return the room that a row takes: a part of a page, or pages of its own."""
    return _ROW_ROOM + (len(row) if len(row) <= _PAGE_BYTES // 2 else -(-len(row) // _PAGE_BYTES) * _PAGE_BYTES)


def room(txn: Txn) -> int:
    """Return about how much of the store the stream takes: it belongs to no key, and removing keys does not free it."""
    stream = get(txn)
    return 0 if stream is None else stream.room


def _trimmed(txn: Txn, stream: Stream, now_ms: int) -> Stream:
    needed = stream.ends - stream.kept_bytes
    for _, replica in replicas(txn):
        if replica.until_ms > now_ms:
            needed = min(needed, max(replica.sent, stream.ends - replica.most_bytes))
    begins, room = stream.begins, stream.room
    cursor = txn.cursor()
    found = cursor.set_range(databases.STREAM_ROWS)
    while found and (key := cursor.key()).startswith(databases.STREAM_ROWS):
        row = cursor.value()
        ends = _OFFSET.unpack_from(key, 1)[0] + len(row)
        if ends > needed:
            break
        begins = ends
        room -= _room_of(row)
        found = delete_here(txn, cursor)
    return stream._replace(begins=begins, room=room)


def read(txn: Txn, history: bytes, offset: int, limit_bytes: int) -> bytes | None:
    """Return about this many bytes from this offset on, fewer if there are no more; None if they are gone."""
    stream = get(txn)
    if stream is None or stream.history != history or not stream.begins <= offset <= stream.ends:
        return None
    found = databases.last_up_to(txn, databases.STREAM_ROWS, databases.STREAM_ROWS + _OFFSET.pack(offset))
    if found is None:
        return b""
    parts: list[bytes] = []
    size = 0
    for key, value in databases.items_from(txn, databases.STREAM_ROWS, found[0]):
        begins = _OFFSET.unpack_from(key, 1)[0]
        parts.append(value[offset - begins :] if begins < offset else value)
        size += len(parts[-1])
        if size >= limit_bytes:
            break
    return b"".join(parts)


# -- replicas

def replicas(txn: Txn) -> Iterator[tuple[bytes, ReplicaRecord]]:
    """Yield (name, record) of all replicas, including those of dead servers. Change nothing meanwhile."""
    for key, value in databases.items(txn, databases.REPLICAS):
        yield key[1:], ReplicaRecord._make((*_REPLICA.unpack_from(value), value[_REPLICA.size :]))


def put_replica(txn: Txn, name: bytes, record: ReplicaRecord) -> None:
    txn.put(databases.REPLICAS + name, _REPLICA.pack(*record[:8]) + record.address)


def forget_replica(txn: Txn, name: bytes) -> None:
    txn.delete(databases.REPLICAS + name)


def forget_dead(txn: Txn, now_ms: int) -> None:
    """Forget the replicas that their servers have not reported for too long."""
    for name in [name for name, replica in replicas(txn) if replica.until_ms <= now_ms]:
        forget_replica(txn, name)
