"""Places on earth as numbers: a sorted set's scores, whose order keeps near places together.

Longitude and latitude are cut into 2**26 strips each, and the bits of the two strips' numbers alternate in one number
of 52 bits, longitude first. The first 2n bits of it name one of the 4**n cells of the earth; all places in a cell are
one range of scores. Whatever is near a place is in its cell, of a size that fits the distance, or in one of the eight
around it.

All numbers are redis-server's to the last digit: the same steps in floating point, in the same order.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from mypy_extensions import i64

STEPS: Final = 26
"""Bits of each of the two."""
_EARTH_RADIUS_M: Final = 6372797.560856
_MERCATOR_M: Final = 20037726.37
_RADIANS: Final = math.pi / 180.0
_WORD: Final = (1 << 64) - 1
_HALF_WORD: Final = (1 << 32) - 1
_FAR_NORTH, _FARTHEST_NORTH = 66, 80
"""From these latitudes on cells are narrow."""
_ALPHABET: Final = b"0123456789bcdefghjkmnpqrstuvwxyz"
_LETTERS, _LETTER_BITS = 11, 5


class Coordinates(NamedTuple):
    """A place in degrees."""

    longitude: float
    latitude: float


class _Span(NamedTuple):
    low: float
    high: float

    def strip(self, degrees: float, steps: int) -> int:
        """Return the number of the strip; the upper end is in the one after the last."""
        return int((degrees - self.low) / (self.high - self.low) * (1 << steps))

    def edges(self, strip: int, steps: int) -> _Span:
        """Return where a strip begins and ends."""
        strips, width = 1 << steps, self.high - self.low
        behind = (strip + 1) & _HALF_WORD
        return _Span(self.low + strip / strips * width, self.low + behind / strips * width)

    def middle(self, strip: int) -> float:
        """Return the middle of one of the finest strips; never outside of it."""
        edges = self.edges(strip, STEPS)
        return max(self.low, min((edges.low + edges.high) / 2, self.high))


_EASTERN: Final = 180.0
_NORTHERN: Final = 85.05112878
_STRIPS: Final = 1 << STEPS
_LONGITUDES: Final = _Span(-_EASTERN, _EASTERN)
_LATITUDES: Final = _Span(-_NORTHERN, _NORTHERN)
"""The poles are not on the map."""
_ALL_LATITUDES: Final = _Span(-90.0, 90.0)


class _Cell(NamedTuple):
    bits: int
    steps: int

    @property
    def longitudes(self) -> _Span:
        return _LONGITUDES.edges(_strips(self.bits)[0], self.steps)

    @property
    def latitudes(self) -> _Span:
        return _LATITUDES.edges(_strips(self.bits)[1], self.steps)

    @property
    def scores(self) -> tuple[float, float]:
        """The range of its scores: from the first on, up to the second."""
        rest = 2 * (STEPS - self.steps)
        return float(self.bits << rest & _WORD), float((self.bits + 1) << rest & _WORD)

    def beside(self, east: int, north: int) -> _Cell:
        """Return the cell this many cells to the east and the north, around the earth."""
        longitude, latitude = _strips(self.bits)
        last = (1 << self.steps) - 1
        longitude = longitude + east & last if east else longitude
        latitude = latitude + north & last if north else latitude
        return _Cell(_interleaved(longitude, latitude), self.steps)


def _interleaved(longitude: int, latitude: int) -> int:
    """Interleave the bits."""
    east, north = _apart(longitude), _apart(latitude)
    return int(east << 1 | north)


def _apart(strip: i64) -> i64:
    """Move the bits of a number of 26 bits, at most, two places apart."""
    strip = (strip | strip << 16) & 0x0000FFFF0000FFFF
    strip = (strip | strip << 8) & 0x00FF00FF00FF00FF
    strip = (strip | strip << 4) & 0x0F0F0F0F0F0F0F0F
    strip = (strip | strip << 2) & 0x3333333333333333
    return (strip | strip << 1) & 0x5555555555555555


def _strips(bits: int) -> tuple[int, int]:
    """Return the strips of longitude and of latitude."""
    digits = f"{bits:064b}"
    return int(digits[::2], 2), int(digits[1::2], 2)


def is_on_map(place: Coordinates) -> bool:
    """Return whether a place has a score."""
    return (
        _LONGITUDES.low <= place.longitude <= _LONGITUDES.high and _LATITUDES.low <= place.latitude <= _LATITUDES.high
    )


def score_of(place: Coordinates) -> float:
    """Return the score of a place that is on the map."""
    longitude, latitude = place
    east = int((longitude + _EASTERN) / (2 * _EASTERN) * _STRIPS)  # as `strip`, without the call
    north = int((latitude + _NORTHERN) / (2 * _NORTHERN) * _STRIPS)
    return float(_interleaved(east, north))


def _cell_of(place: Coordinates, steps: int) -> _Cell:
    strips = _LONGITUDES.strip(place.longitude, steps), _LATITUDES.strip(place.latitude, steps)
    return _Cell(_interleaved(*strips), steps)


def place_of(score: float) -> Coordinates:
    """Return the place of a score. Any score is a place: one without 52 bits is taken as C on x86-64 converts it to
    64."""
    longitude, latitude = _strips(_bits(score))
    return Coordinates(_LONGITUDES.middle(longitude), _LATITUDES.middle(latitude))


def _bits(score: float) -> int:
    if score >= 1 << 64:
        return 0
    if score < -(1 << 63):
        return 1 << 63
    return int(score) & _WORD


def whole(score: float) -> int:
    """Return a score as an integer of 64 bits; the lowest, if it is out of range."""
    return int(score) if -(1 << 63) <= score < 1 << 63 else -(1 << 63)


def text_of(place: Coordinates) -> bytes:
    """Return the geohash of other programs: letters, and latitudes up to the poles."""
    strips = _LONGITUDES.strip(place.longitude, STEPS), _ALL_LATITUDES.strip(place.latitude, STEPS)
    bits = _interleaved(*strips)
    shifts = range(2 * STEPS - _LETTER_BITS, -1, -_LETTER_BITS)
    letters = bytes(_ALPHABET[bits >> shift & len(_ALPHABET) - 1] for shift in shifts)
    return letters.ljust(_LETTERS, _ALPHABET[:1])  # 52 bits have only ten


# -- distances


def distance(one: Coordinates, other: Coordinates) -> float:
    """Return the great-circle distance in metres."""
    v = math.sin((other.longitude * _RADIANS - one.longitude * _RADIANS) / 2)
    if v == 0.0:
        return _north_distance(one, other)
    north, other_north = one.latitude * _RADIANS, other.latitude * _RADIANS
    u = math.sin((other_north - north) / 2)
    a = u * u + math.cos(north) * math.cos(other_north) * v * v
    return 2.0 * _EARTH_RADIUS_M * math.asin(math.sqrt(min(a, 1.0)))


def _north_distance(one: Coordinates, other: Coordinates) -> float:
    return _EARTH_RADIUS_M * abs(other.latitude * _RADIANS - one.latitude * _RADIANS)


class Area(NamedTuple):
    """The area around a place: a circle, or a box, as wide to the west as to the east. In metres."""

    center: Coordinates
    half_width: float
    half_height: float
    reach: float
    """The distance from the center to the farthest point."""
    is_box: bool

    def distance_to(self, place: Coordinates) -> float | None:
        """Return the distance from the center; None if the place is not within."""
        if self.is_box:
            if _north_distance(place, self.center) > self.half_height:
                return None
            if distance(place, Coordinates(self.center.longitude, place.latitude)) > self.half_width:
                return None
            return distance(self.center, place)
        found = distance(self.center, place)
        return None if found > self.reach else found

    def scores(self) -> list[tuple[float, float]]:
        """Return ranges of scores, each from the first on, up to the second, that cover the area."""
        south_west, north_east = self._corners()
        steps = _steps_for(self.reach, self.center.latitude)
        middle = _cell_of(self.center, steps)
        if steps > 1 and not _covers(middle, south_west, north_east):
            steps -= 1
            middle = _cell_of(self.center, steps)
        ranges = [middle.scores]
        around = _around(middle, south_west, north_east) if steps > 1 else _ALL_AROUND
        last: _Cell | None = None
        for east, north in around:
            cell = middle.beside(east, north)
            if cell != last:  # of very large ones two may be the same
                ranges.append(cell.scores)
                last = cell
        return ranges

    def _corners(self) -> tuple[Coordinates, Coordinates]:
        """Return the south-western and the north-eastern corner; not numbers, if the area has none."""
        longitude, latitude = self.center
        height = self.half_height / _EARTH_RADIUS_M / _RADIANS
        nearer_pole = latitude - height if latitude < 0 else latitude + height
        width = self.half_width / _EARTH_RADIUS_M / _cosine(nearer_pole * _RADIANS) / _RADIANS
        return Coordinates(longitude - width, latitude - height), Coordinates(longitude + width, latitude + height)


def circle(center: Coordinates, radius: float, unit_m: float) -> Area:
    """Return a circle; the radius is in units of this many metres."""
    reach = radius * unit_m
    return Area(center, reach, reach, reach, False)


def box(center: Coordinates, width: float, height: float, unit_m: float) -> Area:
    """Return a box; width and height are in units of this many metres."""
    half_width, half_height = width / 2, height / 2
    reach = math.sqrt(half_width * half_width + half_height * half_height) * unit_m
    return Area(center, width * unit_m / 2, height * unit_m / 2, reach, True)


def _cosine(angle: float) -> float:
    return math.cos(angle) if math.isfinite(angle) else math.nan


def _steps_for(reach: float, latitude: float) -> int:
    """Return the steps for cells so small that one and its neighbours cover an area, and not much more."""
    if reach == 0:
        return STEPS
    steps = -1
    while reach < _MERCATOR_M and steps <= STEPS + 2:
        reach *= 2
        steps += 1
    steps -= (abs(latitude) > _FAR_NORTH) + (abs(latitude) > _FARTHEST_NORTH)
    return max(1, min(steps, STEPS))


def _covers(middle: _Cell, south_west: Coordinates, north_east: Coordinates) -> bool:
    """Return whether an area is within this cell and its neighbours."""
    return not (
        middle.beside(0, 1).latitudes.high < north_east.latitude
        or middle.beside(0, -1).latitudes.low > south_west.latitude
        or middle.beside(1, 0).longitudes.high < north_east.longitude
        or middle.beside(-1, 0).longitudes.low > south_west.longitude
    )


_ALL_AROUND: Final = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1))
"""To the east, to the north."""


def _around(middle: _Cell, south_west: Coordinates, north_east: Coordinates) -> tuple[tuple[int, int], ...]:
    """Return the neighbours that overlap an area."""
    longitudes, latitudes = middle.longitudes, middle.latitudes
    useless_east = {1: longitudes.high > north_east.longitude, -1: longitudes.low < south_west.longitude, 0: False}
    useless_north = {1: latitudes.high > north_east.latitude, -1: latitudes.low < south_west.latitude, 0: False}
    return tuple((east, north) for east, north in _ALL_AROUND if not (useless_east[east] or useless_north[north]))
