"""Whole databases: DBSIZE, FLUSHALL, FLUSHDB, SWAPDB.

A flush gives the database a new place in the store, and a swap exchanges two places; so SYNC and ASYNC are the same.
"""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import INT_MAX, INT_MIN, integer
from rlite_pubsub.engine.arguments.lookup import keyspace_of
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.shards.restrictions import check_unsharded
from rlite_pubsub.engine.table import Arg, command
from rlite_pubsub.protocol.errors import DB_OUT_OF_RANGE, SYNTAX, CommandError
from rlite_pubsub.protocol.replies import OK, Reply


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
    return keyspace_of(session).databases.size(session.db)


@command(
    "flushall",
    arity=-1,
    flags="write",
    group="server",
    since="1.0.0",
    categories="keyspace dangerous",
    summary="Remove all keys from all databases",
    complexity="O(N) where N is the total number of keys in all databases",
    arguments=(
        Arg(
            "async",
            "oneof",
            optional=True,
            arguments=(
                Arg("async", "pure-token", token="ASYNC", since="4.0.0"),
                Arg("sync", "pure-token", token="SYNC", since="6.2.0"),
            ),
        ),
    ),
    tips=("request_policy:all_shards", "response_policy:all_succeeded"),
    history=(
        ("4.0.0", "Added the `ASYNC` flushing mode modifier."),
        ("6.2.0", "Added the `SYNC` flushing mode modifier."),
    ),
)
def flushall(session: CommandSession, args: list[bytes]) -> Reply:
    return _flush(session, args, everything=True)


@command(
    "flushdb",
    arity=-1,
    flags="write",
    group="server",
    since="1.0.0",
    categories="keyspace dangerous",
    summary="Remove all keys from the current database",
    complexity="O(N) where N is the number of keys in the selected database",
    arguments=(
        Arg(
            "async",
            "oneof",
            optional=True,
            arguments=(
                Arg("async", "pure-token", token="ASYNC", since="4.0.0"),
                Arg("sync", "pure-token", token="SYNC", since="6.2.0"),
            ),
        ),
    ),
    tips=("request_policy:all_shards", "response_policy:all_succeeded"),
    history=(
        ("4.0.0", "Added the `ASYNC` flushing mode modifier."),
        ("6.2.0", "Added the `SYNC` flushing mode modifier."),
    ),
)
def flushdb(session: CommandSession, args: list[bytes]) -> Reply:
    return _flush(session, args, everything=False)


def _flush(session: CommandSession, args: list[bytes], *, everything: bool) -> Reply:
    if len(args) > 2 or (len(args) == 2 and args[1].lower() not in (b"async", b"sync")):
        raise CommandError(SYNTAX)
    engine, keyspace = session.engine, keyspace_of(session)
    keyspace.writing()
    databases = keyspace.databases.numbers() if everything else [session.db]
    for database in databases:
        engine.watching.flushed(keyspace, database)
        keyspace.databases.flush(database)
    engine.tracked.flushed()
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
    check_unsharded(session, b"SWAPDB is")
    first = integer(args[1], INT_MIN, INT_MAX, b"ERR invalid first DB index")
    second = integer(args[2], INT_MIN, INT_MAX, b"ERR invalid second DB index")
    databases = range(session.engine.settings["databases"])
    if first not in databases or second not in databases:
        raise CommandError(DB_OUT_OF_RANGE)
    if first != second:
        keyspace = keyspace_of(session)
        keyspace.writing()
        session.engine.watching.swapped(keyspace, first, second)
        keyspace.databases.swap(first, second)
        session.engine.tracked.elsewhere.swapped(first, second)
    return OK
