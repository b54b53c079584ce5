"""Two commands that wait, one that only reads and one that takes, and those that make their keys ready.

    T.ADD key text        T.DEL key        T.READ ms start key …        T.TAKE ms key …
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import TABLE, Command
from rlite_pubsub.engine.waits.timeouts import timeout_ms
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import NULL_ARRAY, Encoded, Map, Reply
from rlite_pubsub.storage.topics import entry_ids

attempts: list[bytes] = []
"""The names of sessions whose attempts were made."""


def keyspace_of(session: CommandSession) -> Keyspace:
    assert session.engine.keyspace is not None
    return session.engine.keyspace


def add(session: CommandSession, args: list[bytes]) -> Reply:
    keyspace = keyspace_of(session)
    topic = keyspace.for_change(session.db, args[1]) or keyspace.create_topic(session.db, args[1])
    assert isinstance(topic, Topic)
    entry_id = topic.last_id[0] + 1, 0
    topic.append(entry_id, encode_entry(entry_id, [b"text", args[2]]))
    return entry_id[0]


def delete(session: CommandSession, args: list[bytes]) -> Reply:
    return int(keyspace_of(session).delete(session.db, args[1]))


def read(session: CommandSession, args: list[bytes]) -> Reply:
    keyspace, database = keyspace_of(session), session.db
    milliseconds, start, keys = timeout_ms(args[1]), int(args[2]), args[3:]

    def attempt(key: bytes) -> Reply:
        attempts.append(session.name)
        topic = keyspace.find(database, key)
        if isinstance(topic, Topic) and topic.last_id > (start, 0):
            parts = [part.wire for part in topic.between(entry_ids.after((start, 0)))]
            count = sum(part.count for part in topic.between(entry_ids.after((start, 0))))
            return Map([(key, Encoded(b"*%d\r\n" % count + b"".join(parts)))])
        return None

    for key in keys:
        reply = attempt(key)
        if reply is not None:
            return reply
    attempts.clear()
    queues = [("read", start)] * len(keys)
    return session.engine.waiting.block(session, keys, milliseconds, attempt, queues=queues, shared=True)


def take(session: CommandSession, args: list[bytes]) -> Reply:
    keyspace, database = keyspace_of(session), session.db
    milliseconds, keys = timeout_ms(args[1]), args[2:]

    def attempt(key: bytes) -> Reply:
        attempts.append(session.name)
        topic = keyspace.for_change(database, key)
        if not isinstance(topic, Topic):
            raise CommandError(b"UNBLOCKED it is gone")
        if not topic.length:
            return None
        wire = next(topic.between(limit=1)).wire
        topic.trim(1)
        return [key, Encoded(wire)]

    for key in keys:
        if isinstance(keyspace.find(database, key), Topic):
            reply = attempt(key)
            if reply is not None:
                return reply
    attempts.clear()
    return session.engine.waiting.block(
        session, keys, milliseconds, attempt, queues=["take"] * len(keys), on_timeout=NULL_ARRAY
    )


_HANDLERS = {b"t.add": (add, 3), b"t.del": (delete, 2), b"t.read": (read, -4), b"t.take": (take, -3)}


@contextmanager
def declared() -> Iterator[None]:
    """Have them in the command table for a while."""
    before = dict(TABLE.commands), dict(TABLE.spellings)
    for name, (handler, arity) in _HANDLERS.items():
        TABLE.add(Command(name, handler, arity, frozenset({"write"}), "generic", "0.0.0", ""))
    try:
        yield
    finally:
        TABLE.commands, TABLE.spellings = before
        for name in _HANDLERS:
            TABLE._subcommands.pop(name, None)
