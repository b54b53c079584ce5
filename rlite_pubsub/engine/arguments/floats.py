"""Numbers with a fraction, as C's strtod reads them: decimal or hexadecimal, and the words inf and infinity."""

from __future__ import annotations

import math
import re
import sys
from typing import Final

from rlite_pubsub.protocol.errors import NOT_A_FLOAT, CommandError, c_string

_NUMBER: Final = re.compile(rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity)", re.IGNORECASE)
_HEXADECIMAL: Final = re.compile(rb"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?\d+)?", re.IGNORECASE)
_SPOKEN: Final = re.compile(rb"[+-]?inf", re.IGNORECASE)
_ZERO: Final = re.compile(rb"[+-]?[0.]*(?:e.*)?", re.IGNORECASE)
_SURE_DIGITS: Final = 300
"""The number of digits up to which an integer is not too large."""
_ENDLESS: Final = {b"-inf": -math.inf, b"+inf": math.inf, b"inf": math.inf}
"""The bounds of ranges that have none."""
_SPACES: Final = b" \t\n\v\f\r"


def read_float(text: bytes) -> float | None:
    """Return the number that the whole text spells; None if it spells none."""
    if _NUMBER.fullmatch(text):
        return float(text)
    if _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(text.decode())
        except OverflowError:
            return -math.inf if text.startswith(b"-") else math.inf
    return None


def floating(text: bytes, refusal: bytes = NOT_A_FLOAT) -> float:
    """Return the number that `text` spells. Raises CommandError if it spells none, or one too large or too small to
    represent."""
    if text.isdigit() and len(text) <= _SURE_DIGITS:  # as most are
        return float(text)
    number = read_float(text)
    if number is None:
        raise CommandError(refusal)
    if math.isinf(number) and not _SPOKEN.match(text):
        raise CommandError(refusal)
    if number == 0 and not _ZERO.fullmatch(text) and b"x" not in text.lower():
        raise CommandError(refusal)
    return number


def loosely_floating(text: bytes) -> float | None:
    """Read a number like strtod: blanks may lead, an empty text is 0, and a number too large is infinite. Returns None
    if it is no number."""
    if text.isdigit() and len(text) <= _SURE_DIGITS:  # as most are
        return float(text)
    endless = _ENDLESS.get(text)
    if endless is not None:
        return endless
    text = c_string(text).lstrip(_SPACES)
    return read_float(text) if text else 0.0


def sortable(text: bytes) -> float | None:
    """Read a number like strtod, but reject one too large or too small for all its digits."""
    number = loosely_floating(text)
    said = text.lstrip(_SPACES)
    if number is None or (math.isinf(number) and not _SPOKEN.match(said)):
        return None
    if abs(number) < sys.float_info.min and not (number == 0 and _ZERO.fullmatch(c_string(said))):
        return number if b"x" in said.lower() else None
    return number
