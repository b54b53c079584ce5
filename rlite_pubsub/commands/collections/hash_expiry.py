"""The expiry of hash fields: HEXPIRE, HPEXPIRE, HEXPIREAT, HPEXPIREAT, HTTL, HPTTL, HEXPIRETIME, HPEXPIRETIME and
HPERSIST.

All of Redis 7.4.
"""

from __future__ import annotations

from rlite_pubsub.engine.arguments.field_options import field_due_ms, fields_at
from rlite_pubsub.engine.arguments.hash_lookup import drop_if_empty, find_hash, hash_for_change, tell_hash
from rlite_pubsub.engine.arguments.lookup import keyspace_of
from rlite_pubsub.engine.field_expiry import DONE, NO_EXPIRY, NO_FIELD, REMOVED, expire_field
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.hashes import Hash
from rlite_pubsub.protocol.replies import Reply

_NO_COUNT = b"ERR Parameter `numFields` should be greater than 0"
_CONDITIONS = frozenset((b"nx", b"xx", b"gt", b"lt"))


@command(
    "hexpire",
    arity=-6,
    flags="write denyoom fast",
    group="hash",
    since="7.4.0",
    categories="hash",
    summary="Set expiry for hash field using relative time to expire (seconds)",
    complexity="O(N) where N is the number of specified fields",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("seconds", "integer"),
        Arg(
            "condition",
            "oneof",
            optional=True,
            arguments=(
                Arg("nx", "pure-token", token="NX"),
                Arg("xx", "pure-token", token="XX"),
                Arg("gt", "pure-token", token="GT"),
                Arg("lt", "pure-token", token="LT"),
            ),
        ),
        Arg(
            "fields",
            "block",
            token="FIELDS",
            arguments=(
                Arg("numfields", "integer"),
                Arg("field", multiple=True),
            ),
        ),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def hexpire(session: CommandSession, args: list[bytes]) -> Reply:
    return _expire(session, args, 1000, from_now=True)


@command(
    "hpexpire",
    arity=-6,
    flags="write denyoom fast",
    group="hash",
    since="7.4.0",
    categories="hash",
    summary="Set expiry for hash field using relative time to expire (milliseconds)",
    complexity="O(N) where N is the number of specified fields",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("milliseconds", "integer"),
        Arg(
            "condition",
            "oneof",
            optional=True,
            arguments=(
                Arg("nx", "pure-token", token="NX"),
                Arg("xx", "pure-token", token="XX"),
                Arg("gt", "pure-token", token="GT"),
                Arg("lt", "pure-token", token="LT"),
            ),
        ),
        Arg(
            "fields",
            "block",
            token="FIELDS",
            arguments=(
                Arg("numfields", "integer"),
                Arg("field", multiple=True),
            ),
        ),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def hpexpire(session: CommandSession, args: list[bytes]) -> Reply:
    return _expire(session, args, 1, from_now=True)


@command(
    "hexpireat",
    arity=-6,
    flags="write denyoom fast",
    group="hash",
    since="7.4.0",
    categories="hash",
    summary="Set expiry for hash field using an absolute Unix timestamp (seconds)",
    complexity="O(N) where N is the number of specified fields",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("unix-time-seconds", "unix-time"),
        Arg(
            "condition",
            "oneof",
            optional=True,
            arguments=(
                Arg("nx", "pure-token", token="NX"),
                Arg("xx", "pure-token", token="XX"),
                Arg("gt", "pure-token", token="GT"),
                Arg("lt", "pure-token", token="LT"),
            ),
        ),
        Arg(
            "fields",
            "block",
            token="FIELDS",
            arguments=(
                Arg("numfields", "integer"),
                Arg("field", multiple=True),
            ),
        ),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def hexpireat(session: CommandSession, args: list[bytes]) -> Reply:
    return _expire(session, args, 1000, from_now=False)


@command(
    "hpexpireat",
    arity=-6,
    flags="write denyoom fast",
    group="hash",
    since="7.4.0",
    categories="hash",
    summary="Set expiry for hash field using an absolute Unix timestamp (milliseconds)",
    complexity="O(N) where N is the number of specified fields",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("unix-time-milliseconds", "unix-time"),
        Arg(
            "condition",
            "oneof",
            optional=True,
            arguments=(
                Arg("nx", "pure-token", token="NX"),
                Arg("xx", "pure-token", token="XX"),
                Arg("gt", "pure-token", token="GT"),
                Arg("lt", "pure-token", token="LT"),
            ),
        ),
        Arg(
            "fields",
            "block",
            token="FIELDS",
            arguments=(
                Arg("numfields", "integer"),
                Arg("field", multiple=True),
            ),
        ),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def hpexpireat(session: CommandSession, args: list[bytes]) -> Reply:
    return _expire(session, args, 1, from_now=False)


@command(
    "httl",
    arity=-5,
    flags="readonly fast",
    group="hash",
    since="7.4.0",
    categories="hash",
    summary="Returns the TTL in seconds of a hash field.",
    complexity="O(N) where N is the number of specified fields",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "fields",
            "block",
            token="FIELDS",
            arguments=(
                Arg("numfields", "integer"),
                Arg("field", multiple=True),
            ),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
)
def httl(session: CommandSession, args: list[bytes]) -> Reply:
    return _times(session, args, 1000, from_now=True)


@command(
    "hpttl",
    arity=-5,
    flags="readonly fast",
    group="hash",
    since="7.4.0",
    categories="hash",
    summary="Returns the TTL in milliseconds of a hash field.",
    complexity="O(N) where N is the number of specified fields",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "fields",
            "block",
            token="FIELDS",
            arguments=(
                Arg("numfields", "integer"),
                Arg("field", multiple=True),
            ),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
)
def hpttl(session: CommandSession, args: list[bytes]) -> Reply:
    return _times(session, args, 1, from_now=True)


@command(
    "hexpiretime",
    arity=-5,
    flags="readonly fast",
    group="hash",
    since="7.4.0",
    categories="hash",
    summary="Returns the expiration time of a hash field as a Unix timestamp, in seconds.",
    complexity="O(N) where N is the number of specified fields",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "fields",
            "block",
            token="FIELDS",
            arguments=(
                Arg("numfields", "integer"),
                Arg("field", multiple=True),
            ),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def hexpiretime(session: CommandSession, args: list[bytes]) -> Reply:
    return _times(session, args, 1000, from_now=False)


@command(
    "hpexpiretime",
    arity=-5,
    flags="readonly fast",
    group="hash",
    since="7.4.0",
    categories="hash",
    summary="Returns the expiration time of a hash field as a Unix timestamp, in msec.",
    complexity="O(N) where N is the number of specified fields",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "fields",
            "block",
            token="FIELDS",
            arguments=(
                Arg("numfields", "integer"),
                Arg("field", multiple=True),
            ),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def hpexpiretime(session: CommandSession, args: list[bytes]) -> Reply:
    return _times(session, args, 1, from_now=False)


@command(
    "hpersist",
    arity=-5,
    flags="write fast",
    group="hash",
    since="7.4.0",
    categories="hash",
    summary="Removes the expiration time for each specified field",
    complexity="O(N) where N is the number of specified fields",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "fields",
            "block",
            token="FIELDS",
            arguments=(
                Arg("numfields", "integer"),
                Arg("field", multiple=True),
            ),
        ),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def hpersist(session: CommandSession, args: list[bytes]) -> Reply:
    found = hash_for_change(session, args[1])
    names = fields_at(args, 2)
    if found is None:
        return [NO_FIELD] * len(names)
    replies = [_persist(found, name) for name in names]
    if DONE in replies:
        tell_hash(session, b"hpersist", args[1])
    return replies


def _expire(session: CommandSession, args: list[bytes], unit_ms: int, *, from_now: bool) -> Reply:
    found = hash_for_change(session, args[1])
    now_ms = keyspace_of(session).clock_ms()
    due_ms = field_due_ms(args[0], args[2], unit_ms, now_ms if from_now else 0)
    condition = args[3].lower()
    has_condition = condition in _CONDITIONS
    names = fields_at(args, 3 + has_condition, _NO_COUNT)
    if found is None:
        return [NO_FIELD] * len(names)
    replies = [expire_field(found, name, due_ms, now_ms, condition if has_condition else b"") for name in names]
    if REMOVED in replies or DONE in replies:
        session.engine.notifications.hold()
        tell_hash(session, b"hdel" if REMOVED in replies else b"hexpire", args[1])
        drop_if_empty(session, found)
    return replies


def _persist(found: Hash, name: bytes) -> int:
    field = found.field(name)
    if field is None:
        return NO_FIELD
    if not field.due_ms:
        return NO_EXPIRY
    found.set_due(name, 0)
    return DONE


def _times(session: CommandSession, args: list[bytes], unit_ms: int, *, from_now: bool) -> Reply:
    found = find_hash(session, args[1])
    names = fields_at(args, 2)
    base_ms = keyspace_of(session).clock_ms() if from_now else 0
    return [_time(found, name, unit_ms, base_ms) for name in names]


def _time(found: Hash | None, name: bytes, unit_ms: int, base_ms: int) -> int:
    field = None if found is None else found.field(name)
    if field is None:
        return NO_FIELD
    return (field.due_ms - base_ms + unit_ms - 1) // unit_ms if field.due_ms else NO_EXPIRY
