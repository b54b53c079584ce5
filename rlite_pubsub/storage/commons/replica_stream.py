"""What replicas are told, in the bytes of Redis's replication stream: written by whoever commits, in the same commit.

    key  \\0 "stream"             value  begins u64 | ends u64 | kept bytes u64 | until ms u64 | written ms u64
                                        | database i64 | room u64 | history (40 letters)
    key  '0' + offset u64        value  bytes of the stream, from this offset on
    key  '1' + replica (8 bytes) value  sent u64 | most bytes u64 | acknowledged u64 | seen ms u64 | until ms u64
                                        | subscriber u64 | port u16 | state u8 | address

In live.mdb \\0 "stream" has the history that this store goes on with. After a power cut, which may take what replicas
have been sent already, and in a store that was restored or copied, there is none: so a new one begins, and nobody is
resumed behind what was never there.

The stream exists while a replica is attached to any server of the store, and for a while after that (`until`), so that
one which was cut off goes on where it was. Offsets count bytes from the history's beginning, as Redis's do. A replica's
record is its server's word on how far it is: what it was not sent yet is kept, up to its most bytes.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn

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
    """Its head."""

    begins: int
    """The first byte that is still there."""
    ends: int
    """How many bytes there have been, ever."""
    kept_bytes: int
    until_ms: int
    written_ms: int
    """When the last bytes came."""
    database: int
    """That which the stream has selected at its end; `UNSAID`: the next request is to select its own."""
    room: int
    """Bytes that its rows take of the store, about."""
    history: bytes


class ReplicaRecord(NamedTuple):
    """A replica, as its server has reported it."""

    sent: int
    most_bytes: int
    acknowledged: int
    seen_ms: int
    """When it acknowledged something last; 0: not yet."""
    until_ms: int
    """From then on its server is taken for dead."""
    subscriber: int
    """Its server."""
    port: int
    state: int
    address: bytes


def get(txn: Txn) -> Stream | None:
    """None: nobody replicates."""
    value = txn.get(databases.STREAM)
    return None if value is None else Stream._make((*_HEAD.unpack_from(value), value[_HEAD.size :]))


def begin(txn: Txn, kept_bytes: int, until_ms: int) -> Stream:
    """Have one: the one there is, or a new history."""
    known = get(txn)
    if known is None:
        known = Stream(0, 0, kept_bytes, until_ms, 0, UNSAID, 0, secrets.token_hex(20).encode())
    stream = known._replace(kept_bytes=kept_bytes, until_ms=until_ms)
    _put(txn, stream)
    return stream


def end(txn: Txn) -> None:
    """Nobody replicates any more. What is changed from here on is in no history."""
    databases.delete_all(txn, databases.STREAM_ROWS)
    databases.delete_all(txn, databases.REPLICAS)
    txn.delete(databases.STREAM)


def _put(txn: Txn, stream: Stream) -> None:
    txn.put(databases.STREAM, _HEAD.pack(*stream[:7]) + stream.history)


def current_history(live: Txn) -> bytes | None:
    """That which this store goes on with, as live.mdb has it."""
    return live.get(databases.STREAM)


def go_on_with(live: Txn, history: bytes) -> None:
    """This is it from now on."""
    live.put(databases.STREAM, history)


def select_anew(txn: Txn, stream: Stream) -> None:
    """Somebody joins who does not know what was selected before."""
    _put(txn, stream._replace(database=UNSAID))


def append(txn: Txn, stream: Stream, data: bytes, now_ms: int) -> Stream:
    """Put this behind all that replicas were told, and forget the oldest of what nobody needs any more. `stream` names
    the database that this leaves selected."""
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
    """What a row takes: a part of a page, or pages of its own."""
    return _ROW_ROOM + (len(row) if len(row) <= _PAGE_BYTES // 2 else -(-len(row) // _PAGE_BYTES) * _PAGE_BYTES)


def room(txn: Txn) -> int:
    """What all of it takes of the store, about: no key has it, and nobody gains it by removing keys."""
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
        found = cursor.delete()
    return stream._replace(begins=begins, room=room)


def read(txn: Txn, history: bytes, offset: int, limit_bytes: int) -> bytes | None:
    """About so many bytes from this offset on, fewer where there are no more. None: they are not there any more."""
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
    """(name, record) of all, those of dead servers included. Change nothing meanwhile."""
    for key, value in databases.items(txn, databases.REPLICAS):
        yield key[1:], ReplicaRecord._make((*_REPLICA.unpack_from(value), value[_REPLICA.size :]))


def put_replica(txn: Txn, name: bytes, record: ReplicaRecord) -> None:
    txn.put(databases.REPLICAS + name, _REPLICA.pack(*record[:8]) + record.address)


def forget_replica(txn: Txn, name: bytes) -> None:
    txn.delete(databases.REPLICAS + name)


def forget_dead(txn: Txn, now_ms: int) -> None:
    """Those whose servers have not reported them for too long."""
    for name in [name for name, replica in replicas(txn) if replica.until_ms <= now_ms]:
        forget_replica(txn, name)
