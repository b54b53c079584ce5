"""Strings that are combined bit by bit: BITOP."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_, or_, xor

from rlite_pubsub.engine.arguments.lookup import find_text, keyspace_of
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.records import RAW
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply

_OPERATIONS: dict[bytes, Callable[[int, int], int]] = {b"and": and_, b"or": or_, b"xor": xor}
_ONE_FOR_NOT = b"ERR BITOP NOT must be called with a single source key."


@command(
    "bitop",
    arity=-4,
    flags="write denyoom",
    group="bitmap",
    since="2.6.0",
    categories="bitmap",
    summary="Perform bitwise operations between strings",
    complexity="O(N)",
    arguments=(
        Arg("operation"),
        Arg("destkey", "key", key_spec=0),
        Arg("key", "key", multiple=True, key_spec=1),
    ),
    key_specs=(
        KeySpec(("OW", "UPDATE"), ("index", 2), ("range", 0, 1, 0)),
        KeySpec(("RO", "ACCESS"), ("index", 3), ("range", -1, 1, 0)),
    ),
)
def bitop(session: CommandSession, args: list[bytes]) -> Reply:
    word, target = args[1].lower(), args[2]
    if word not in _OPERATIONS and word != b"not":
        raise CommandError(SYNTAX)
    if word == b"not" and len(args) != 4:
        raise CommandError(_ONE_FOR_NOT)
    keyspace, notifications, database = keyspace_of(session), session.engine.notifications, session.db
    keyspace.writing()  # what is read is the latest
    texts = [find_text(session, key) for key in args[3:]]
    values = [b"" if text is None else text.value for text in texts]
    length = max(map(len, values))
    if not length:
        if keyspace.delete(database, target):
            notifications.tell("g", b"del", database, target)
        return 0
    numbers = [int.from_bytes(value.ljust(length, b"\0"), "little") for value in values]
    if word == b"not":
        result = numbers[0] ^ ((1 << 8 * length) - 1)
    else:
        result = reduce(_OPERATIONS[word], numbers)
    keyspace.put_string(database, target, result.to_bytes(length, "little"), form=RAW)
    notifications.tell("$", b"set", database, target)
    return length
