"""The timeouts of BLPOP and its kin: seconds, and fractions of them."""

from __future__ import annotations

import math

from rlite_pubsub.engine.arguments.floats import read_float
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.protocol.errors import BAD_TIMEOUT, NEGATIVE_TIMEOUT, CommandError

_NOT_A_FLOAT = b"ERR timeout is not a float or out of range"
_MAX_MS = (1 << 63) - 1


def seconds_as_ms(text: bytes) -> int:
    """Return seconds as milliseconds, rounded up; 0 is forever. A number too large becomes negative, as in Redis.
    Raises CommandError."""
    seconds = read_float(text)
    if seconds is None:
        raise CommandError(_NOT_A_FLOAT)
    if seconds < 0 or seconds * 1000 > _MAX_MS:
        raise CommandError(NEGATIVE_TIMEOUT)
    return math.ceil(seconds * 1000)


def timeout_ms(text: bytes) -> int:
    """Read BLOCK's argument. Raises CommandError."""
    milliseconds = integer(text, refusal=BAD_TIMEOUT)
    if milliseconds < 0:
        raise CommandError(NEGATIVE_TIMEOUT)
    return milliseconds
