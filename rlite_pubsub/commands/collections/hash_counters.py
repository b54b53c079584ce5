"""Hashes whose values are numbers: HINCRBY, HINCRBYFLOAT."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from rlite_pubsub.engine.arguments.hash_lookup import hash_or_new, tell_hash
from rlite_pubsub.engine.arguments.integers import LONG_MAX, LONG_MIN, integer
from rlite_pubsub.engine.arguments.long_double import Infinite, printed, read, rounded
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Reply

_NOT_AN_INTEGER: Final = b"ERR hash value is not an integer"
_NOT_A_FLOAT: Final = b"ERR hash value is not a float"


@command(
    "hincrby",
    arity=4,
    flags="write denyoom fast",
    group="hash",
    since="2.0.0",
    categories="hash",
    summary="Increment the integer value of a hash field by the given number",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("field"),
        Arg("increment", "integer"),
    ),
    key_specs=(KeySpec(("RW", "ACCESS", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def hincrby(session: CommandSession, args: list[bytes]) -> Reply:
    increment = integer(args[3])
    found = hash_or_new(session, args[1])
    before = found.get(args[2])
    value = increment if before is None else integer(before, refusal=_NOT_AN_INTEGER) + increment
    if not LONG_MIN <= value <= LONG_MAX:
        raise CommandError(b"ERR increment or decrement would overflow")
    found.put([args[2], b"%d" % value], keeps_dues=True)
    session.engine.notifications.hold()
    tell_hash(session, b"hincrby", args[1])
    return value


@command(
    "hincrbyfloat",
    arity=4,
    flags="write denyoom fast",
    group="hash",
    since="2.6.0",
    categories="hash",
    summary="Increment the float value of a hash field by the given amount",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("field"),
        Arg("increment", "double"),
    ),
    key_specs=(KeySpec(("RW", "ACCESS", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def hincrbyfloat(session: CommandSession, args: list[bytes]) -> Reply:
    increment = read(args[3])
    if increment is None:
        raise CommandError(b"ERR value is NaN or Infinity")
    found = hash_or_new(session, args[1])
    before = _number(found.get(args[2]))
    try:
        if before is None:
            raise Infinite
        value = printed(rounded(before + increment))
    except Infinite:
        raise CommandError(b"ERR increment would produce NaN or Infinity") from None
    found.put([args[2], value], keeps_dues=True)
    session.engine.notifications.hold()
    tell_hash(session, b"hincrbyfloat", args[1])
    return value


def _number(text: bytes | None) -> Fraction | None:
    """Return a number; None for an infinite one."""
    try:
        return read(b"0" if text is None else text)
    except CommandError:
        raise CommandError(_NOT_A_FLOAT) from None
