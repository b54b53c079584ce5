"""PUBSUB: who subscribes to what, over all processes that share the store."""

from __future__ import annotations

from collections.abc import Iterable

from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, command, container
from rlite_pubsub.protocol.errors import subcommand_syntax
from rlite_pubsub.protocol.glob import Glob
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS, Kind

container(
    "pubsub",
    arity=-2,
    group="pubsub",
    since="2.8.0",
    summary="A container for Pub/Sub commands",
    complexity="Depends on subcommand.",
)


@command(
    "pubsub|channels",
    arity=-2,
    flags="pubsub loading stale",
    group="pubsub",
    since="2.8.0",
    summary="List active channels",
    complexity="O(N) where N is the number of active channels, and assuming constant time pattern matching (relatively "
    "short channels and patterns)",
    arguments=(Arg("pattern", "pattern", optional=True),),
)
def pubsub_channels(session: CommandSession, args: list[bytes]) -> Reply:
    return _held(session, CHANNELS, args)


@command(
    "pubsub|shardchannels",
    arity=-2,
    flags="pubsub loading stale",
    group="pubsub",
    since="7.0.0",
    summary="List active shard channels",
    complexity="O(N) where N is the number of active shard channels, and assuming constant time pattern matching "
    "(relatively short shard channels).",
    arguments=(Arg("pattern", "pattern", optional=True),),
)
def pubsub_shardchannels(session: CommandSession, args: list[bytes]) -> Reply:
    return _held(session, SHARDS, args)


@command(
    "pubsub|numsub",
    arity=-2,
    flags="pubsub loading stale",
    group="pubsub",
    since="2.8.0",
    summary="Get the count of subscribers for channels",
    complexity="O(N) for the NUMSUB subcommand, where N is the number of requested channels",
    arguments=(Arg("channel", optional=True, multiple=True),),
)
def pubsub_numsub(session: CommandSession, args: list[bytes]) -> Reply:
    return _numbers(session, CHANNELS, args[2:])


@command(
    "pubsub|shardnumsub",
    arity=-2,
    flags="pubsub loading stale",
    group="pubsub",
    since="7.0.0",
    summary="Get the count of subscribers for shard channels",
    complexity="O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard channels",
    arguments=(Arg("shardchannel", optional=True, multiple=True),),
)
def pubsub_shardnumsub(session: CommandSession, args: list[bytes]) -> Reply:
    return _numbers(session, SHARDS, args[2:])


@command(
    "pubsub|numpat",
    arity=2,
    flags="pubsub loading stale",
    group="pubsub",
    since="2.8.0",
    summary="Get the count of unique patterns pattern subscriptions",
    complexity="O(1)",
)
def pubsub_numpat(session: CommandSession, args: list[bytes]) -> Reply:
    return len(set(session.hub.held_everywhere(PATTERNS)))


def _held(session: CommandSession, kind: Kind, args: list[bytes]) -> Reply:
    if len(args) > 3:
        raise subcommand_syntax(args)
    names: Iterable[bytes] = session.hub.held_everywhere(kind)
    if len(args) == 2:
        return list(names)
    matches = Glob(args[2]).matches
    return [name for name in names if matches(name)]


def _numbers(session: CommandSession, kind: Kind, names: list[bytes]) -> Reply:
    return [element for name in names for element in (name, session.hub.session_count_everywhere(kind, name))]


helps(
    "pubsub",
    "CHANNELS [<pattern>]",
    "    Return the currently active channels matching a <pattern> (default: '*').",
    "NUMPAT",
    "    Return number of subscriptions to patterns.",
    "NUMSUB [<channel> ...]",
    "    Return the number of subscribers for the specified channels, excluding",
    "    pattern subscriptions(default: no channels).",
    "SHARDCHANNELS [<pattern>]",
    "    Return the currently active shard level channels matching a <pattern> (default: '*').",
    "SHARDNUMSUB [<shardchannel> ...]",
    "    Return the number of subscribers for the specified shard level channel(s)",
    group="pubsub",
    since="6.2.0",
)
