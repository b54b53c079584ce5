"""Fields of hashes among a command's arguments, and when they expire (Redis 7.4 and 8.0)."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.arguments.set_options import invalid_expiry
from rlite_pubsub.protocol.errors import CommandError

LATEST_MS = 0x0000FFFFFFFFFFFE >> 2
"""Redis has 46 bits for when a field expires."""
_NO_FIELDS = b"ERR Mandatory argument FIELDS is missing or not at the right position"
_OTHER_COUNT = b"ERR The `numfields` parameter must match the number of arguments"
_NEGATIVE = b"ERR invalid expire time, must be >= 0"
NOT_POSITIVE = b"ERR Number of fields must be a positive integer"


def fields_at(args: list[bytes], at: int, refusal: bytes = NOT_POSITIVE) -> list[bytes]:
    """Return the fields after FIELDS and their number, which must stand at this place. Raises CommandError."""
    if at >= len(args) or args[at].lower() != b"fields":
        raise CommandError(_NO_FIELDS)
    count = integer(args[at + 1] if at + 1 < len(args) else b"", 1, LONG_MAX, refusal)
    found = args[at + 2 :]
    if count != len(found):
        raise CommandError(_OTHER_COUNT)
    return found


def field_due_ms(command: bytes, text: bytes, unit_ms: int, base_ms: int) -> int:
    """Return the point in time, in ms, that is this many units past the base. Raises CommandError."""
    number = integer(text)
    if number < 0:
        raise CommandError(_NEGATIVE)
    if number > LATEST_MS // unit_ms or number * unit_ms > LATEST_MS - base_ms:
        raise invalid_expiry(command)
    return number * unit_ms + base_ms
