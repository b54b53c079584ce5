"""Integers among a command's arguments, read as strictly as Redis does: no plus, no leading zero, no blank."""

from __future__ import annotations

import re

from rlite_pubsub.protocol.errors import NOT_AN_INTEGER, CommandError

_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,18}")

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1


def integer(text: bytes, low: int = LONG_MIN, high: int = LONG_MAX, refusal: bytes = NOT_AN_INTEGER) -> int:
    """The number that `text` spells; refused if it is none or is not within low..high."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    if number is None or not low <= number <= high:
        raise CommandError(refusal)
    return number
