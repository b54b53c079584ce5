"""Staged rows of a batch become entries: all of them, in one commit that also records the batch, or none.

All that may be refused is refused before anything is appended. It is appended a little at a time, so that there is
never much in memory, and so that a thread that does this releases Python's lock now and then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.keyspace.topic.append import encode_run, next_id
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import WRONG_TYPE, CommandError
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.memory import EPHEMERAL
from rlite_pubsub.storage.topics import entry_ids, stages
from rlite_pubsub.storage.topics.entry_ids import Id
from rlite_pubsub.storage.topics.stages import Marker, StagedRows, Writer

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.keyspace.topic.nodes import NodeLimits
    from rlite_pubsub.storage.environment import Txn

NOT_ABOVE = b"ERR The ID specified in XADD is equal or smaller than the target stream top item"
_EXHAUSTED = b"ERR The stream has exhausted the last possible ID, unable to add more items"


class Batch(NamedTuple):
    """A batch to be appended, and the writers that staged it."""

    application: bytes
    number: int
    forget_ms: int
    """So long it is known that it was committed; 0: forever."""
    database: int
    writers: list[tuple[Writer, int]]
    """In order; each has staged this many rows."""


class _Step(NamedTuple):
    """A piece, and the id of its first row."""

    writer: Writer
    number: int
    piece: StagedRows
    first: Id


def topics(keyspace: Keyspace, batch: Batch) -> set[bytes]:
    """Return the topics that it is for. Raises StoreError."""
    txn = keyspace.settle()
    return {piece.topic for writer, _ in batch.writers for _, piece in stages.pieces(txn, writer)}


def is_ephemeral(keyspace: Keyspace, batch: Batch) -> bool:
    """Return whether any of it is for a topic in this process's memory. Raises StoreError."""
    return any(topic.endswith(EPHEMERAL) for topic in topics(keyspace, batch))


def append(keyspace: Keyspace, batch: Batch, limits: NodeLimits) -> int:
    """1, or 0 if this batch, or a later one, of the application was committed before. Raises CommandError and
    StoreError."""
    txn = keyspace.writing()
    reached = stages.marker(txn, batch.application)
    if reached is not None and reached.batch >= batch.number:
        return 0
    now_ms = keyspace.clock_ms()
    told = set()
    for step in _planned(keyspace, txn, batch, now_ms):
        topic = _topic(keyspace, batch.database, step.piece.topic)
        if topic is None:
            topic = keyspace.create_topic(batch.database, step.piece.topic)
        if limits != topic.node_limits:
            topic.limit_nodes(limits)
        _append(txn, topic, step)
        if topic.name not in told:
            told.add(topic.name)
            keyspace.news.listener.appended(batch.database, topic.name)
    forgotten_ms = now_ms + batch.forget_ms if batch.forget_ms else 0
    stages.mark(txn, batch.application, Marker(batch.number, now_ms, forgotten_ms))
    failpoint("stage-appended")
    return 1


def _topic(keyspace: Keyspace, database: int, name: bytes) -> Topic | None:
    record = keyspace.for_change(database, name)
    if record is None:
        return None
    if not isinstance(record, Topic):
        raise CommandError(WRONG_TYPE)
    record.used_at = keyspace.times.coarse_now
    return record


def _planned(keyspace: Keyspace, txn: Txn, batch: Batch, now_ms: int) -> list[_Step]:
    """Return what is to be appended, and under which ids. Raises CommandError."""
    steps: list[_Step] = []
    last: dict[bytes, Id] = {}
    for writer, rows in batch.writers:
        found = list(stages.pieces(txn, writer))
        there = sum(piece.rows for _, piece in found)
        if there != rows:
            raise CommandError(
                b"NOSTAGE partition %d of batch %d, attempt %d, has %d rows here, not %d"
                % (writer.partition, writer.batch, writer.attempt, there, rows)
            )
        for number, piece in found:
            if piece.database != batch.database:
                raise CommandError(b"ERR it was staged in database %d" % piece.database)
            if piece.topic not in last:
                topic = _topic(keyspace, batch.database, piece.topic)
                last[piece.topic] = entry_ids.MIN if topic is None else topic.last_id
            first, last[piece.topic] = _placed(piece, last[piece.topic], now_ms)
            steps.append(_Step(writer, number, piece, first))
    return steps


def _placed(piece: StagedRows, last: Id, now_ms: int) -> tuple[Id, Id]:
    """Return the ids of a piece's first and last row behind this one."""
    if piece.has_ids:
        first = entry_ids.unpack(piece.first)
        if first <= last:
            raise CommandError(NOT_ABOVE)
        return first, entry_ids.unpack(piece.last)
    start = next_id(last, now_ms, piece.rows)
    if start is None:
        raise CommandError(_EXHAUSTED)
    return start, (start[0], start[1] + piece.rows - 1)


def _append(txn: Txn, topic: Topic, step: _Step) -> None:
    ms, seq = step.first
    for ids, bodies in stages.rows(txn, step.writer, step.number, has_ids=step.piece.has_ids):
        if ids:
            for packed, body in zip(ids, bodies, strict=True):
                entry_id = entry_ids.unpack(packed)
                topic.append(entry_id, _entry(entry_ids.text(entry_id), body))
        else:
            topic.append_all((ms, seq), encode_run((ms, seq), bodies))
            seq += len(bodies)
        topic.settle()


def _entry(text: bytes, body: bytes) -> bytes:
    return b"*2\r\n$%d\r\n%b\r\n%b" % (len(text), text, body)
