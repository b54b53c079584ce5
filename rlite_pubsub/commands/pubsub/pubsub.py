"""Publishing and subscribing. What PUBSUB tells of both is view.py's.

The three kinds of names go through the same two functions, `_subscribe` and `_unsubscribe`. The session of a durable
subscriber takes the way of durable/subscribing.py.
"""

from __future__ import annotations

from rlite_pubsub.durable import subscribing
from rlite_pubsub.durable.attaching import CLIENT_NAME
from rlite_pubsub.engine.arguments.lookup import durables_of
from rlite_pubsub.engine.refusal import refused, unwritten
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.encoder import confirmations, error
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Encoded, Push, Replies, Reply
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS, Kind
from rlite_pubsub.pubsub.publish import deliver, publish_whole
from rlite_pubsub.pubsub.publish import publish as publish_run
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
    tails = [b"%d\r\n%b" % (len(args[2]), args[2])]
    try:
        if session.deny_blocking and not session.obeys_master:
            route = publish_whole(hub, kind, args[1], tails)
            if route.address is not None or (session.in_script and route.receivers):
                hub.postponed.append(route)
        elif (session.engine.keyspace.turn.writes or session.engine.outgoing.is_on) and not session.obeys_master:
            route = publish_run(hub, kind, args[1], tails)
            if route.address is not None:
                hub.postponed.append(route)
        else:
            route = deliver(hub, kind, args[1], tails)
    except StoreError as failure:
        raise refused(failure) from failure
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
    if session.feed is not None or _is_named_durable(session):
        return _subscribe_durably(session, kind, args)
    session.hub.check_writer()
    names = args[1:]
    taken, counts = session.hub.subscribe_all(session, kind, names)
    confirmation = confirmations(kind.subscribed, names, counts, session.protocol)
    if not taken:
        return Replies((Encoded(confirmation),))
    session.send(confirmation)
    _take_back_on_failure(session, kind, taken, confirmation)
    return Replies(())


def _is_named_durable(session: CommandSession) -> bool:
    """Return whether its client name makes its first subscription attach it."""
    name = session.name
    is_durable = name.startswith(CLIENT_NAME) and len(name) > len(CLIENT_NAME)
    return is_durable and not session.holds_names and session.hub.durables is not None


def _subscribe_durably(session: CommandSession, kind: Kind, args: list[bytes]) -> Reply:
    """Attach the session if it is not yet, and let its subscriber hold these names."""
    durables = durables_of(session)
    try:
        durables.check_writers()
        if session.feed is None:
            name = session.name.removeprefix(CLIENT_NAME)
            if session.limits is not None:
                from rlite_pubsub.engine.access.durable_rights import check_attachment  # as in dispatch.py

                check_attachment(session, name, args)
            durables.attach(session, name)
        return subscribing.subscribe(durables, session, kind, args[1:])
    except StoreError as failure:
        raise refused(failure) from failure


def _take_back_on_failure(session: CommandSession, kind: Kind, taken: list[bytes], confirmation: bytes) -> None:
    """Law 5: if the records of these names cannot be committed, the names go and the confirmation becomes an error."""

    def take_back(failure: Exception) -> None:
        session.hub.unsubscribe_all(session, kind, taken)
        refusal = error(unwritten(failure))
        session.said[:] = [refusal if part is confirmation else part for part in session.said]

    session.hub.on_failed_commit(session, take_back)


def _unsubscribe(session: CommandSession, kind: Kind, names: list[bytes]) -> Reply:
    if session.feed is not None:
        try:
            durables_of(session).check_writers()
            return subscribing.unsubscribe(durables_of(session), session, kind, names)
        except StoreError as failure:
            raise refused(failure) from failure
    names = names or list(session.names[kind.index])
    if not names:
        return Replies((Push([kind.unsubscribed, None, session.count_of(kind)]),))
    counts = session.hub.unsubscribe_all(session, kind, names)
    return Replies((Encoded(confirmations(kind.unsubscribed, names, counts, session.protocol)),))
