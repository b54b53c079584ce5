"""Lists to lists, and from the first of several: LMOVE, RPOPLPUSH, LMPOP."""

from __future__ import annotations

from rlite_pubsub.commands.collections.lists import move_element, pop
from rlite_pubsub.engine.arguments.popping import LEFT_RIGHT, is_left, popping
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.replies import NULL_ARRAY, Reply


@command(
    "lmove",
    arity=5,
    flags="write denyoom",
    group="list",
    since="6.2.0",
    categories="list",
    summary="Pop an element from a list, push it to another list and return it",
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
    ),
    key_specs=(
        KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("RW", "INSERT"), ("index", 2), ("range", 0, 1, 0)),
    ),
)
def lmove(session: CommandSession, args: list[bytes]) -> Reply:
    from_left, to_left = is_left(args[3]), is_left(args[4])
    return move_element(session, args[1], args[2], from_left, to_left)


@command(
    "rpoplpush",
    arity=3,
    flags="write denyoom",
    group="list",
    since="1.2.0",
    categories="list",
    summary="Remove the last element in a list, prepend it to another list and return it",
    complexity="O(1)",
    arguments=(
        Arg("source", "key", key_spec=0),
        Arg("destination", "key", key_spec=1),
    ),
    key_specs=(
        KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("RW", "INSERT"), ("index", 2), ("range", 0, 1, 0)),
    ),
    doc_flags=("deprecated",),
    deprecated_since="6.2.0",
    replaced_by="`LMOVE` with the `RIGHT` and `LEFT` arguments",
)
def rpoplpush(session: CommandSession, args: list[bytes]) -> Reply:
    return move_element(session, args[1], args[2], from_left=False, to_left=True)


@command(
    "lmpop",
    arity=-4,
    flags="write movablekeys",
    group="list",
    since="7.0.0",
    categories="list",
    summary="Pop elements from a list",
    complexity="O(N+M) where N is the number of provided keys and M is the number of elements returned.",
    arguments=(
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
    key_specs=(KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("keynum", 0, 1, 1)),),
)
def lmpop(session: CommandSession, args: list[bytes]) -> Reply:
    keys, left, most = popping(args[1:], LEFT_RIGHT)
    for key in keys:
        popped = pop(session, key, most, left=left)
        if popped:
            return [key, popped]
    return NULL_ARRAY
