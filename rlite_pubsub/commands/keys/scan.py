"""Names of keys: KEYS, SCAN, RANDOMKEY."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.lookup import find, keyspace_of, type_name
from rlite_pubsub.engine.arguments.scanning import page_options, scan_cursor
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, command
from rlite_pubsub.protocol.glob import Glob
from rlite_pubsub.protocol.replies import Reply

_ALL = b"*"
_TYPE = frozenset((b"type",))


@command(
    "keys",
    arity=2,
    flags="readonly",
    group="generic",
    since="1.0.0",
    categories="keyspace dangerous",
    summary="Find all keys matching the given pattern",
    complexity="O(N) with N being the number of keys in the database, under the assumption that the key names in the "
    "database and the given pattern have limited length.",
    arguments=(Arg("pattern", "pattern"),),
    tips=("request_policy:all_shards", "nondeterministic_output_order"),
)
def keys(session: CommandSession, args: list[bytes]) -> Reply:
    names = [name for name, _ in keyspace_of(session).databases.walk(session.db)]
    if args[1] == _ALL:
        return names
    matches = Glob(args[1]).matches
    return [name for name in names if matches(name)]


@command(
    "scan",
    arity=-2,
    flags="readonly touches_arbitrary_keys",
    group="generic",
    since="2.8.0",
    categories="keyspace",
    summary="Incrementally iterate the keys space",
    complexity="O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to "
    "return back to 0. N is the number of elements inside the collection.",
    arguments=(
        Arg("cursor", "integer"),
        Arg("pattern", "pattern", token="MATCH", optional=True),
        Arg("count", "integer", token="COUNT", optional=True),
        Arg("type", token="TYPE", optional=True, since="6.0.0"),
    ),
    tips=("nondeterministic_output", "request_policy:special"),
    history=(("6.0.0", "Added the `TYPE` subcommand."),),
)
def scan(session: CommandSession, args: list[bytes]) -> Reply:
    cursor = scan_cursor(args[1])
    options = page_options(args[2:], valued=_TYPE)
    next_cursor, found, over = keyspace_of(session).databases.scan(session.db, cursor, options.count)
    if options.has_pattern:
        found = [one for one in found if options.matches(one[0])]
        over = [name for name in over if options.matches(name)]
    wanted = options.values.get(b"type")
    for name in over:
        _notice(session, name, counts=wanted is not None)
    if wanted is not None:
        wanted = wanted.lower()
        session.engine.stats.keyspace_hits += len(found)
        found = [one for one in found if type_name(one[1]) == wanted]
    return [b"%d" % next_cursor, [name for name, _ in found]]


def _notice(session: CommandSession, name: bytes, *, counts: bool) -> None:
    """The key's time is over: looking for it removes it. For its type Redis reads it, which counts as a miss."""
    if counts:
        find(session, name, touch=False)
    else:
        keyspace_of(session).find(session.db, name)


@command(
    "randomkey",
    arity=1,
    flags="readonly touches_arbitrary_keys",
    group="generic",
    since="1.0.0",
    categories="keyspace",
    summary="Return a random key from the keyspace",
    complexity="O(1)",
    tips=("request_policy:all_shards", "nondeterministic_output"),
)
def randomkey(session: CommandSession, args: list[bytes]) -> Reply:
    found, over = keyspace_of(session).databases.random(session.db)
    for name in set(over):
        _notice(session, name, counts=False)
    return found
