"""Members within a circle or a box: GEOSEARCH, and GEOSEARCHSTORE, which stores them."""

from __future__ import annotations

from rlite_pubsub.commands.geo.nearby import Search, Variant, finish
from rlite_pubsub.engine.arguments.sorted_set_lookup import find_sorted_set
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.replies import Reply


@command(
    "geosearch",
    arity=-7,
    flags="readonly",
    group="geo",
    since="6.2.0",
    categories="geo",
    summary="Query a sorted set representing a geospatial index to fetch members inside an area of a box or a circle.",
    complexity="O(N+log(M)) where N is the number of elements in the grid-aligned bounding box area around the shape "
    "provided as the filter and M is the number of items inside the shape",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "from",
            "oneof",
            arguments=(
                Arg("member", token="FROMMEMBER"),
                Arg(
                    "longitude_latitude",
                    "block",
                    token="FROMLONLAT",
                    arguments=(
                        Arg("longitude", "double"),
                        Arg("latitude", "double"),
                    ),
                ),
            ),
        ),
        Arg(
            "by",
            "oneof",
            arguments=(
                Arg(
                    "circle",
                    "block",
                    arguments=(
                        Arg("radius", "double", token="BYRADIUS"),
                        Arg(
                            "unit",
                            "oneof",
                            arguments=(
                                Arg("m", "pure-token", token="m"),
                                Arg("km", "pure-token", token="km"),
                                Arg("ft", "pure-token", token="ft"),
                                Arg("mi", "pure-token", token="mi"),
                            ),
                        ),
                    ),
                ),
                Arg(
                    "box",
                    "block",
                    arguments=(
                        Arg("width", "double", token="BYBOX"),
                        Arg("height", "double"),
                        Arg(
                            "unit",
                            "oneof",
                            arguments=(
                                Arg("m", "pure-token", token="m"),
                                Arg("km", "pure-token", token="km"),
                                Arg("ft", "pure-token", token="ft"),
                                Arg("mi", "pure-token", token="mi"),
                            ),
                        ),
                    ),
                ),
            ),
        ),
        Arg(
            "order",
            "oneof",
            optional=True,
            arguments=(
                Arg("asc", "pure-token", token="ASC"),
                Arg("desc", "pure-token", token="DESC"),
            ),
        ),
        Arg(
            "count",
            "block",
            optional=True,
            arguments=(
                Arg("count", "integer", token="COUNT"),
                Arg("any", "pure-token", token="ANY", optional=True),
            ),
        ),
        Arg("withcoord", "pure-token", token="WITHCOORD", optional=True),
        Arg("withdist", "pure-token", token="WITHDIST", optional=True),
        Arg("withhash", "pure-token", token="WITHHASH", optional=True),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("7.0.0", "Added support for uppercase unit names."),),
)
def geosearch(session: CommandSession, args: list[bytes]) -> Reply:
    variant = Variant(args[0], is_free=True)
    found = find_sorted_set(session, args[1])
    search = Search()
    search.read(variant, found, args[2:])
    return finish(session, variant, found, search)


@command(
    "geosearchstore",
    arity=-8,
    flags="write denyoom",
    group="geo",
    since="6.2.0",
    categories="geo",
    summary="Query a sorted set representing a geospatial index to fetch members inside an area of a box or a circle, "
    "and store the result in another key.",
    complexity="O(N+log(M)) where N is the number of elements in the grid-aligned bounding box area around the shape "
    "provided as the filter and M is the number of items inside the shape",
    arguments=(
        Arg("destination", "key", key_spec=0),
        Arg("source", "key", key_spec=1),
        Arg(
            "from",
            "oneof",
            arguments=(
                Arg("member", token="FROMMEMBER"),
                Arg(
                    "longitude_latitude",
                    "block",
                    token="FROMLONLAT",
                    arguments=(
                        Arg("longitude", "double"),
                        Arg("latitude", "double"),
                    ),
                ),
            ),
        ),
        Arg(
            "by",
            "oneof",
            arguments=(
                Arg(
                    "circle",
                    "block",
                    arguments=(
                        Arg("radius", "double", token="BYRADIUS"),
                        Arg(
                            "unit",
                            "oneof",
                            arguments=(
                                Arg("m", "pure-token", token="m"),
                                Arg("km", "pure-token", token="km"),
                                Arg("ft", "pure-token", token="ft"),
                                Arg("mi", "pure-token", token="mi"),
                            ),
                        ),
                    ),
                ),
                Arg(
                    "box",
                    "block",
                    arguments=(
                        Arg("width", "double", token="BYBOX"),
                        Arg("height", "double"),
                        Arg(
                            "unit",
                            "oneof",
                            arguments=(
                                Arg("m", "pure-token", token="m"),
                                Arg("km", "pure-token", token="km"),
                                Arg("ft", "pure-token", token="ft"),
                                Arg("mi", "pure-token", token="mi"),
                            ),
                        ),
                    ),
                ),
            ),
        ),
        Arg(
            "order",
            "oneof",
            optional=True,
            arguments=(
                Arg("asc", "pure-token", token="ASC"),
                Arg("desc", "pure-token", token="DESC"),
            ),
        ),
        Arg(
            "count",
            "block",
            optional=True,
            arguments=(
                Arg("count", "integer", token="COUNT"),
                Arg("any", "pure-token", token="ANY", optional=True),
            ),
        ),
        Arg("storedist", "pure-token", token="STOREDIST", optional=True),
    ),
    key_specs=(
        KeySpec(("OW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("RO", "ACCESS"), ("index", 2), ("range", 0, 1, 0)),
    ),
    history=(("7.0.0", "Added support for uppercase unit names."),),
)
def geosearchstore(session: CommandSession, args: list[bytes]) -> Reply:
    variant = Variant(args[0], is_free=True, stores=True)
    session.engine.keyspace.writing()
    found = find_sorted_set(session, args[2])
    search = Search(target=args[1])
    search.read(variant, found, args[3:])
    return finish(session, variant, found, search)
