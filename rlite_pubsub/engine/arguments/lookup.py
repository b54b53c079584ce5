"""Finding a command's key: of the right type or of any, for reading or for changing.

Reading counts as a hit or a miss and announces the miss; a lookup that only changes does not, as in Redis. Look up a
key to change it with one of the `…_for_change`: they begin the turn's write transaction, and find the latest state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlite_pubsub.keyspace.records import Record, Text
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import WRONG_TYPE, CommandError
from rlite_pubsub.storage.keys.key_records import HASH, LIST, SET, SORTED_SET, STRING, TOPIC

if TYPE_CHECKING:
    from rlite_pubsub.durable.attaching import Durables
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.keyspace.keyspace import Keyspace


def keyspace_of(session: CommandSession) -> Keyspace:
    """Return the keyspace of a session."""
    return session.engine.keyspace


def durables_of(session: CommandSession) -> Durables:
    """Return the durable subscribers of the engine. Raises CommandError if it has no store for them."""
    durables = session.engine.durables
    if durables is None:
        raise CommandError(b"ERR this server has no store for durable subscribers")
    return durables


def find(session: CommandSession, key: bytes, *, touch: bool = True, notify: bool = True) -> Record | None:
    """Return the key, for reading. Without `touch` the read does not count as a use; without `notify` a miss publishes
    no event."""
    keyspace = session.engine.keyspace
    return _counted(session, key, keyspace.find(session.db, key), touch, notify)


def find_text(session: CommandSession, key: bytes) -> Text | None:
    """Return a string, for reading. Raises CommandError if the key is something else."""
    engine = session.engine
    keyspace = engine.keyspace
    record = keyspace.find(session.db, key)
    if record is None:
        engine.stats.keyspace_misses += 1
        if engine.notifications.classes:
            engine.notifications.tell("m", b"keymiss", session.db, key)
        return None
    engine.stats.keyspace_hits += 1
    if not session.no_touch:
        record.used_at = keyspace.times.coarse_now
    if isinstance(record, Text):
        return record
    raise CommandError(WRONG_TYPE)


def find_topic(session: CommandSession, key: bytes) -> Topic | None:
    """Return a topic, for reading. Raises CommandError if the key is something else."""
    record = find(session, key)
    if record is None or record.__class__ is Topic:
        return record
    raise CommandError(WRONG_TYPE)


def for_change(session: CommandSession, key: bytes) -> Record | None:
    """Return the key, for changing."""
    keyspace = session.engine.keyspace
    record = keyspace.for_change(session.db, key)
    if record is not None and not session.no_touch:
        record.used_at = keyspace.times.coarse_now
    return record


def text_for_change(session: CommandSession, key: bytes) -> Text | None:
    """Return a string, for changing. Raises CommandError if the key is something else."""
    record = for_change(session, key)
    if record is None or record.__class__ is Text:
        return record
    raise CommandError(WRONG_TYPE)


def topic_for_change(session: CommandSession, key: bytes) -> Topic | None:
    """Return a topic, for changing. Raises CommandError if the key is something else."""
    record = for_change(session, key)
    if record is None or record.__class__ is Topic:
        return record
    raise CommandError(WRONG_TYPE)


def text_read_for_change(session: CommandSession, key: bytes) -> Text | None:
    """Return a string, for reading first and changing then. Raises CommandError if the key is something else."""
    record = read_for_change(session, key)
    if record is None or record.__class__ is Text:
        return record
    raise CommandError(WRONG_TYPE)


def read_for_change(session: CommandSession, key: bytes) -> Record | None:
    """Return the key, for reading first and then changing it, or what depends on it."""
    return _counted(session, key, for_change(session, key), False, True)


def type_name(type_: int) -> bytes:
    """Return the type's name in TYPE."""
    return _TYPE_NAMES[type_]


_TYPE_NAMES: Final = {
    STRING: b"string",
    TOPIC: b"stream",
    LIST: b"list",
    SET: b"set",
    HASH: b"hash",
    SORTED_SET: b"zset",
}


def _counted(session: CommandSession, key: bytes, record: Record | None, touch: bool, notify: bool) -> Record | None:
    engine = session.engine
    if record is None:
        engine.stats.keyspace_misses += 1
        if notify and engine.notifications.classes:
            engine.notifications.tell("m", b"keymiss", session.db, key)
    else:
        engine.stats.keyspace_hits += 1
        if touch and not session.no_touch:
            record.used_at = engine.keyspace.times.coarse_now
    return record
