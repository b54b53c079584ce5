"""SHARD.*: a store as a member of a sharded store. An extension.

Whoever founds or changes a whole (`rlite-pubsub shard`) tells each member by SHARD.LEARN; members that hear of it late
send clients to where the slots were, and these send them on.
"""

from __future__ import annotations

from rlite_pubsub.engine.arguments.help import usage
from rlite_pubsub.engine.arguments.lookup import keyspace_of
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.shards.directory import read
from rlite_pubsub.engine.shards.slots import slot_of
from rlite_pubsub.engine.table import Arg, command
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Reply

SINCE = "1.0.0"
_SEVERAL = b"ERR a member of a sharded store has keys only in database 0, and this store has some in others"
_WORKERS = b"ERR a member of a sharded store is served by one process: set workers to 1"
_REPLICA = b"ERR a replica can't be a member of a sharded store"


@command(
    "shard.id",
    arity=1,
    flags="admin noscript",
    group="cluster",
    since=SINCE,
    summary="Show the id by which other members know this store, and the slots in which it has keys",
    complexity="O(N) where N is the number of keys",
    ours=True,
)
def shard_id(session: CommandSession, args: list[bytes]) -> Reply:
    """[id, [slot, ...]]. It refuses where the store can't be a member."""
    engine = session.engine
    if engine.settings["workers"] > 1:
        raise CommandError(_WORKERS)
    if engine.replication.master is not None:
        raise CommandError(_REPLICA)
    databases = keyspace_of(session).databases
    if any(size and number for number, (size, _) in databases.sizes().items()):
        raise CommandError(_SEVERAL)
    slots: list[Reply] = [*sorted({slot_of(name) for name, _ in databases.walk(0)})]
    return [engine.sharding.settle_own(), slots]


@command(
    "shard.directory",
    arity=1,
    flags="admin noscript",
    group="cluster",
    since=SINCE,
    summary="Show which member has which slots, as this one knows it",
    complexity="O(N) where N is the number of runs of slots",
    ours=True,
)
def shard_directory(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer the directory as JSON; null if the store is not sharded."""
    directory = session.engine.sharding.directory
    return None if directory is None else directory.text


@command(
    "shard.learn",
    arity=2,
    flags="admin noscript no_multi",
    group="cluster",
    since=SINCE,
    summary="Tell a member which member has which slots",
    complexity="O(N) where N is the number of runs of slots",
    arguments=(Arg("directory"),),
    ours=True,
)
def shard_learn(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer 1, or 0 if all of it was known."""
    try:
        news = read(args[1])
    except ValueError as failure:
        raise CommandError(b"ERR " + str(failure).encode()) from failure
    return int(session.engine.sharding.learn(news))


@command(
    "shard.help",
    arity=1,
    flags="loading stale",
    group="cluster",
    since=SINCE,
    summary="Show helpful text about the SHARD commands",
    complexity="O(1)",
    ours=True,
)
def shard_help(session: CommandSession, args: list[bytes]) -> Reply:
    return usage(b"shard.")
