"""Publishing and subscribing. What PUBSUB tells of both is pubsub_view.py's.

The three kinds of names go through the same two functions, `_subscribe` and `_unsubscribe`. The session of a durable
subscriber takes the way of durable_subscription.py.
"""

from __future__ import annotations

from rlite_pubsub.commands.pubsub.durable_subscription import (
    is_named_durable,
    name_count,
    subscribe_durably,
    unsubscribe_durably,
)
from rlite_pubsub.engine.refusal import unwritten
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.encoder import encode, error
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Encoded, Push, Replies, Reply
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS, Kind
from rlite_pubsub.pubsub.publish import publish as send
from rlite_pubsub.storage.errors import StoreError

_SHARD_KEYS = (KeySpec(("NOT_KEY",), ("index", 1), ("range", -1, 1, 0)),)
_SHARD_KEY = (KeySpec(("NOT_KEY",), ("index", 1), ("range", 0, 1, 0)),)


# -- publishing


@command(
    "publish",
    is_plain=True,
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
    is_plain=True,
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
        route = send(hub, kind, args[1], [b"%d\r\n%b" % (len(args[2]), args[2])])
        if route.address is not None:
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
        return subscribe_durably(session, kind, args)
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
        session.said[:] = [refusal if part is confirmation else part for part in session.said]

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
