"""Places, distances and units among a command's arguments, and how they are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.arguments.floats import floating
from rlite_pubsub.keyspace.geohash import Coordinates, is_on_map
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Encoded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.protocol.replies import Reply

_UNITS_M = {b"m": 1.0, b"km": 1000.0, b"ft": 0.3048, b"mi": 1609.34}
_NO_UNIT = b"ERR unsupported unit provided. please use M, KM, FT, MI"
_NOT_ON_MAP = b"ERR invalid longitude,latitude pair %f,%f"
_PARTS = 10_000
"""A distance is said in this many parts of its unit."""
_LOWEST = -(1 << 63)


def place(words: Sequence[bytes]) -> Coordinates:
    """Longitude and latitude. Raises CommandError where they are no numbers, or not on the map."""
    found = Coordinates(floating(words[0]), floating(words[1]))
    if not is_on_map(found):
        raise CommandError(_NOT_ON_MAP % found)
    return found


def unit_m(word: bytes) -> float:
    """Return how many metres a unit has. Raises CommandError."""
    found = _UNITS_M.get(word.lower())
    if found is None:
        raise CommandError(_NO_UNIT)
    return found


def said_distance(distance: float) -> bytes:
    """Return a distance with four digits after the point; beyond 64 bits it is their lowest number, as in Redis."""
    parts = distance * _PARTS
    number = round(parts) if abs(parts) < -_LOWEST else _LOWEST
    return b"%b%d.%04d" % (b"-" if number < 0 else b"", *divmod(abs(number), _PARTS))


def said_place(session: CommandSession, found: Coordinates) -> Reply:
    """Longitude and latitude, each with 17 digits behind the point at most; in RESP3 as doubles."""
    texts = [b"%.17f" % degrees for degrees in found]
    texts = [text.rstrip(b"0").rstrip(b".") for text in texts]
    return [Encoded(b",%b\r\n" % text) for text in texts] if session.protocol == 3 else texts
