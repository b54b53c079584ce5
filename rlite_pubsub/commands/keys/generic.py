"""Keys of any type: DEL, UNLINK, EXISTS, TOUCH, TYPE."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.lookup import find, keyspace_of, type_name
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.replies import Reply, Status


@command(
    "del",
    arity=-2,
    flags="write",
    group="generic",
    since="1.0.0",
    categories="keyspace",
    summary="Delete a key",
    complexity="O(N) where N is the number of keys that will be removed. When a key to remove holds a value other "
    "than a string, the individual complexity for this key is O(M) where M is the number of elements in the list, "
    "set, sorted set or hash. Removing a single key that holds a string value is O(1).",
    arguments=(Arg("key", "key", multiple=True, key_spec=0),),
    key_specs=(KeySpec(("RM", "DELETE"), ("index", 1), ("range", -1, 1, 0)),),
    tips=("request_policy:multi_shard", "response_policy:agg_sum"),
)
def del_(session: CommandSession, args: list[bytes]) -> Reply:
    keyspace, notifications, database = keyspace_of(session), session.engine.notifications, session.db
    deleted = 0
    for key in args[1:]:
        if keyspace.delete(database, key):
            notifications.tell("g", b"del", database, key)
            deleted += 1
    return deleted


@command(
    "unlink",
    arity=-2,
    flags="write fast",
    group="generic",
    since="4.0.0",
    categories="keyspace",
    summary="Delete a key asynchronously in another thread. Otherwise it is just as DEL, but non blocking.",
    complexity="O(1) for each key removed regardless of its size. Then the command does O(N) work in a different "
    "thread in order to reclaim memory, where N is the number of allocations the deleted objects where composed of.",
    arguments=(Arg("key", "key", multiple=True, key_spec=0),),
    key_specs=(KeySpec(("RM", "DELETE"), ("index", 1), ("range", -1, 1, 0)),),
    tips=("request_policy:multi_shard", "response_policy:agg_sum"),
)
def unlink(session: CommandSession, args: list[bytes]) -> Reply:
    return del_(session, args)


@command(
    "exists",
    arity=-2,
    flags="readonly fast",
    group="generic",
    since="1.0.0",
    categories="keyspace",
    summary="Determine if a key exists",
    complexity="O(N) where N is the number of keys to check.",
    arguments=(Arg("key", "key", multiple=True, key_spec=0),),
    key_specs=(KeySpec(("RO",), ("index", 1), ("range", -1, 1, 0)),),
    tips=("request_policy:multi_shard", "response_policy:agg_sum"),
    history=(("3.0.3", "Accepts multiple `key` arguments."),),
)
def exists(session: CommandSession, args: list[bytes]) -> Reply:
    return sum([find(session, key, touch=False) is not None for key in args[1:]])


@command(
    "touch",
    arity=-2,
    flags="readonly fast",
    group="generic",
    since="3.2.1",
    categories="keyspace",
    summary="Alters the last access time of a key(s). Returns the number of existing keys specified.",
    complexity="O(N) where N is the number of keys that will be touched.",
    arguments=(Arg("key", "key", multiple=True, key_spec=0),),
    key_specs=(KeySpec(("RO",), ("index", 1), ("range", -1, 1, 0)),),
    tips=("request_policy:multi_shard", "response_policy:agg_sum"),
)
def touch(session: CommandSession, args: list[bytes]) -> Reply:
    no_touch, session.no_touch = session.no_touch, False
    try:
        return sum([find(session, key) is not None for key in args[1:]])
    finally:
        session.no_touch = no_touch


@command(
    "type",
    arity=2,
    flags="readonly fast",
    group="generic",
    since="1.0.0",
    categories="keyspace",
    summary="Determine the type stored at key",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO",), ("index", 1), ("range", 0, 1, 0)),),
)
def type_(session: CommandSession, args: list[bytes]) -> Reply:
    record = find(session, args[1], touch=False)
    return Status(b"none" if record is None else type_name(record.type))
