"""Members within a radius of a place or of another member: GEORADIUS and its kin, which may store what they find."""

from __future__ import annotations

from rlite_pubsub.commands.geo.nearby import STORING, Search, Variant, finish, place_of_member, radius
from rlite_pubsub.commands.geo.places import place
from rlite_pubsub.engine.arguments.sorted_set_lookup import find_sorted_set
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.replies import Reply


def _around_place(session: CommandSession, args: list[bytes], *, may_store: bool) -> Reply:
    variant = Variant(args[0], may_store=may_store)
    _settle(session, variant, args[6:])
    found = find_sorted_set(session, args[1])
    center = place(args[2:4])
    search = Search(center, radius(args[4:6]))
    search.read(variant, found, args[6:])
    return finish(session, variant, found, search)


def _around_member(session: CommandSession, args: list[bytes], *, may_store: bool) -> Reply:
    variant = Variant(args[0], may_store=may_store)
    _settle(session, variant, args[5:])
    found = find_sorted_set(session, args[1])
    search = Search() if found is None else Search(place_of_member(found, args[2]), radius(args[3:5]))
    search.read(variant, found, args[5:])
    return finish(session, variant, found, search)


def _settle(session: CommandSession, variant: Variant, rest: list[bytes]) -> None:
    """Begin to write if the result will be stored, so that the latest state is read."""
    if variant.may_store and any(word.lower() in STORING for word in rest):
        session.engine.keyspace.writing()


@command(
    "georadius",
    arity=-6,
    flags="write denyoom",
    group="geo",
    since="3.2.0",
    categories="geo",
    summary="Query a sorted set representing a geospatial index to fetch members matching a given maximum distance "
    "from a point",
    complexity="O(N+log(M)) where N is the number of elements inside the bounding box of the circular area delimited "
    "by center and radius and M is the number of items inside the index.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("longitude", "double"),
        Arg("latitude", "double"),
        Arg("radius", "double"),
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
        Arg("withcoord", "pure-token", token="WITHCOORD", optional=True),
        Arg("withdist", "pure-token", token="WITHDIST", optional=True),
        Arg("withhash", "pure-token", token="WITHHASH", optional=True),
        Arg(
            "count",
            "block",
            optional=True,
            arguments=(
                Arg("count", "integer", token="COUNT"),
                Arg("any", "pure-token", token="ANY", optional=True, since="6.2.0"),
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
        Arg("key", "key", token="STORE", optional=True, key_spec=1),
        Arg("key", "key", token="STOREDIST", optional=True, key_spec=2),
    ),
    key_specs=(
        KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("OW", "UPDATE"), ("keyword", "STORE", 6), ("range", 0, 1, 0)),
        KeySpec(("OW", "UPDATE"), ("keyword", "STOREDIST", 6), ("range", 0, 1, 0)),
    ),
    history=(("6.2.0", "Added the `ANY` option for `COUNT`."), ("7.0.0", "Added support for uppercase unit names.")),
    doc_flags=("deprecated",),
    deprecated_since="6.2.0",
    replaced_by="`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument",
)
def georadius(session: CommandSession, args: list[bytes]) -> Reply:
    return _around_place(session, args, may_store=True)


@command(
    "georadius_ro",
    arity=-6,
    flags="readonly",
    group="geo",
    since="3.2.10",
    categories="geo",
    summary="A read-only variant for GEORADIUS",
    complexity="O(N+log(M)) where N is the number of elements inside the bounding box of the circular area delimited "
    "by center and radius and M is the number of items inside the index.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("longitude", "double"),
        Arg("latitude", "double"),
        Arg("radius", "double"),
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
        Arg("withcoord", "pure-token", token="WITHCOORD", optional=True),
        Arg("withdist", "pure-token", token="WITHDIST", optional=True),
        Arg("withhash", "pure-token", token="WITHHASH", optional=True),
        Arg(
            "count",
            "block",
            optional=True,
            arguments=(
                Arg("count", "integer", token="COUNT"),
                Arg("any", "pure-token", token="ANY", optional=True, since="6.2.0"),
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
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("6.2.0", "Added the `ANY` option for `COUNT`."),),
    doc_flags=("deprecated",),
    deprecated_since="6.2.0",
    replaced_by="`GEOSEARCH` with the `BYRADIUS` argument",
)
def georadius_ro(session: CommandSession, args: list[bytes]) -> Reply:
    return _around_place(session, args, may_store=False)


@command(
    "georadiusbymember",
    arity=-5,
    flags="write denyoom",
    group="geo",
    since="3.2.0",
    categories="geo",
    summary="Query a sorted set representing a geospatial index to fetch members matching a given maximum distance "
    "from a member",
    complexity="O(N+log(M)) where N is the number of elements inside the bounding box of the circular area delimited "
    "by center and radius and M is the number of items inside the index.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("member"),
        Arg("radius", "double"),
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
        Arg("withcoord", "pure-token", token="WITHCOORD", optional=True),
        Arg("withdist", "pure-token", token="WITHDIST", optional=True),
        Arg("withhash", "pure-token", token="WITHHASH", optional=True),
        Arg(
            "count",
            "block",
            optional=True,
            arguments=(
                Arg("count", "integer", token="COUNT"),
                Arg("any", "pure-token", token="ANY", optional=True),
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
        Arg("key", "key", token="STORE", optional=True, key_spec=1),
        Arg("key", "key", token="STOREDIST", optional=True, key_spec=2),
    ),
    key_specs=(
        KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("OW", "UPDATE"), ("keyword", "STORE", 5), ("range", 0, 1, 0)),
        KeySpec(("OW", "UPDATE"), ("keyword", "STOREDIST", 5), ("range", 0, 1, 0)),
    ),
    history=(("7.0.0", "Added support for uppercase unit names."),),
    doc_flags=("deprecated",),
    deprecated_since="6.2.0",
    replaced_by="`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
)
def georadiusbymember(session: CommandSession, args: list[bytes]) -> Reply:
    return _around_member(session, args, may_store=True)


@command(
    "georadiusbymember_ro",
    arity=-5,
    flags="readonly",
    group="geo",
    since="3.2.10",
    categories="geo",
    summary="A read-only variant for GEORADIUSBYMEMBER",
    complexity="O(N+log(M)) where N is the number of elements inside the bounding box of the circular area delimited "
    "by center and radius and M is the number of items inside the index.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("member"),
        Arg("radius", "double"),
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
        Arg("withcoord", "pure-token", token="WITHCOORD", optional=True),
        Arg("withdist", "pure-token", token="WITHDIST", optional=True),
        Arg("withhash", "pure-token", token="WITHHASH", optional=True),
        Arg(
            "count",
            "block",
            optional=True,
            arguments=(
                Arg("count", "integer", token="COUNT"),
                Arg("any", "pure-token", token="ANY", optional=True),
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
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    doc_flags=("deprecated",),
    deprecated_since="6.2.0",
    replaced_by="`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments",
)
def georadiusbymember_ro(session: CommandSession, args: list[bytes]) -> Reply:
    return _around_member(session, args, may_store=False)
