"""Looking for members that are near a place, in a circle or a box: what its commands ask for, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rlite_pubsub.commands.geo.places import place, said_distance, said_place, unit_m
from rlite_pubsub.engine.arguments.floats import floating
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.sorted_set_storing import store_sorted_set
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.keyspace.geohash import Area, Coordinates, box, circle, place_of, whole
from rlite_pubsub.keyspace.sorted_sets import SortedSet
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply

_NO_RADIUS = b"ERR need numeric radius"
_NEGATIVE_RADIUS = b"ERR radius cannot be negative"
_NO_WIDTH = b"ERR need numeric width"
_NO_HEIGHT = b"ERR need numeric height"
_NEGATIVE_BOX = b"ERR height or width cannot be negative"
_NO_MEMBER = b"ERR could not decode requested zset member"
_NO_COUNT = b"ERR COUNT must be > 0"
_ONE_CENTER = b"ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for %b"
_ONE_SHAPE = b"ERR exactly one of BYRADIUS and BYBOX can be specified for %b"
_ANY_OF_HOW_MANY = b"ERR the ANY argument requires COUNT argument"
_STORES_MEMBERS = b"ERR %b is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
_TELLING = frozenset((b"withdist", b"withhash", b"withcoord"))
STORING = (b"store", b"storedist")
"""Options with a key."""


class _Near(NamedTuple):
    """A member that was found."""

    member: bytes
    score: float
    place: Coordinates
    distance_m: float


@dataclass(frozen=True)
class _Shape:
    """The shape of a search around a center: a circle, or a box, if it has a height. In units of this many metres."""

    unit_m: float
    width: float
    """Of a circle its radius."""
    height: float | None = None

    def area(self, center: Coordinates) -> Area:
        if self.height is None:
            return circle(center, self.width, self.unit_m)
        return box(center, self.width, self.height, self.unit_m)


@dataclass(frozen=True)
class Variant:
    """The differences of a command of the family."""

    name: bytes
    """As it was said."""
    may_store: bool = False
    """It has STORE and STOREDIST, with a key."""
    is_free: bool = False
    """Center and shape are options."""
    stores: bool = False
    """It always stores; STOREDIST has no key."""


def radius(words: list[bytes]) -> _Shape:
    """Return a radius and its unit. Raises CommandError."""
    said = floating(words[0], _NO_RADIUS)
    if said < 0:
        raise CommandError(_NEGATIVE_RADIUS)
    return _Shape(unit_m(words[1]), said)


def _box(words: list[bytes]) -> _Shape:
    """Width, height and their unit. Raises CommandError."""
    width, height = floating(words[0], _NO_WIDTH), floating(words[1], _NO_HEIGHT)
    if width < 0 or height < 0:
        raise CommandError(_NEGATIVE_BOX)
    return _Shape(unit_m(words[2]), width, height)


def place_of_member(found: SortedSet, member: bytes) -> Coordinates:
    """Return a member's place. Raises CommandError if there is no such member."""
    score = found.score(member)
    if score is None:
        raise CommandError(_NO_MEMBER)
    return place_of(score)


