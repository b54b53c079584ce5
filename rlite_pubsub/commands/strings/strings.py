"""Strings that are set and read as a whole: SET, GET and their kin.

Where Redis answers before it changes the key, what the change publishes follows the reply: `Notifications.hold`.
"""

from __future__ import annotations

from typing import Final

from rlite_pubsub.engine.arguments.lookup import (
    find_text,
    for_change,
    keyspace_of,
    text_for_change,
    text_read_for_change,
)
from rlite_pubsub.engine.arguments.set_options import expiry_of, options_of_getex, options_of_set
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.waits.giving_back import note_popped
from rlite_pubsub.protocol.replies import OK, Reply

_OK: Final = OK  # compiled code finds what is its own without a look-up


@command(
    "get",
    arity=2,
    flags="readonly fast",
    group="string",
    since="1.0.0",
    categories="string",
    summary="Get the value of a key",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def get(session: CommandSession, args: list[bytes]) -> Reply:
    text = find_text(session, args[1])
    return None if text is None else text.value


_WRITTEN: Final = KeySpec(("OW", "UPDATE"), ("index", 1), ("range", 0, 1, 0))
_WRITTEN_AND_TOLD: Final = KeySpec(("RW", "ACCESS", "UPDATE"), ("index", 1), ("range", 0, 1, 0))


def _keys_of_set(args: list[bytes]) -> list[tuple[int, KeySpec]]:
    is_told = any(word.lower() == b"get" for word in args[3:])
    return [(1, _WRITTEN_AND_TOLD if is_told else _WRITTEN)]


@command(
    "set",
    arity=-3,
    flags="write denyoom",
    group="string",
    since="1.0.0",
    categories="string",
    summary="Set the string value of a key",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("value"),
        Arg(
            "condition",
            "oneof",
            optional=True,
            since="2.6.12",
            arguments=(Arg("nx", "pure-token", token="NX"), Arg("xx", "pure-token", token="XX")),
        ),
        Arg("get", "pure-token", token="GET", optional=True, since="6.2.0"),
        Arg(
            "expiration",
            "oneof",
            optional=True,
            arguments=(
                Arg("seconds", "integer", token="EX", since="2.6.12"),
                Arg("milliseconds", "integer", token="PX", since="2.6.12"),
                Arg("unix-time-seconds", "unix-time", token="EXAT", since="6.2.0"),
                Arg("unix-time-milliseconds", "unix-time", token="PXAT", since="6.2.0"),
                Arg("keepttl", "pure-token", token="KEEPTTL", since="6.0.0"),
            ),
        ),
    ),
    key_specs=(
        KeySpec(
            ("RW", "ACCESS", "UPDATE", "VARIABLE_FLAGS"),
            ("index", 1),
            ("range", 0, 1, 0),
            notes="RW and ACCESS due to the optional `GET` argument",
        ),
    ),
    find_keys=_keys_of_set,
    history=(
        ("2.6.12", "Added the `EX`, `PX`, `NX` and `XX` options."),
        ("6.0.0", "Added the `KEEPTTL` option."),
        ("6.2.0", "Added the `GET`, `EXAT` and `PXAT` option."),
        ("7.0.0", "Allowed the `NX` and `GET` options to be used together."),
    ),
)
def set_(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) == 3:
        return _put(session, args[1], args[2])
    options = options_of_set(args[3:])
    keyspace, key = keyspace_of(session), args[1]
    expires_ms = options.expires_ms(args[0], keyspace.clock_ms())
    flags = options.flags
    reply: Reply = _OK
    if b"get" in flags:
        text = text_read_for_change(session, key)
        reply = None if text is None else text.value
        session.engine.notifications.hold()
    existing = for_change(session, key)
    if (b"nx" in flags and existing is not None) or (b"xx" in flags and existing is None):
        return reply if b"get" in flags else None
    if options.condition is not None and not options.condition.holds(text_for_change(session, key)):
        return reply if b"get" in flags else None
    kept_ms = existing.expires_ms if existing is not None and b"keepttl" in flags else 0
    _put(session, key, args[2], expires_ms or kept_ms)
    if expires_ms:
        session.engine.notifications.tell("g", b"expire", session.db, key)
    return reply


@command(
    "setnx",
    arity=3,
    flags="write denyoom fast",
    group="string",
    since="1.0.0",
    categories="string",
    summary="Set the value of a key, only if the key does not exist",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0), Arg("value")),
    key_specs=(KeySpec(("OW", "INSERT"), ("index", 1), ("range", 0, 1, 0)),),
)
def setnx(session: CommandSession, args: list[bytes]) -> Reply:
    if for_change(session, args[1]) is not None:
        return 0
    _put(session, args[1], args[2])
    return 1


