"""Fields of hashes with their expiry in one command: HGETEX, HSETEX, HGETDEL. All of Redis 8.0."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.field_options import field_due_ms, fields_at
from rlite_pubsub.engine.arguments.hash_lookup import drop_if_empty, hash_for_change, hash_or_new, tell_hash
from rlite_pubsub.engine.arguments.integers import INT_MAX, integer
from rlite_pubsub.engine.arguments.lookup import keyspace_of
from rlite_pubsub.engine.field_expiry import DONE, REMOVED, expire_field
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.errors import CommandError, wrong_arity
from rlite_pubsub.protocol.replies import Reply

_TIMES = {b"ex": (1000, True), b"px": (1, True), b"exat": (1000, False), b"pxat": (1, False)}
"""Option -> (milliseconds in its unit, whether it counts from now)."""
_BAD_COUNT = b"ERR invalid number of fields"
_NO_TIME = b"ERR missing expire time"
_TWO_CONDITIONS = b"ERR Only one of FXX or FNX arguments can be specified"
_TWO_EXPIRIES = b"ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"


@command(
    "hgetex",
    arity=-5,
    flags="write fast",
    group="hash",
    since="8.0.0",
    categories="hash",
    summary="Get the value of one or more fields of a given hash key, and optionally set their expiration.",
    complexity="O(N) where N is the number of specified fields",
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
    key_specs=(
        KeySpec(
            ("RW", "ACCESS", "UPDATE"),
            ("index", 1),
            ("range", 0, 1, 0),
            notes="RW and UPDATE because it changes the TTL",
        ),
    ),
)
def hgetex(session: CommandSession, args: list[bytes]) -> Reply:
    found = hash_for_change(session, args[1])
    now_ms = keyspace_of(session).clock_ms()
    option = args[2].lower()
    at, due_ms = 2, 0
    if option in _TIMES:
        due_ms = _due_ms(args[0], option, args[3], now_ms)
        at = 4
    elif option == b"persist":
        at = 3
    names = fields_at(args, at)
    if found is None:
        return [None] * len(names)
    replies: list[Reply] = []
    outcomes: set[int] = set()
    for name in names:
        field = found.field(name)
        replies.append(None if field is None else field.value)
        if field is None:
            continue
        if option in _TIMES:
            outcomes.add(expire_field(found, name, due_ms, now_ms))
        elif option == b"persist" and field.due_ms:
            found.set_due(name, 0)
            outcomes.add(DONE)
    if outcomes:
        session.engine.notifications.hold()
        event = b"hpersist" if option == b"persist" else b"hexpire"
        tell_hash(session, event if DONE in outcomes else b"hdel", args[1])
        drop_if_empty(session, found)
    return replies


@command(
    "hsetex",
    arity=-6,
    flags="write denyoom fast",
    group="hash",
    since="8.0.0",
    categories="hash",
    summary="Set the value of one or more fields of a given hash key, and optionally set their expiration.",
    complexity="O(N) where N is the number of fields being set.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "condition",
            "oneof",
            optional=True,
            arguments=(
                Arg("fnx", "pure-token", token="FNX"),
                Arg("fxx", "pure-token", token="FXX"),
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
        Arg(
            "fields",
            "block",
            token="FIELDS",
            arguments=(
                Arg("numfields", "integer"),
                Arg(
                    "data",
                    "block",
                    multiple=True,
                    arguments=(
                        Arg("field"),
                        Arg("value"),
                    ),
                ),
            ),
        ),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def hsetex(session: CommandSession, args: list[bytes]) -> Reply:
    words, time, pairs = _parsed(args)
    now_ms = keyspace_of(session).clock_ms()
    due_ms = 0 if time is None else _due_ms(args[0], *time, now_ms)
    found = hash_for_change(session, args[1])
    there = {name for name in pairs[::2] if found is not None and found.get(name) is not None}
    if (b"fnx" in words and there) or (b"fxx" in words and len(there) < len(set(pairs[::2]))):
        return 0
    found = hash_or_new(session, args[1])
    found.put(pairs, keeps_dues=time is not None or b"keepttl" in words)
    outcomes = set() if time is None else {expire_field(found, name, due_ms, now_ms) for name in pairs[::2]}
    session.engine.notifications.hold()
    tell_hash(session, b"hset", args[1])
    if outcomes:
        tell_hash(session, b"hdel" if REMOVED in outcomes else b"hexpire", args[1])
    drop_if_empty(session, found)
    return 1


def _due_ms(name: bytes, option: bytes, text: bytes, now_ms: int) -> int:
    unit_ms, from_now = _TIMES[option]
    return field_due_ms(name, text, unit_ms, now_ms if from_now else 0)


def _parsed(args: list[bytes]) -> tuple[set[bytes], tuple[bytes, bytes] | None, list[bytes]]:
    """HSETEX's words, its time, and fields and values by turns. Raises CommandError."""
    words: set[bytes] = set()
    time = None
    at = 2
    while at < len(args):
        option = args[at].lower()
        if option == b"fields":
            return words, time, _pairs(args, at)
        if option in _TIMES or option == b"keepttl":
            if time is not None or b"keepttl" in words:
                raise CommandError(_TWO_EXPIRIES)
            if option == b"keepttl":
                words.add(option)
            elif at + 1 >= len(args):
                raise CommandError(_NO_TIME)
            else:
                at += 1
                time = option, args[at]
                _due_ms(args[0], option, args[at], 0)
        elif option in (b"fxx", b"fnx"):
            if words & {b"fxx", b"fnx"}:
                raise CommandError(_TWO_CONDITIONS)
            words.add(option)
        else:
            raise CommandError(b"ERR unknown argument: %b" % args[at])
        at += 1
    raise wrong_arity(args[0].lower())


def _pairs(args: list[bytes], at: int) -> list[bytes]:
    """Return the words after FIELDS at this place, and their number."""
    if at >= len(args) - 3:
        raise wrong_arity(args[0].lower())
    count = integer(args[at + 1], 1, INT_MAX, _BAD_COUNT)
    pairs = args[at + 2 :]
    if len(pairs) != 2 * count:
        raise wrong_arity(args[0].lower())
    return pairs


@command(
    "hgetdel",
    arity=-5,
    flags="write fast",
    group="hash",
    since="8.0.0",
    categories="hash",
    summary="Returns the value of a field and deletes it from the hash.",
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
    key_specs=(KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
)
def hgetdel(session: CommandSession, args: list[bytes]) -> Reply:
    found = hash_for_change(session, args[1])
    names = fields_at(args, 2)
    if found is None:
        return [None] * len(names)
    replies: list[Reply] = []
    removed = 0
    for name in names:
        replies.append(found.get(name))
        removed += found.remove([name])
    if removed:
        session.engine.notifications.hold()
        tell_hash(session, b"hdel", args[1])
        drop_if_empty(session, found)
    return replies
