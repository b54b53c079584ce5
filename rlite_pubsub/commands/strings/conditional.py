"""Strings of Redis 8.4: DIGEST, DELEX, MSETEX."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import INT_MAX, integer
from rlite_pubsub.engine.arguments.lookup import find_text, for_change, keyspace_of
from rlite_pubsub.engine.arguments.set_options import CONDITIONS, Condition, hex_digest, options_of_msetex
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.records import Text
from rlite_pubsub.protocol.errors import SYNTAX, CommandError, wrong_arity
from rlite_pubsub.protocol.replies import Reply

_NO_STRING = b"ERR Key should be of string type if conditions are specified"
_BAD_COUNT = b"ERR invalid numkeys value"


@command(
    "digest",
    arity=2,
    flags="readonly fast",
    group="string",
    since="8.4.0",
    categories="string",
    summary="Returns the XXH3 hash of a string value.",
    complexity="O(N) where N is the length of the string value.",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def digest(session: CommandSession, args: list[bytes]) -> Reply:
    text = find_text(session, args[1])
    return None if text is None else hex_digest(text.value)


@command(
    "delex",
    arity=-2,
    flags="write fast",
    group="string",
    since="8.4.0",
    categories="string",
    summary="Conditionally removes the specified key based on value or digest comparison.",
    complexity="O(1) for IFEQ/IFNE, O(N) for IFDEQ/IFDNE where N is the length of the string value.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "condition",
            "oneof",
            optional=True,
            arguments=(
                Arg("ifeq-value", token="IFEQ"),
                Arg("ifne-value", token="IFNE"),
                Arg("ifdeq-digest", token="IFDEQ"),
                Arg("ifdne-digest", token="IFDNE"),
            ),
        ),
    ),
    key_specs=(KeySpec(("RW", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
)
def delex(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) not in (2, 4):
        raise wrong_arity(args[0].lower())
    condition = Condition(args[2].lower(), args[3]) if len(args) == 4 else None
    if condition is not None and condition.word not in CONDITIONS:
        raise CommandError(SYNTAX)
    found = for_change(session, args[1])
    if found is None:
        return 0
    if condition is not None:
        if not isinstance(found, Text):
            raise CommandError(_NO_STRING)
        condition.check()
        if not condition.holds(found):
            return 0
    keyspace_of(session).remove(found)
    session.engine.notifications.tell("g", b"del", session.db, args[1])
    return 1


@command(
    "msetex",
    arity=-4,
    flags="write denyoom movablekeys",
    group="string",
    since="8.4.0",
    categories="string",
    summary="Atomically sets multiple string keys with a shared expiration in a single operation. Supports "
    "flexible argument parsing where condition and expiration flags can appear in any order.",
    complexity="O(N) where N is the number of keys to set.",
    arguments=(
        Arg("numkeys", "integer"),
        Arg(
            "data",
            "block",
            multiple=True,
            arguments=(
                Arg("key", "key", key_spec=0),
                Arg("value"),
            ),
        ),
        Arg(
            "condition",
            "oneof",
            optional=True,
            arguments=(
                Arg("nx", "pure-token", token="NX"),
                Arg("xx", "pure-token", token="XX"),
            ),
        ),
        Arg(
            "expiration",
            "oneof",
            optional=True,
            arguments=(
                Arg("seconds", "integer", token="EX"),
                Arg("milliseconds", "integer", token="PX"),
                Arg("unix-time-seconds", "unix-time", token="EXAT"),
                Arg("unix-time-milliseconds", "unix-time", token="PXAT"),
                Arg("keepttl", "pure-token", token="KEEPTTL"),
            ),
        ),
    ),
    key_specs=(KeySpec(("OW", "UPDATE"), ("index", 1), ("keynum", 0, 1, 2)),),
    tips=(
        "request_policy:multi_shard",
        "response_policy:all_succeeded",
    ),
)
def msetex(session: CommandSession, args: list[bytes]) -> Reply:
    count = integer(args[1], 1, INT_MAX, _BAD_COUNT)
    if 2 * count > len(args) - 2:
        raise wrong_arity(args[0].lower())
    pairs = args[2 : 2 + 2 * count]
    options = options_of_msetex(args[2 + 2 * count :])
    keyspace, notifications, database = keyspace_of(session), session.engine.notifications, session.db
    expires_ms = options.expires_ms(args[0], keyspace.clock_ms())
    existing = {key: for_change(session, key) for key in pairs[::2]}
    there = [found for found in existing.values() if found is not None]
    if (b"nx" in options.flags and there) or (b"xx" in options.flags and len(there) < len(existing)):
        return 0
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
        kept = existing[key] if b"keepttl" in options.flags else None
        keyspace.put_string(database, key, value, expires_ms or (kept.expires_ms if kept is not None else 0))
        notifications.tell("$", b"set", database, key)
        if expires_ms:
            notifications.tell("g", b"expire", database, key)
    return 1
