"""Lists to lists, and from the first of several: LMOVE, RPOPLPUSH, LMPOP; and how the waiting ones of these go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rlite_pubsub.commands.collections.lists import drop_if_empty, list_of, pop, tell_list
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import for_change, keyspace_of
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.lists import List
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import NULL_ARRAY, Reply

_NO_KEYS = b"ERR numkeys should be greater than 0"
_NO_COUNT = b"ERR count should be greater than 0"


def is_left(word: bytes) -> bool:
    """LEFT or RIGHT. Raises CommandError."""
    where = word.lower()
    if where not in (b"left", b"right"):
        raise CommandError(SYNTAX)
    return where == b"left"


def move_element(session: CommandSession, source: bytes, target: bytes, from_left: bool, to_left: bool) -> Reply:
    """An element of one list becomes one of another, or of the same one; None: there is nothing to move."""
    giving = list_of(for_change(session, source))
    if giving is None:
        return None
    taking = list_of(for_change(session, target))
    element = giving.pop(1, left=from_left)[0]
    if taking is None:
        taking = keyspace_of(session).create(List, session.db, target)
    taking.push([element], left=to_left)
    tell_list(session, b"lpush" if to_left else b"rpush", target)
    session.engine.notifications.hold()
    tell_list(session, b"lpop" if from_left else b"rpop", source)
    drop_if_empty(session, giving)
    return element


class Popping(NamedTuple):
    """What LMPOP and BLMPOP are told."""

    keys: list[bytes]
    left: bool
    most: int


def popping(words: Sequence[bytes]) -> Popping:
    """Read what stands behind LMPOP, or behind BLMPOP's timeout. Raises CommandError."""
    count = integer(words[0], 1, refusal=_NO_KEYS)
    if count + 1 >= len(words):
        raise CommandError(SYNTAX)
    left = is_left(words[count + 1])
    rest = words[count + 2 :]
    if rest and (len(rest) != 2 or rest[0].lower() != b"count"):
        _refuse(rest)
    most = integer(rest[1], 1, refusal=_NO_COUNT) if rest else 1
    return Popping(list(words[1 : count + 1]), left, most)


def _refuse(rest: Sequence[bytes]) -> None:
    """A COUNT that is none is refused before what stands behind it."""
    if len(rest) > 1 and rest[0].lower() == b"count":
        integer(rest[1], 1, refusal=_NO_COUNT)
    raise CommandError(SYNTAX)


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
    keys, left, most = popping(args[1:])
    for key in keys:
        popped = pop(session, key, most, left=left)
        if popped:
            return [key, popped]
    return NULL_ARRAY
