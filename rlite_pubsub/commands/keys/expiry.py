"""The expiry of keys (EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT, PERSIST), and their remaining time (TTL and its kin)."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import LONG_MAX, LONG_MIN, integer
from rlite_pubsub.engine.arguments.lookup import find, for_change, keyspace_of
from rlite_pubsub.engine.arguments.set_options import invalid_expiry
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.errors import CommandError, c_string
from rlite_pubsub.protocol.replies import Reply

# -- How long keys live: TTL, PTTL, EXPIRETIME, PEXPIRETIME.

_NO_KEY = -2
_NEVER = -1


@command(
    "ttl",
    arity=2,
    flags="readonly fast",
    group="generic",
    since="1.0.0",
    categories="keyspace",
    summary="Get the time to live for a key in seconds",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
    history=(("2.8.0", "Added the -2 reply."),),
)
def ttl(session: CommandSession, args: list[bytes]) -> Reply:
    return _in_seconds(_left_ms(session, args[1]))


@command(
    "pttl",
    arity=2,
    flags="readonly fast",
    group="generic",
    since="2.6.0",
    categories="keyspace",
    summary="Get the time to live for a key in milliseconds",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
    history=(("2.8.0", "Added the -2 reply."),),
)
def pttl(session: CommandSession, args: list[bytes]) -> Reply:
    return _left_ms(session, args[1])


@command(
    "expiretime",
    arity=2,
    flags="readonly fast",
    group="generic",
    since="7.0.0",
    categories="keyspace",
    summary="Get the expiration Unix timestamp for a key",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def expiretime(session: CommandSession, args: list[bytes]) -> Reply:
    return _in_seconds(_end_ms(session, args[1]))


@command(
    "pexpiretime",
    arity=2,
    flags="readonly fast",
    group="generic",
    since="7.0.0",
    categories="keyspace",
    summary="Get the expiration Unix timestamp for a key in milliseconds",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def pexpiretime(session: CommandSession, args: list[bytes]) -> Reply:
    return _end_ms(session, args[1])


def _end_ms(session: CommandSession, key: bytes) -> int:
    record = find(session, key, touch=False)
    return _NO_KEY if record is None else record.expires_ms or _NEVER


def _left_ms(session: CommandSession, key: bytes) -> int:
    end_ms = _end_ms(session, key)
    return end_ms if end_ms < 0 else max(end_ms - keyspace_of(session).clock_ms(), 0)


def _in_seconds(milliseconds: int) -> int:
    """Return milliseconds as the nearest second."""
    return milliseconds if milliseconds < 0 else (milliseconds + 500) // 1000


_CONDITIONS = frozenset((b"nx", b"xx", b"gt", b"lt"))


@command(
    "expire",
    arity=-3,
    flags="write fast",
    group="generic",
    since="1.0.0",
    categories="keyspace",
    summary="Set a key's time to live in seconds",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("seconds", "integer"),
        Arg(
            "condition",
            "oneof",
            optional=True,
            since="7.0.0",
            arguments=(
                Arg("nx", "pure-token", token="NX"),
                Arg("xx", "pure-token", token="XX"),
                Arg("gt", "pure-token", token="GT"),
                Arg("lt", "pure-token", token="LT"),
            ),
        ),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("7.0.0", "Added options: `NX`, `XX`, `GT` and `LT`."),),
)
def expire(session: CommandSession, args: list[bytes]) -> Reply:
    return _expire(session, args, 1000, keyspace_of(session).clock_ms())


@command(
    "pexpire",
    arity=-3,
    flags="write fast",
    group="generic",
    since="2.6.0",
    categories="keyspace",
    summary="Set a key's time to live in milliseconds",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("milliseconds", "integer"),
        Arg(
            "condition",
            "oneof",
            optional=True,
            since="7.0.0",
            arguments=(
                Arg("nx", "pure-token", token="NX"),
                Arg("xx", "pure-token", token="XX"),
                Arg("gt", "pure-token", token="GT"),
                Arg("lt", "pure-token", token="LT"),
            ),
        ),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("7.0.0", "Added options: `NX`, `XX`, `GT` and `LT`."),),
)
def pexpire(session: CommandSession, args: list[bytes]) -> Reply:
    return _expire(session, args, 1, keyspace_of(session).clock_ms())


@command(
    "expireat",
    arity=-3,
    flags="write fast",
    group="generic",
    since="1.2.0",
    categories="keyspace",
    summary="Set the expiration for a key as a UNIX timestamp",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("unix-time-seconds", "unix-time"),
        Arg(
            "condition",
            "oneof",
            optional=True,
            since="7.0.0",
            arguments=(
                Arg("nx", "pure-token", token="NX"),
                Arg("xx", "pure-token", token="XX"),
                Arg("gt", "pure-token", token="GT"),
                Arg("lt", "pure-token", token="LT"),
            ),
        ),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("7.0.0", "Added options: `NX`, `XX`, `GT` and `LT`."),),
)
def expireat(session: CommandSession, args: list[bytes]) -> Reply:
    return _expire(session, args, 1000, 0)


@command(
    "pexpireat",
    arity=-3,
    flags="write fast",
    group="generic",
    since="2.6.0",
    categories="keyspace",
    summary="Set the expiration for a key as a UNIX timestamp specified in milliseconds",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("unix-time-milliseconds", "unix-time"),
        Arg(
            "condition",
            "oneof",
            optional=True,
            since="7.0.0",
            arguments=(
                Arg("nx", "pure-token", token="NX"),
                Arg("xx", "pure-token", token="XX"),
                Arg("gt", "pure-token", token="GT"),
                Arg("lt", "pure-token", token="LT"),
            ),
        ),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("7.0.0", "Added options: `NX`, `XX`, `GT` and `LT`."),),
)
def pexpireat(session: CommandSession, args: list[bytes]) -> Reply:
    return _expire(session, args, 1, 0)


def _expire(session: CommandSession, args: list[bytes], unit_ms: int, base_ms: int) -> Reply:
    conditions = _conditions(args[3:])
    number = integer(args[2])
    if unit_ms > 1 and not LONG_MIN // unit_ms < number <= LONG_MAX // unit_ms:
        raise invalid_expiry(args[0])
    expires_ms = number * unit_ms + base_ms
    if expires_ms > LONG_MAX:
        raise invalid_expiry(args[0])
    keyspace, notifications, key = keyspace_of(session), session.engine.notifications, args[1]
    record = for_change(session, key)
    if record is None or not _holds(conditions, record.expires_ms, expires_ms):
        return 0
    if expires_ms <= keyspace.clock_ms():
        keyspace.remove(record)
        notifications.tell("g", b"del", session.db, key)
    else:
        notifications.hold()
        keyspace.set_expiry(record, expires_ms)
        notifications.tell("g", b"expire", session.db, key)
    return 1


def _conditions(words: list[bytes]) -> set[bytes]:
    conditions = set()
    for word in words:
        if word.lower() not in _CONDITIONS:
            raise CommandError(b"ERR Unsupported option " + c_string(word))
        conditions.add(word.lower())
    if b"nx" in conditions and len(conditions) > 1:
        raise CommandError(b"ERR NX and XX, GT or LT options at the same time are not compatible")
    if {b"gt", b"lt"} <= conditions:
        raise CommandError(b"ERR GT and LT options at the same time are not compatible")
    return conditions


def _holds(conditions: set[bytes], now: int, then: int) -> bool:
    """Never (0) is later than any time."""
    return not (
        (b"nx" in conditions and now)
        or (b"xx" in conditions and not now)
        or (b"gt" in conditions and (not now or then <= now))
        or (b"lt" in conditions and now and then >= now)
    )


@command(
    "persist",
    arity=2,
    flags="write fast",
    group="generic",
    since="2.2.0",
    categories="keyspace",
    summary="Remove the expiration from a key",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def persist(session: CommandSession, args: list[bytes]) -> Reply:
    record = for_change(session, args[1])
    if record is None or not record.expires_ms:
        return 0
    keyspace_of(session).set_expiry(record, 0)
    session.engine.notifications.tell("g", b"persist", session.db, args[1])
    return 1
