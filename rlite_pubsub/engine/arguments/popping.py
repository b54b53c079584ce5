"""The end at which elements are taken, and the arguments of LMPOP, ZMPOP and their blocking kin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.protocol.errors import SYNTAX, CommandError

_NO_KEYS = b"ERR numkeys should be greater than 0"
_NO_COUNT = b"ERR count should be greater than 0"


LEFT_RIGHT, MIN_MAX = (b"left", b"right"), (b"min", b"max")


def is_left(word: bytes) -> bool:
    """Return whether the word is LEFT (or MIN). Raises CommandError."""
    return _is_first(word, LEFT_RIGHT)


def _is_first(word: bytes, ends: tuple[bytes, bytes]) -> bool:
    where = word.lower()
    if where not in ends:
        raise CommandError(SYNTAX)
    return where == ends[0]


class Popping(NamedTuple):
    """The arguments of such a command."""

    keys: list[bytes]
    first: bool
    """True for the first of the two ends: left, or the lowest scores."""
    most: int


def popping(words: Sequence[bytes], ends: tuple[bytes, bytes]) -> Popping:
    """Read what follows the command's name, or its timeout. Raises CommandError."""
    count = integer(words[0], 1, refusal=_NO_KEYS)
    if count + 1 >= len(words):
        raise CommandError(SYNTAX)
    first = _is_first(words[count + 1], ends)
    rest = words[count + 2 :]
    if rest and (len(rest) != 2 or rest[0].lower() != b"count"):
        _refuse(rest)
    most = integer(rest[1], 1, refusal=_NO_COUNT) if rest else 1
    return Popping(list(words[1 : count + 1]), first, most)


def _refuse(rest: Sequence[bytes]) -> None:
    """Refuse a bad COUNT before anything after it."""
    if len(rest) > 1 and rest[0].lower() == b"count":
        integer(rest[1], 1, refusal=_NO_COUNT)
    raise CommandError(SYNTAX)
