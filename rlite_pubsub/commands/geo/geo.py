"""Sorted sets of places: members that are put on the map, and asked where they are."""

from __future__ import annotations

from rlite_pubsub.commands.geo.places import place, said_distance, said_place, unit_m
from rlite_pubsub.engine.arguments.sorted_set_lookup import find_sorted_set
from rlite_pubsub.engine.arguments.sorted_set_storing import put
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace import geohash
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import NULL_ARRAY, Reply

_OPTIONS = frozenset((b"nx", b"xx", b"ch"))


@command(
    "geoadd",
    arity=-5,
    flags="write denyoom",
    group="geo",
    since="3.2.0",
    categories="geo",
    summary="Add one or more geospatial items in the geospatial index represented using a sorted set",
    complexity="O(log(N)) for each item added, where N is the number of elements in the sorted set.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "condition",
            "oneof",
            optional=True,
            since="6.2.0",
            arguments=(
                Arg("nx", "pure-token", token="NX"),
                Arg("xx", "pure-token", token="XX"),
            ),
        ),
        Arg("change", "pure-token", token="CH", optional=True, since="6.2.0"),
        Arg(
            "longitude_latitude_member",
            "block",
            multiple=True,
            arguments=(
                Arg("longitude", "double"),
                Arg("latitude", "double"),
                Arg("member"),
            ),
        ),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("6.2.0", "Added the `CH`, `NX` and `XX` options."),),
)
def geoadd(session: CommandSession, args: list[bytes]) -> Reply:
    at = 2
    while at < len(args) and args[at].lower() in _OPTIONS:
        at += 1
    options = frozenset(word.lower() for word in args[2:at])
    if (len(args) - at) % 3 or options >= {b"nx", b"xx"}:
        raise CommandError(SYNTAX)
    scores = [geohash.score_of(place(words)) for words in zip(args[at::3], args[at + 1 :: 3], strict=True)]
    if not scores:
        raise CommandError(SYNTAX)
    return put(session, args[1], options, scores, args[at + 2 :: 3]).counted(options)


@command(
    "geodist",
    arity=-4,
    flags="readonly",
    group="geo",
    since="3.2.0",
    categories="geo",
    summary="Returns the distance between two members of a geospatial index",
    complexity="O(log(N))",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("member1"),
        Arg("member2"),
        Arg(
            "unit",
            "oneof",
            optional=True,
            arguments=(
                Arg("m", "pure-token", token="m"),
                Arg("km", "pure-token", token="km"),
                Arg("ft", "pure-token", token="ft"),
                Arg("mi", "pure-token", token="mi"),
            ),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def geodist(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) > 5:
        raise CommandError(SYNTAX)
    metres = unit_m(args[4]) if len(args) == 5 else 1.0
    found = find_sorted_set(session, args[1])
    if found is None:
        return None
    one, other = found.score(args[2]), found.score(args[3])
    if one is None or other is None:
        return None
    return said_distance(geohash.distance(geohash.place_of(one), geohash.place_of(other)) / metres)


@command(
    "geohash",
    arity=-2,
    flags="readonly",
    group="geo",
    since="3.2.0",
    categories="geo",
    summary="Returns members of a geospatial index as standard geohash strings",
    complexity="O(log(N)) for each member requested, where N is the number of elements in the sorted set.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("member", multiple=True),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def geohash_(session: CommandSession, args: list[bytes]) -> Reply:
    found = find_sorted_set(session, args[1])
    scores = [None if found is None else found.score(member) for member in args[2:]]
    return [None if score is None else geohash.text_of(geohash.place_of(score)) for score in scores]


@command(
    "geopos",
    arity=-2,
    flags="readonly",
    group="geo",
    since="3.2.0",
    categories="geo",
    summary="Returns longitude and latitude of members of a geospatial index",
    complexity="O(N) where N is the number of members requested.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("member", multiple=True),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def geopos(session: CommandSession, args: list[bytes]) -> Reply:
    found = find_sorted_set(session, args[1])
    scores = [None if found is None else found.score(member) for member in args[2:]]
    return [NULL_ARRAY if score is None else said_place(session, geohash.place_of(score)) for score in scores]