@dataclass
class Search:
    """The search of a command of the family."""

    center: Coordinates | None = None
    shape: _Shape | None = None
    center_option: bytes | None = None
    """The option that has said it; without the key there may be no center though."""
    target: bytes | None = None
    by_distance: bool = False
    tells: frozenset[bytes] = frozenset()
    order: bytes | None = None
    most: int = 0
    """0: all."""
    any: bool = False
    """The first that are found will do."""

    def read(self, variant: Variant, found: SortedSet | None, rest: list[bytes]) -> None:
        """Add the options. Raises CommandError."""
        at = 0
        while at < len(rest):
            option, left = rest[at].lower(), len(rest) - at - 1
            if option in _TELLING:
                self.tells |= {option}
            elif option == b"any":
                self.any = True
            elif option in (b"asc", b"desc"):
                self.order = option
            elif option == b"count" and left:
                self.most = integer(rest[at + 1])
                if self.most <= 0:
                    raise CommandError(_NO_COUNT)
                at += 1
            elif variant.may_store and option in STORING and left:
                self.target, self.by_distance = rest[at + 1], option == b"storedist"
                at += 1
            elif variant.stores and option == b"storedist":
                self.by_distance = True
            elif variant.is_free:
                at += self._read_area(found, option, rest[at + 1 :])
            else:
                raise CommandError(SYNTAX)
            at += 1
        self._check(variant)

    def _read_area(self, found: SortedSet | None, option: bytes, rest: list[bytes]) -> int:
        """An option that says the center or the shape, not after the other of its sort; how many words it has taken.
        Raises CommandError."""
        left = len(rest)
        if option == b"frommember" and left >= 1 and self.center_option != b"fromlonlat":
            self.center_option = option
            if found is not None:
                self.center = place_of_member(found, rest[0])
            return 1
        if option == b"fromlonlat" and left >= 2 and self.center_option != b"frommember":
            self.center_option = option
            self.center = place(rest[:2])
            return 2
        if option == b"byradius" and left >= 2 and (self.shape is None or self.shape.height is None):
            self.shape = radius(rest)
            return 2
        if option == b"bybox" and left >= 3 and (self.shape is None or self.shape.height is not None):
            self.shape = _box(rest)
            return 3
        raise CommandError(SYNTAX)

    def _check(self, variant: Variant) -> None:
        """Check that the options go together. Raises CommandError."""
        if self.target is not None and self.tells:
            who = b"GEOSEARCHSTORE" if variant.stores else b"STORE option in GEORADIUS"
            raise CommandError(_STORES_MEMBERS % who)
        if variant.is_free and self.center_option is None:
            raise CommandError(_ONE_CENTER % variant.name)
        if variant.is_free and self.shape is None:
            raise CommandError(_ONE_SHAPE % variant.name)
        if self.any and not self.most:
            raise CommandError(_ANY_OF_HOW_MANY)


def _members(found: SortedSet, search: Search, area: Area) -> list[_Near]:
    """Return the members within an area, in the form of the answer."""
    near: list[_Near] = []
    enough = search.most if search.any else 0
    for low, high in area.scores():
        if enough and len(near) >= enough:
            break
        start, stop = found.below(low, included=False), found.below(high, included=False)
        for member, score in found.slice(start, stop):
            there = place_of(score)
            distance_m = area.distance_to(there)
            if distance_m is not None:
                near.append(_Near(member, score, there, distance_m))
                if enough and len(near) >= enough:
                    break
    if search.order == b"desc":
        near.sort(key=lambda one: -one.distance_m)
    elif search.order == b"asc" or (search.most and not search.any):
        near.sort(key=lambda one: one.distance_m)
    return near[: search.most] if search.most else near


def _told(session: CommandSession, one: _Near, search: Search, metres: float) -> Reply:
    if not search.tells:
        return one.member
    told: list[Reply] = [one.member]
    if b"withdist" in search.tells:
        told.append(said_distance(one.distance_m / metres))
    if b"withhash" in search.tells:
        told.append(whole(one.score))
    if b"withcoord" in search.tells:
        told.append(said_place(session, one.place))
    return told


def finish(session: CommandSession, variant: Variant, found: SortedSet | None, search: Search) -> Reply:
    """Look, and answer or store. Nothing is found where there is no key."""
    near: list[_Near] = []
    metres = 1.0
    if found is not None and search.center is not None and search.shape is not None:
        metres = search.shape.unit_m
        near = _members(found, search, search.shape.area(search.center))
    if search.target is None:
        return [_told(session, one, search, metres) for one in near]
    scored = [(one.member, one.distance_m / metres if search.by_distance else one.score) for one in near]
    event = b"geosearchstore" if variant.stores else b"georadiusstore"
    longest = max((len(member) for member, _ in scored), default=0)
    return store_sorted_set(session, search.target, scored, event, longest)
