"""Keys under another name, or in another database: RENAME, RENAMENX, MOVE, COPY."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import INT_MAX, INT_MIN, integer
from rlite_pubsub.engine.arguments.lookup import for_change, keyspace_of, read_for_change
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.shards.restrictions import check_unsharded
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.records import Record
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import DB_OUT_OF_RANGE, NO_SUCH_KEY, SAME_OBJECT, SYNTAX, CommandError
from rlite_pubsub.protocol.replies import OK, Reply
from rlite_pubsub.storage.memory import EPHEMERAL


@command(
    "rename",
    arity=3,
    flags="write",
    group="generic",
    since="1.0.0",
    categories="keyspace",
    summary="Rename a key",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0), Arg("newkey", "key", key_spec=1)),
    key_specs=(
        KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("OW", "UPDATE"), ("index", 2), ("range", 0, 1, 0)),
    ),
    history=(),
)
def rename(session: CommandSession, args: list[bytes]) -> Reply:
    _rename(session, args, replace=True)
    return OK


@command(
    "renamenx",
    arity=3,
    flags="write fast",
    group="generic",
    since="1.0.0",
    categories="keyspace",
    summary="Rename a key, only if the new key does not exist",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0), Arg("newkey", "key", key_spec=1)),
    key_specs=(
        KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("OW", "INSERT"), ("index", 2), ("range", 0, 1, 0)),
    ),
    history=(("3.2.0", "The command no longer returns an error when source and destination names are the same."),),
)
def renamenx(session: CommandSession, args: list[bytes]) -> Reply:
    return int(_rename(session, args, replace=False))


def _rename(session: CommandSession, args: list[bytes], *, replace: bool) -> bool:
    _, old, new = args
    keyspace, notifications, database = keyspace_of(session), session.engine.notifications, session.db
    record = for_change(session, old)
    if record is None:
        raise CommandError(NO_SUCH_KEY)
    if old == new or (not replace and for_change(session, new) is not None):
        return False
    _check_lasts(record, new, keyspace)
    keyspace.move(record, database, new)
    notifications.tell("g", b"rename_from", database, old)
    notifications.tell("g", b"rename_to", database, new)
    return True


@command(
    "move",
    arity=3,
    flags="write fast",
    group="generic",
    since="1.0.0",
    categories="keyspace",
    summary="Move a key to another database",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0), Arg("db", "integer")),
    key_specs=(KeySpec(("RW", "ACCESS", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def move(session: CommandSession, args: list[bytes]) -> Reply:
    check_unsharded(session, b"MOVE is")
    keyspace, notifications = keyspace_of(session), session.engine.notifications
    key, source, target = args[1], session.db, _database(session, args[2])
    if source == target:
        raise CommandError(SAME_OBJECT)
    record = for_change(session, key)
    if record is None or keyspace.for_change(target, key) is not None:
        return 0
    keyspace.move(record, target, key)
    notifications.tell("g", b"move_from", source, key)
    notifications.tell("g", b"move_to", target, key)
    return 1


@command(
    "copy",
    arity=-3,
    flags="write denyoom",
    group="generic",
    since="6.2.0",
    categories="keyspace",
    summary="Copy a key",
    complexity="O(N) worst case for collections, where N is the number of nested items. O(1) for string values.",
    arguments=(
        Arg("source", "key", key_spec=0),
        Arg("destination", "key", key_spec=1),
        Arg("destination-db", "integer", token="DB", optional=True),
        Arg("replace", "pure-token", token="REPLACE", optional=True),
    ),
    key_specs=(
        KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("OW", "UPDATE"), ("index", 2), ("range", 0, 1, 0)),
    ),
)
def copy(session: CommandSession, args: list[bytes]) -> Reply:
    keyspace, old, new = keyspace_of(session), args[1], args[2]
    target, replace = session.db, False
    rest = iter(args[3:])
    for word in rest:
        option = word.lower()
        value = next(rest, None) if option == b"db" else None
        if option == b"replace":
            replace = True
        elif value is not None:
            target = _database(session, value)
        else:
            raise CommandError(SYNTAX)
    if target:
        check_unsharded(session, b"Copying to another database is")
    if target == session.db and old == new:
        raise CommandError(SAME_OBJECT)
    record = read_for_change(session, old)
    if record is None:
        return 0
    if not replace and keyspace.for_change(target, new) is not None:
        return 0
    _check_lasts(record, new, keyspace)
    keyspace.copy(record, target, new)
    session.engine.notifications.tell("g", b"copy_to", target, new)
    return 1


def _check_lasts(record: Record, name: bytes, keyspace: Keyspace) -> None:
    """A topic is ephemeral from its beginning to its end, or never. Raises CommandError."""
    if isinstance(record, Topic):
        is_ephemeral = record.keyspace is not keyspace.stored
        if is_ephemeral and not name.endswith(EPHEMERAL):
            raise CommandError(b"ERR an ephemeral topic can't have a name that does not end in " + EPHEMERAL)
        if not is_ephemeral and name.endswith(EPHEMERAL):
            raise CommandError(b"ERR only a topic that is ephemeral can have a name that ends in " + EPHEMERAL)


def _database(session: CommandSession, text: bytes) -> int:
    number = integer(text)
    if not INT_MIN <= number <= INT_MAX:
        raise CommandError(b"ERR value is out of range, value must between %d and %d" % (INT_MIN, INT_MAX))
    if not 0 <= number < session.engine.settings["databases"]:
        raise CommandError(DB_OUT_OF_RANGE)
    return number
