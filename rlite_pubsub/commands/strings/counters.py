"""Strings that are numbers: INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT."""

from __future__ import annotations

from typing import Final

from rlite_pubsub.engine.arguments.integers import LONG_MAX, LONG_MIN, integer
from rlite_pubsub.engine.arguments.long_double import Infinite, printed, read, rounded
from rlite_pubsub.engine.arguments.lookup import keyspace_of, text_for_change
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.records import PLAIN
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Reply

_SURE: Final = 1 << 60
"""Less is no more than 64 bits can say, and compared with it in no time."""


@command(
    "incr",
    arity=2,
    flags="write denyoom fast",
    group="string",
    since="1.0.0",
    categories="string",
    summary="Increment the integer value of a key by one",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RW", "ACCESS", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def incr(session: CommandSession, args: list[bytes]) -> Reply:
    return _add(session, args[1], 1)


@command(
    "decr",
    arity=2,
    flags="write denyoom fast",
    group="string",
    since="1.0.0",
    categories="string",
    summary="Decrement the integer value of a key by one",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RW", "ACCESS", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def decr(session: CommandSession, args: list[bytes]) -> Reply:
    return _add(session, args[1], -1)


@command(
    "incrby",
    arity=3,
    flags="write denyoom fast",
    group="string",
    since="1.0.0",
    categories="string",
    summary="Increment the integer value of a key by the given amount",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0), Arg("increment", "integer")),
    key_specs=(KeySpec(("RW", "ACCESS", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def incrby(session: CommandSession, args: list[bytes]) -> Reply:
    return _add(session, args[1], integer(args[2]))


@command(
    "decrby",
    arity=3,
    flags="write denyoom fast",
    group="string",
    since="1.0.0",
    categories="string",
    summary="Decrement the integer value of a key by the given number",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0), Arg("decrement", "integer")),
    key_specs=(KeySpec(("RW", "ACCESS", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def decrby(session: CommandSession, args: list[bytes]) -> Reply:
    decrement = integer(args[2])
    if decrement == LONG_MIN:
        raise CommandError(b"ERR decrement would overflow")
    return _add(session, args[1], -decrement)


def _add(session: CommandSession, key: bytes, increment: int) -> Reply:
    text = text_for_change(session, key)
    value = increment if text is None else integer(text.value) + increment
    if not -_SURE < value < _SURE and not LONG_MIN <= value <= LONG_MAX:
        raise CommandError(b"ERR increment or decrement would overflow")
    keyspace = keyspace_of(session)
    if text is None:
        keyspace.put_string(session.db, key, b"%d" % value)
    else:
        keyspace.put_value(text, b"%d" % value)
    notifications = session.engine.notifications
    if notifications.classes:
        notifications.tell("$", b"incrby", session.db, key)
    return value


@command(
    "incrbyfloat",
    arity=3,
    flags="write denyoom fast",
    group="string",
    since="2.6.0",
    categories="string",
    summary="Increment the float value of a key by the given amount",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0), Arg("increment", "double")),
    key_specs=(KeySpec(("RW", "ACCESS", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def incrbyfloat(session: CommandSession, args: list[bytes]) -> Reply:
    text = text_for_change(session, args[1])
    before = read(b"0" if text is None else text.value)
    increment = read(args[2])
    try:
        if before is None or increment is None:
            raise Infinite
        value = printed(rounded(before + increment))
    except Infinite:
        raise CommandError(b"ERR increment would produce NaN or Infinity") from None
    expires_ms = 0 if text is None else text.expires_ms
    keyspace_of(session).put_string(session.db, args[1], value, expires_ms, PLAIN)
    session.engine.notifications.tell("$", b"incrbyfloat", session.db, args[1])
    return value
