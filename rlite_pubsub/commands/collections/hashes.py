"""Hashes: fields that are set, read and removed."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.hash_lookup import (
    drop_if_empty,
    find_hash,
    hash_for_change,
    hash_or_new,
    tell_hash,
)
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.errors import wrong_arity
from rlite_pubsub.protocol.replies import OK, Map, Reply


@command(
    "hset",
    arity=-4,
    flags="write denyoom fast",
    group="hash",
    since="2.0.0",
    categories="hash",
    summary="Set the string value of a hash field",
    complexity="O(1) for each field/value pair added, so O(N) to add N field/value pairs when the command is called "
    "with multiple field/value pairs.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "field_value",
            "block",
            multiple=True,
            arguments=(
                Arg("field"),
                Arg("value"),
            ),
        ),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("4.0.0", "Accepts multiple `field` and `value` arguments."),),
)
def hset(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) % 2:
        raise wrong_arity(args[0].lower())
    found = hash_or_new(session, args[1])
    new = found.put(args[2:])
    notifications = session.engine.notifications
    if notifications.classes:
        notifications.hold()
        notifications.tell("h", b"hset", session.db, args[1])
    return new


@command(
    "hsetnx",
    arity=4,
    flags="write denyoom fast",
    group="hash",
    since="2.0.0",
    categories="hash",
    summary="Set the value of a hash field, only if the field does not exist",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("field"),
        Arg("value"),
    ),
    key_specs=(KeySpec(("RW", "INSERT"), ("index", 1), ("range", 0, 1, 0)),),
)
def hsetnx(session: CommandSession, args: list[bytes]) -> Reply:
    found = hash_or_new(session, args[1])
    if found.get(args[2]) is not None:
        return 0
    found.put(args[2:])
    session.engine.notifications.hold()
    tell_hash(session, b"hset", args[1])
    return 1


@command(
    "hmset",
    arity=-4,
    flags="write denyoom fast",
    group="hash",
    since="2.0.0",
    categories="hash",
    summary="Set multiple hash fields to multiple values",
    complexity="O(N) where N is the number of fields being set.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "field_value",
            "block",
            multiple=True,
            arguments=(
                Arg("field"),
                Arg("value"),
            ),
        ),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
    doc_flags=("deprecated",),
    deprecated_since="4.0.0",
    replaced_by="`HSET` with multiple field-value pairs",
)
def hmset(session: CommandSession, args: list[bytes]) -> Reply:
    hset(session, args)
    return OK


@command(
    "hget",
    arity=3,
    flags="readonly fast",
    group="hash",
    since="2.0.0",
    categories="hash",
    summary="Get the value of a hash field",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("field"),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def hget(session: CommandSession, args: list[bytes]) -> Reply:
    found = find_hash(session, args[1])
    return None if found is None else found.get(args[2])


@command(
    "hmget",
    arity=-3,
    flags="readonly fast",
    group="hash",
    since="2.0.0",
    categories="hash",
    summary="Get the values of all the given hash fields",
    complexity="O(N) where N is the number of fields being requested.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("field", multiple=True),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def hmget(session: CommandSession, args: list[bytes]) -> Reply:
    found = find_hash(session, args[1])
    return [None if found is None else found.get(name) for name in args[2:]]


@command(
    "hgetall",
    arity=2,
    flags="readonly",
    group="hash",
    since="2.0.0",
    categories="hash",
    summary="Get all the fields and values in a hash",
    complexity="O(N) where N is the size of the hash.",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output_order",),
)
def hgetall(session: CommandSession, args: list[bytes]) -> Reply:
    found = find_hash(session, args[1])
    return Map() if found is None else Map(found.pairs())


@command(
    "hkeys",
    arity=2,
    flags="readonly",
    group="hash",
    since="2.0.0",
    categories="hash",
    summary="Get all the fields in a hash",
    complexity="O(N) where N is the size of the hash.",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output_order",),
)
def hkeys(session: CommandSession, args: list[bytes]) -> Reply:
    found = find_hash(session, args[1])
    return [] if found is None else [name for name, _ in found.pairs()]


@command(
    "hvals",
    arity=2,
    flags="readonly",
    group="hash",
    since="2.0.0",
    categories="hash",
    summary="Get all the values in a hash",
    complexity="O(N) where N is the size of the hash.",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output_order",),
)
def hvals(session: CommandSession, args: list[bytes]) -> Reply:
    found = find_hash(session, args[1])
    return [] if found is None else [value for _, value in found.pairs()]


@command(
    "hdel",
    arity=-3,
    flags="write fast",
    group="hash",
    since="2.0.0",
    categories="hash",
    summary="Delete one or more hash fields",
    complexity="O(N) where N is the number of fields to be removed.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("field", multiple=True),
    ),
    key_specs=(KeySpec(("RW", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("2.4.0", "Accepts multiple `field` arguments."),),
)
def hdel(session: CommandSession, args: list[bytes]) -> Reply:
    found = hash_for_change(session, args[1])
    if found is None:
        return 0
    removed = found.remove(args[2:])
    if removed:
        tell_hash(session, b"hdel", args[1])
        drop_if_empty(session, found)
    return removed


@command(
    "hexists",
    arity=3,
    flags="readonly fast",
    group="hash",
    since="2.0.0",
    categories="hash",
    summary="Determine if a hash field exists",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("field"),
    ),
    key_specs=(KeySpec(("RO",), ("index", 1), ("range", 0, 1, 0)),),
)
def hexists(session: CommandSession, args: list[bytes]) -> Reply:
    found = find_hash(session, args[1])
    return int(found is not None and found.get(args[2]) is not None)


@command(
    "hlen",
    arity=2,
    flags="readonly fast",
    group="hash",
    since="2.0.0",
    categories="hash",
    summary="Get the number of fields in a hash",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO",), ("index", 1), ("range", 0, 1, 0)),),
)
def hlen(session: CommandSession, args: list[bytes]) -> Reply:
    found = find_hash(session, args[1])
    return 0 if found is None else len(found)


@command(
    "hstrlen",
    arity=3,
    flags="readonly fast",
    group="hash",
    since="3.2.0",
    categories="hash",
    summary="Get the length of the value of a hash field",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("field"),
    ),
    key_specs=(KeySpec(("RO",), ("index", 1), ("range", 0, 1, 0)),),
)
def hstrlen(session: CommandSession, args: list[bytes]) -> Reply:
    found = find_hash(session, args[1])
    value = None if found is None else found.get(args[2])
    return 0 if value is None else len(value)
