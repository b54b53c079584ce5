"""Members of sets that are moved, drawn, and read a page at a time: SMOVE, SRANDMEMBER, SSCAN."""

from __future__ import annotations

from rlite_pubsub.commands.collections.sets import drop_if_empty, set_of, tell_set
from rlite_pubsub.engine.arguments.lookup import find, for_change, keyspace_of
from rlite_pubsub.engine.arguments.scanning import PAGE_ARGUMENTS, draw_count, page_options, scan_cursor
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.sets import Set
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply


@command(
    "smove",
    arity=4,
    flags="write fast",
    group="set",
    since="1.0.0",
    categories="set",
    summary="Move a member from one set to another",
    complexity="O(1)",
    arguments=(
        Arg("source", "key", key_spec=0),
        Arg("destination", "key", key_spec=1),
        Arg("member"),
    ),
    key_specs=(
        KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("RW", "INSERT"), ("index", 2), ("range", 0, 1, 0)),
    ),
)
def smove(session: CommandSession, args: list[bytes]) -> Reply:
    source, target = for_change(session, args[1]), for_change(session, args[2])
    if source is None:
        return 0
    giving, taking = set_of(source), set_of(target)
    assert giving is not None
    if giving is taking:
        return int(giving.has(args[3]))
    if not giving.remove([args[3]]):
        return 0
    tell_set(session, b"srem", args[1])
    drop_if_empty(session, giving)
    if taking is None:
        taking = keyspace_of(session).create(Set, session.db, args[2])
    if taking.add([args[3]]):
        tell_set(session, b"sadd", args[2])
    return 1


@command(
    "srandmember",
    arity=-2,
    flags="readonly",
    group="set",
    since="1.0.0",
    categories="set",
    summary="Get one or multiple random members from a set",
    complexity="Without the count argument O(1), otherwise O(N) where N is the absolute value of the passed count.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("count", "integer", optional=True, since="2.6.0"),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
    history=(("2.6.0", "Added the optional `count` argument."),),
)
def srandmember(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) > 3:
        raise CommandError(SYNTAX)
    if len(args) == 2:
        found = set_of(find(session, args[1]))
        return None if found is None else found.any()
    count, _ = draw_count(args[2])
    found = set_of(find(session, args[1]))
    if found is None:
        return []
    return found.sample(count) if count >= 0 else found.draw(-count)


@command(
    "sscan",
    arity=-3,
    flags="readonly",
    group="set",
    since="2.8.0",
    categories="set",
    summary="Incrementally iterate Set elements",
    complexity="O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor "
    "to return back to 0. N is the number of elements inside the collection..",
    arguments=(
        Arg("key", "key", key_spec=0),
        *PAGE_ARGUMENTS,
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
)
def sscan(session: CommandSession, args: list[bytes]) -> Reply:
    cursor = scan_cursor(args[2])
    found = set_of(find(session, args[1]))
    if found is None:
        return [b"0", []]
    options = page_options(args[3:])
    next_cursor, members = found.page(cursor, options.count)
    return [b"%d" % next_cursor, [member for member in members if options.matches(member)]]
