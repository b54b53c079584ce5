"""The keyspace as a whole: DBSIZE, FLUSHALL, FLUSHDB, SWAPDB.

No command makes a key yet, so every database is empty: there is nothing to count, to flush or to swap.
"""

from __future__ import annotations

from rlite_pubsub.commands.integers import INT_MAX, INT_MIN, integer
from rlite_pubsub.commands.invalidation import invalidate_all
from rlite_pubsub.commands.session import CommandSession
from rlite_pubsub.commands.table import Arg, command
from rlite_pubsub.protocol.errors import DB_OUT_OF_RANGE, SYNTAX, CommandError
from rlite_pubsub.protocol.replies import OK, Reply

_FLUSH_MODE = (
    Arg(
        "async",
        "oneof",
        optional=True,
        arguments=(
            Arg("async", "pure-token", token="ASYNC", since="4.0.0"),
            Arg("sync", "pure-token", token="SYNC", since="6.2.0"),
        ),
    ),
)
_FLUSH_TIPS = ("request_policy:all_shards", "response_policy:all_succeeded")
_FLUSH_HISTORY = (
    ("4.0.0", "Added the `ASYNC` flushing mode modifier."),
    ("6.2.0", "Added the `SYNC` flushing mode modifier."),
)


@command(
    "dbsize",
    arity=1,
    flags="readonly fast",
    group="server",
    since="1.0.0",
    categories="keyspace",
    summary="Return the number of keys in the selected database",
    complexity="O(1)",
    tips=("request_policy:all_shards", "response_policy:agg_sum"),
)
def dbsize(session: CommandSession, args: list[bytes]) -> Reply:
    return 0


@command(
    "flushall",
    arity=-1,
    flags="write",
    group="server",
    since="1.0.0",
    categories="keyspace dangerous",
    summary="Remove all keys from all databases",
    complexity="O(N) where N is the total number of keys in all databases",
    arguments=_FLUSH_MODE,
    tips=_FLUSH_TIPS,
    history=_FLUSH_HISTORY,
)
def flushall(session: CommandSession, args: list[bytes]) -> Reply:
    return _flush(session, args)


@command(
    "flushdb",
    arity=-1,
    flags="write",
    group="server",
    since="1.0.0",
    categories="keyspace dangerous",
    summary="Remove all keys from the current database",
    complexity="O(N) where N is the number of keys in the selected database",
    arguments=_FLUSH_MODE,
    tips=_FLUSH_TIPS,
    history=_FLUSH_HISTORY,
)
def flushdb(session: CommandSession, args: list[bytes]) -> Reply:
    return _flush(session, args)


def _flush(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) > 2 or (len(args) == 2 and args[1].lower() not in (b"async", b"sync")):
        raise CommandError(SYNTAX)
    invalidate_all(session)
    return OK


@command(
    "swapdb",
    arity=3,
    flags="write fast",
    group="server",
    since="4.0.0",
    categories="keyspace dangerous",
    summary="Swaps two Redis databases",
    complexity="O(N) where N is the count of clients watching or blocking on keys from both databases.",
    arguments=(Arg("index1", "integer"), Arg("index2", "integer")),
)
def swapdb(session: CommandSession, args: list[bytes]) -> Reply:
    first = integer(args[1], INT_MIN, INT_MAX, b"ERR invalid first DB index")
    second = integer(args[2], INT_MIN, INT_MAX, b"ERR invalid second DB index")
    databases = range(session.instance.settings["databases"])
    if first not in databases or second not in databases:
        raise CommandError(DB_OUT_OF_RANGE)
    return OK
