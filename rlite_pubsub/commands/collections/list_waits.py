"""Lists that are waited for: BLPOP, BRPOP, BLMPOP, BLMOVE, BRPOPLPUSH."""

from __future__ import annotations

from functools import partial

from rlite_pubsub.commands.collections.lists import list_of, move_element, pop
from rlite_pubsub.engine.arguments.lookup import keyspace_of
from rlite_pubsub.engine.arguments.popping import LEFT_RIGHT, is_left, popping
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.waits.taking import take_or_wait
from rlite_pubsub.engine.waits.timeouts import seconds_as_ms
from rlite_pubsub.keyspace.lists import List
from rlite_pubsub.protocol.replies import Reply


@command(
    "blpop",
    arity=-3,
    flags="write noscript blocking",
    group="list",
    since="2.0.0",
    categories="list",
    summary="Remove and get the first element in a list, or block until one is available",
    complexity="O(N) where N is the number of provided keys.",
    arguments=(
        Arg("key", "key", multiple=True, key_spec=0),
        Arg("timeout", "double"),
    ),
    key_specs=(KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", -2, 1, 0)),),
    history=(("6.0.0", "`timeout` is interpreted as a double instead of an integer."),),
)
def blpop(session: CommandSession, args: list[bytes]) -> Reply:
    return take_or_wait(session, List, args[1:-1], seconds_as_ms(args[-1]), partial(_pop_one, session, True))


@command(
    "brpop",
    arity=-3,
    flags="write noscript blocking",
    group="list",
    since="2.0.0",
    categories="list",
    summary="Remove and get the last element in a list, or block until one is available",
    complexity="O(N) where N is the number of provided keys.",
    arguments=(
        Arg("key", "key", multiple=True, key_spec=0),
        Arg("timeout", "double"),
    ),
    key_specs=(KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", -2, 1, 0)),),
    history=(("6.0.0", "`timeout` is interpreted as a double instead of an integer."),),
)
def brpop(session: CommandSession, args: list[bytes]) -> Reply:
    return take_or_wait(session, List, args[1:-1], seconds_as_ms(args[-1]), partial(_pop_one, session, False))


@command(
    "blmpop",
    arity=-5,
    flags="write blocking movablekeys",
    group="list",
    since="7.0.0",
    categories="list",
    summary="Pop elements from a list, or block until one is available",
    complexity="O(N+M) where N is the number of provided keys and M is the number of elements returned.",
    arguments=(
        Arg("timeout", "double"),
        Arg("numkeys", "integer"),
        Arg("key", "key", multiple=True, key_spec=0),
        Arg(
            "where",
            "oneof",
            arguments=(
                Arg("left", "pure-token", token="LEFT"),
                Arg("right", "pure-token", token="RIGHT"),
            ),
        ),
        Arg("count", "integer", token="COUNT", optional=True),
    ),
    key_specs=(KeySpec(("RW", "ACCESS", "DELETE"), ("index", 2), ("keynum", 0, 1, 1)),),
)
def blmpop(session: CommandSession, args: list[bytes]) -> Reply:
    keys, left, most = popping(args[2:], LEFT_RIGHT)
    return take_or_wait(session, List, keys, seconds_as_ms(args[1]), partial(_pop_some, session, left, most))


@command(
    "blmove",
    arity=6,
    flags="write denyoom noscript blocking",
    group="list",
    since="6.2.0",
    categories="list",
    summary="Pop an element from a list, push it to another list and return it; or block until one is available",
    complexity="O(1)",
    arguments=(
        Arg("source", "key", key_spec=0),
        Arg("destination", "key", key_spec=1),
        Arg(
            "wherefrom",
            "oneof",
            arguments=(
                Arg("left", "pure-token", token="LEFT"),
                Arg("right", "pure-token", token="RIGHT"),
            ),
        ),
        Arg(
            "whereto",
            "oneof",
            arguments=(
                Arg("left", "pure-token", token="LEFT"),
                Arg("right", "pure-token", token="RIGHT"),
            ),
        ),
        Arg("timeout", "double"),
    ),
    key_specs=(
        KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("RW", "INSERT"), ("index", 2), ("range", 0, 1, 0)),
    ),
)
def blmove(session: CommandSession, args: list[bytes]) -> Reply:
    from_left, to_left = is_left(args[3]), is_left(args[4])
    return _move(session, args, seconds_as_ms(args[5]), from_left, to_left)


@command(
    "brpoplpush",
    arity=4,
    flags="write denyoom noscript blocking",
    group="list",
    since="2.2.0",
    categories="list",
    summary="Pop an element from a list, push it to another list and return it; or block until one is available",
    complexity="O(1)",
    arguments=(
        Arg("source", "key", key_spec=0),
        Arg("destination", "key", key_spec=1),
        Arg("timeout", "double"),
    ),
    key_specs=(
        KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("RW", "INSERT"), ("index", 2), ("range", 0, 1, 0)),
    ),
    history=(("6.0.0", "`timeout` is interpreted as a double instead of an integer."),),
    doc_flags=("deprecated",),
    deprecated_since="6.2.0",
    replaced_by="`BLMOVE` with the `RIGHT` and `LEFT` arguments",
)
def brpoplpush(session: CommandSession, args: list[bytes]) -> Reply:
    return _move(session, args, seconds_as_ms(args[3]), from_left=False, to_left=True)


def _pop_one(session: CommandSession, left: bool, name: bytes) -> Reply:
    popped = pop(session, name, 1, left=left)
    return [name, popped[0]] if popped else None


def _pop_some(session: CommandSession, left: bool, most: int, name: bytes) -> Reply:
    popped = pop(session, name, most, left=left)
    return [name, popped] if popped else None


def _move(session: CommandSession, args: list[bytes], timeout_ms: int, from_left: bool, to_left: bool) -> Reply:
    target = args[2]

    def move(name: bytes) -> Reply:
        return move_element(session, name, target, from_left, to_left)

    if session.deny_blocking and list_of(keyspace_of(session).find(session.db, args[1])) is None:
        return None
    return take_or_wait(session, List, [args[1]], timeout_ms, move)
