"""Sorted sets a page at a time, and at random: ZSCAN, ZRANDMEMBER."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.scanning import PAGE_ARGUMENTS, draw_count, page_options, scan_cursor
from rlite_pubsub.engine.arguments.sorted_set_lookup import answered, find_sorted_set
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.encoder import double
from rlite_pubsub.protocol.replies import Reply


@command(
    "zscan",
    arity=-3,
    flags="readonly",
    group="sorted-set",
    since="2.8.0",
    categories="sortedset",
    summary="Incrementally iterate sorted sets elements and associated scores",
    complexity="O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to "
    "return back to 0. N is the number of elements inside the collection..",
    arguments=(
        Arg("key", "key", key_spec=0),
        *PAGE_ARGUMENTS,
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
)
def zscan(session: CommandSession, args: list[bytes]) -> Reply:
    cursor = scan_cursor(args[2])
    found = find_sorted_set(session, args[1])
    if found is None:
        return [b"0", []]
    options = page_options(args[3:])
    next_cursor, members = found.page(cursor, options.count)
    wanted = [(member, double(score)) for member, score in members if options.matches(member)]
    return [b"%d" % next_cursor, [word for scored in wanted for word in scored]]


@command(
    "zrandmember",
    arity=-2,
    flags="readonly",
    group="sorted-set",
    since="6.2.0",
    categories="sortedset",
    summary="Get one or multiple random elements from a sorted set",
    complexity="O(N) where N is the number of elements returned",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "options",
            "block",
            optional=True,
            arguments=(
                Arg("count", "integer"),
                Arg("withscores", "pure-token", token="WITHSCORES", optional=True),
            ),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
)
def zrandmember(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) == 2:
        found = find_sorted_set(session, args[1])
        return None if found is None else found.any(1)[0][0]
    count, with_scores = draw_count(args[2], args[3:], b"withscores")
    found = find_sorted_set(session, args[1])
    if found is None or not count:
        return []
    drawn = found.any(-count) if count < 0 else found.sample(count)
    return answered(session, drawn, with_scores=with_scores)
