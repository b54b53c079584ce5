"""Numbers with a fraction, as C's strtod reads them: decimal or hexadecimal, and the words inf and infinity."""

from __future__ import annotations

import math
import re

from rlite_pubsub.protocol.errors import NOT_A_FLOAT, CommandError, c_string

_NUMBER = re.compile(rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity)", re.IGNORECASE)
_HEXADECIMAL = re.compile(rb"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?\d+)?", re.IGNORECASE)
_SPOKEN = re.compile(rb"[+-]?inf", re.IGNORECASE)
_ZERO = re.compile(rb"[+-]?[0.]*(?:e.*)?", re.IGNORECASE)
_SPACES = b" \t\n\v\f\r"


def _read(text: bytes) -> float | None:
    """None: it is no number."""
    if _NUMBER.fullmatch(text):
        return float(text)
    if _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(text.decode())
        except OverflowError:
            return -math.inf if text.startswith(b"-") else math.inf
    return None


def floating(text: bytes, refusal: bytes = NOT_A_FLOAT) -> float:
    """The number that `text` spells. Raises CommandError if it is none, or too large or too small to be said."""
    number = _read(text)
    if number is None:
        raise CommandError(refusal)
    if math.isinf(number) and not _SPOKEN.match(text):
        raise CommandError(refusal)
    if number == 0 and not _ZERO.fullmatch(text) and b"x" not in text.lower():
        raise CommandError(refusal)
    return number


def loosely_floating(text: bytes) -> float | None:
    """As strtod: blanks may stand before it, nothing is 0, what is too large is infinite. None: it is no number."""
    text = c_string(text).lstrip(_SPACES)
    return _read(text) if text else 0.0