@command(
    "setex",
    arity=4,
    flags="write denyoom",
    group="string",
    since="2.0.0",
    categories="string",
    summary="Set the value and expiration of a key",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0), Arg("seconds", "integer"), Arg("value")),
    key_specs=(KeySpec(("OW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def setex(session: CommandSession, args: list[bytes]) -> Reply:
    return _put_for_a_time(session, args, 1000)


@command(
    "psetex",
    arity=4,
    flags="write denyoom",
    group="string",
    since="2.6.0",
    categories="string",
    summary="Set the value and expiration in milliseconds of a key",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0), Arg("milliseconds", "integer"), Arg("value")),
    key_specs=(KeySpec(("OW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def psetex(session: CommandSession, args: list[bytes]) -> Reply:
    return _put_for_a_time(session, args, 1)


def _put_for_a_time(session: CommandSession, args: list[bytes], unit_ms: int) -> Reply:
    key = args[1]
    _put(session, key, args[3], expiry_of(args[0], args[2], unit_ms, keyspace_of(session).clock_ms()))
    session.engine.notifications.tell("g", b"expire", session.db, key)
    return _OK


def _put(session: CommandSession, key: bytes, value: bytes, expires_ms: int = 0) -> Reply:
    engine, database = session.engine, session.db
    keyspace = engine.keyspace
    keyspace.put_string(database, key, value, expires_ms)
    if engine.notifications.classes:
        engine.notifications.tell("$", b"set", database, key)
    return _OK


@command(
    "getset",
    arity=3,
    flags="write denyoom fast",
    group="string",
    since="1.0.0",
    categories="string",
    summary="Set the string value of a key and return its old value",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0), Arg("value")),
    key_specs=(KeySpec(("RW", "ACCESS", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
    doc_flags=("deprecated",),
    deprecated_since="6.2.0",
    replaced_by="`SET` with the `!GET` argument",
)
def getset(session: CommandSession, args: list[bytes]) -> Reply:
    text = text_read_for_change(session, args[1])
    reply = None if text is None else text.value
    session.engine.notifications.hold()
    _put(session, args[1], args[2])
    return reply


@command(
    "getdel",
    arity=2,
    flags="write fast",
    group="string",
    since="6.2.0",
    categories="string",
    summary="Get the value of a key and delete the key",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
)
def getdel(session: CommandSession, args: list[bytes]) -> Reply:
    text = text_read_for_change(session, args[1])
    if text is None:
        return None
    session.engine.notifications.hold()
    if session.gives_back:
        note_popped(session, text, [b"SET", args[1], text.value, b"NX"])
    keyspace_of(session).remove(text)
    session.engine.notifications.tell("g", b"del", session.db, args[1])
    return text.value


@command(
    "getex",
    arity=-2,
    flags="write fast",
    group="string",
    since="6.2.0",
    categories="string",
    summary="Get the value of a key and optionally set its expiration",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "expiration",
            "oneof",
            optional=True,
            arguments=(
                Arg("seconds", "integer", token="EX"),
                Arg("milliseconds", "integer", token="PX"),
                Arg("unix-time-seconds", "unix-time", token="EXAT"),
                Arg("unix-time-milliseconds", "unix-time", token="PXAT"),
                Arg("persist", "pure-token", token="PERSIST"),
            ),
        ),
    ),
    key_specs=(
        KeySpec(
            ("RW", "ACCESS", "UPDATE"),
            ("index", 1),
            ("range", 0, 1, 0),
            notes="RW and UPDATE because it changes the TTL",
        ),
    ),
)
def getex(session: CommandSession, args: list[bytes]) -> Reply:
    options = options_of_getex(args[2:])
    if options.time is None and not options.flags:
        return get(session, args)
    keyspace, notifications, key = keyspace_of(session), session.engine.notifications, args[1]
    text = text_read_for_change(session, key)
    if text is None:
        return None
    expires_ms = options.expires_ms(args[0], keyspace.clock_ms())
    notifications.hold()
    if expires_ms and options.is_point_in_time and expires_ms <= keyspace.clock_ms():
        keyspace.remove(text)
        notifications.tell("g", b"del", session.db, key)
    elif expires_ms:
        keyspace.set_expiry(text, expires_ms)
        notifications.tell("g", b"expire", session.db, key)
    elif text.expires_ms:
        keyspace.set_expiry(text, 0)
        notifications.tell("g", b"persist", session.db, key)
    return text.value
