"""Publishing, subscribing, and what PUBSUB tells of both.

The three kinds of names go through the same two functions, `_subscribe` and `_unsubscribe`. The session of a durable
subscriber takes the way of durable_subscription.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from rlite_pubsub.commands.durable_subscription import (
    is_named_durable,
    name_count,
    subscribe_durably,
    unsubscribe_durably,
)
from rlite_pubsub.commands.help import help_reply
from rlite_pubsub.commands.refusal import unwritten
from rlite_pubsub.commands.session import CommandSession
from rlite_pubsub.commands.table import Arg, KeySpec, command, container
from rlite_pubsub.delivery.kinds import CHANNELS, PATTERNS, SHARDS, Kind
from rlite_pubsub.protocol.encoder import encode, error
from rlite_pubsub.protocol.errors import CommandError, subcommand_syntax
from rlite_pubsub.protocol.glob import Glob
from rlite_pubsub.protocol.replies import Encoded, Push, Replies, Reply
from rlite_pubsub.storage.errors import StoreError

_SHARD_KEYS = (KeySpec(("NOT_KEY",), ("index", 1), ("range", -1, 1, 0)),)
_SHARD_KEY = (KeySpec(("NOT_KEY",), ("index", 1), ("range", 0, 1, 0)),)


# -- publishing


@command(
    "publish",
    arity=3,
    flags="pubsub loading stale fast may_replicate sentinel",
    group="pubsub",
    since="2.0.0",
    summary="Post a message to a channel",
    complexity="O(N+M) where N is the number of clients subscribed to the receiving channel and M is the total number "
    "of subscribed patterns (by any client).",
    arguments=(Arg("channel"), Arg("message")),
)
def publish(session: CommandSession, args: list[bytes]) -> Reply:
    return _publish(session, CHANNELS, args)


@command(
    "spublish",
    arity=3,
    flags="pubsub loading stale fast may_replicate",
    group="pubsub",
    since="7.0.0",
    summary="Post a message to a shard channel",
    complexity="O(N) where N is the number of clients subscribed to the receiving shard channel.",
    arguments=(Arg("shardchannel"), Arg("message")),
    key_specs=_SHARD_KEY,
)
def spublish(session: CommandSession, args: list[bytes]) -> Reply:
    return _publish(session, SHARDS, args)


def _publish(session: CommandSession, kind: Kind, args: list[bytes]) -> Reply:
    hub = session.hub
    try:
        hub.look_around()
        route = hub.route(kind, args[1])
        if route.receivers:
            hub.publish(route, [b"%d\r\n%b" % (len(args[2]), args[2])])
            hub.send_now()
    except StoreError as failure:
        raise CommandError(unwritten(failure)) from failure
    hub.published += 1
    return Encoded(route.reply)


# -- subscribing


@command(
    "subscribe",
    arity=-2,
    flags="pubsub noscript loading stale sentinel",
    group="pubsub",
    since="2.0.0",
    summary="Listen for messages published to the given channels",
    complexity="O(N) where N is the number of channels to subscribe to.",
    arguments=(Arg("channel", multiple=True),),
)
def subscribe(session: CommandSession, args: list[bytes]) -> Reply:
    return _subscribe(session, CHANNELS, args)


@command(
    "psubscribe",
    arity=-2,
    flags="pubsub noscript loading stale sentinel",
    group="pubsub",
    since="2.0.0",
    summary="Listen for messages published to channels matching the given patterns",
    complexity="O(N) where N is the number of patterns the client is already subscribed to.",
    arguments=(Arg("pattern", "block", multiple=True, arguments=(Arg("pattern", "pattern"),)),),
)
def psubscribe(session: CommandSession, args: list[bytes]) -> Reply:
    return _subscribe(session, PATTERNS, args)


@command(
    "ssubscribe",
    arity=-2,
    flags="pubsub noscript loading stale",
    group="pubsub",
    since="7.0.0",
    summary="Listen for messages published to the given shard channels",
    complexity="O(N) where N is the number of shard channels to subscribe to.",
    arguments=(Arg("shardchannel", multiple=True),),
    key_specs=_SHARD_KEYS,
)
def ssubscribe(session: CommandSession, args: list[bytes]) -> Reply:
    return _subscribe(session, SHARDS, args)


@command(
    "unsubscribe",
    arity=-1,
    flags="pubsub noscript loading stale sentinel",
    group="pubsub",
    since="2.0.0",
    summary="Stop listening for messages posted to the given channels",
    complexity="O(N) where N is the number of clients already subscribed to a channel.",
    arguments=(Arg("channel", optional=True, multiple=True),),
)
def unsubscribe(session: CommandSession, args: list[bytes]) -> Reply:
    return _unsubscribe(session, CHANNELS, args[1:])


@command(
    "punsubscribe",
    arity=-1,
    flags="pubsub noscript loading stale sentinel",
    group="pubsub",
    since="2.0.0",
    summary="Stop listening for messages posted to channels matching the given patterns",
    complexity="O(N+M) where N is the number of patterns the client is already subscribed and M is the number of total "
    "patterns subscribed in the system (by any client).",
    arguments=(Arg("pattern", "pattern", optional=True, multiple=True),),
)
def punsubscribe(session: CommandSession, args: list[bytes]) -> Reply:
    return _unsubscribe(session, PATTERNS, args[1:])


@command(
    "sunsubscribe",
    arity=-1,
    flags="pubsub noscript loading stale",
    group="pubsub",
    since="7.0.0",
    summary="Stop listening for messages posted to the given shard channels",
    complexity="O(N) where N is the number of clients already subscribed to a shard channel.",
    arguments=(Arg("shardchannel", optional=True, multiple=True),),
    key_specs=_SHARD_KEYS,
)
def sunsubscribe(session: CommandSession, args: list[bytes]) -> Reply:
    return _unsubscribe(session, SHARDS, args[1:])


def _subscribe(session: CommandSession, kind: Kind, args: list[bytes]) -> Reply:
    if session.deny_blocking and (kind is SHARDS or session.transaction is None):
        raise CommandError(b"ERR %b isn't allowed for a DENY BLOCKING client" % args[0].upper())
    if session.feed is not None or is_named_durable(session):
        return subscribe_durably(session, kind, args[1:])
    taken = []
    replies = []
    for name in args[1:]:
        if session.hub.subscribe(session, kind, name):
            taken.append(name)
        replies.append(Push([kind.subscribed, name, name_count(session, kind)]))
    if not taken:
        return Replies(replies)
    confirmation = encode(Replies(replies), session.protocol)
    session.send(confirmation)
    _take_back_on_failure(session, kind, taken, confirmation)
    return Replies(())


def _take_back_on_failure(session: CommandSession, kind: Kind, taken: list[bytes], confirmation: bytes) -> None:
    """Law 5: if the records of these names cannot be committed, the names go and the confirmation becomes an error."""

    def take_back(failure: Exception) -> None:
        for name in taken:
            session.hub.unsubscribe(session, kind, name)
        refusal = error(unwritten(failure))
        session.outbox[:] = [refusal if part is confirmation else part for part in session.outbox]

    session.hub.on_failed_commit(take_back)


def _unsubscribe(session: CommandSession, kind: Kind, names: list[bytes]) -> Reply:
    if session.feed is not None:
        return unsubscribe_durably(session, kind, names)
    replies = []
    for name in names or list(session.names[kind.index]):
        session.hub.unsubscribe(session, kind, name)
        replies.append(Push([kind.unsubscribed, name, name_count(session, kind)]))
    if not replies:
        replies.append(Push([kind.unsubscribed, None, name_count(session, kind)]))
    return Replies(replies)


# -- PUBSUB

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


@command(
    "pubsub|help",
    arity=2,
    flags="loading stale",
    group="pubsub",
    since="6.2.0",
    summary="Show helpful text about the different subcommands",
    complexity="O(1)",
)
def pubsub_help(session: CommandSession, args: list[bytes]) -> Reply:
    return help_reply(
        args,
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
    )
