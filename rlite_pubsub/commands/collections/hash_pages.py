"""Hashes a page at a time, and at random: HSCAN, HRANDFIELD."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.hash_lookup import find_hash
from rlite_pubsub.engine.arguments.scanning import PAGE_ARGUMENTS, draw_count, page_options, scan_cursor
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.replies import Reply


@command(
    "hscan",
    arity=-3,
    flags="readonly",
    group="hash",
    since="2.8.0",
    categories="hash",
    summary="Incrementally iterate hash fields and associated values",
    complexity="O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor "
    "to return back to 0. N is the number of elements inside the collection..",
    arguments=(
        Arg("key", "key", key_spec=0),
        *PAGE_ARGUMENTS,
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
)
def hscan(session: CommandSession, args: list[bytes]) -> Reply:
    cursor = scan_cursor(args[2])
    found = find_hash(session, args[1])
    if found is None:
        return [b"0", []]
    options = page_options(args[3:], b"novalues")
    next_cursor, fields = found.page(cursor, options.count)
    wanted = [field for field in fields if options.matches(field.name)]
    if b"novalues" in options.words:
        return [b"%d" % next_cursor, [field.name for field in wanted]]
    return [b"%d" % next_cursor, [word for field in wanted for word in field[:2]]]


@command(
    "hrandfield",
    arity=-2,
    flags="readonly",
    group="hash",
    since="6.2.0",
    categories="hash",
    summary="Get one or multiple random fields from a hash",
    complexity="O(N) where N is the number of fields returned",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "options",
            "block",
            optional=True,
            arguments=(
                Arg("count", "integer"),
                Arg("withvalues", "pure-token", token="WITHVALUES", optional=True),
            ),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
)
def hrandfield(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) == 2:
        found = find_hash(session, args[1])
        drawn = [] if found is None else found.any(1)
        return drawn[0].name if drawn else None
    count, with_values = draw_count(args[2], args[3:], b"withvalues")
    found = find_hash(session, args[1])
    if found is None or not count:
        return []
    drawn = found.any(-count) if count < 0 else found.sample(count)
    if not with_values:
        return [field.name for field in drawn]
    if session.protocol == 3:
        return [list(field[:2]) for field in drawn]
    return [word for field in drawn for word in field[:2]]
