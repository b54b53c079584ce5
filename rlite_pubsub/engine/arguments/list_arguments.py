"""Ends of lists among a command's arguments, and what LMPOP and BLMPOP are told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.protocol.errors import SYNTAX, CommandError

_NO_KEYS = b"ERR numkeys should be greater than 0"
_NO_COUNT = b"ERR count should be greater than 0"


def is_left(word: bytes) -> bool:
    """LEFT or RIGHT. Raises CommandError."""
    where = word.lower()
    if where not in (b"left", b"right"):
        raise CommandError(SYNTAX)
    return where == b"left"


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
