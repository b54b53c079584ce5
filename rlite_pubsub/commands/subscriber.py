"""SUBSCRIBER.*: durable subscribers by name, and what can be seen of all subscribers. Not Redis's: ours."""

from __future__ import annotations

from rlite_pubsub.commands.durable_subscription import durables_of
from rlite_pubsub.commands.integers import LONG_MAX, integer
from rlite_pubsub.commands.refusal import unwritten
from rlite_pubsub.commands.session import CommandSession
from rlite_pubsub.commands.table import Arg, command
from rlite_pubsub.delivery.lifetimes import Wanted
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply, Status
from rlite_pubsub.storage import attachments, durables, forms, losses, mailboxes, subscribers, subscriptions
from rlite_pubsub.storage.attachments import Attachment
from rlite_pubsub.storage.durables import Durable
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.mailboxes import Mailbox
from rlite_pubsub.storage.store import Store

_SINCE = "0.1.0"
_MAX_TTL_S = 1 << 40
_NO_SUCH = b"ERR no such durable subscriber"
_FIELDS = {b"TTL": "ttl_s", b"MAXBYTES": "max_bytes", b"MAXLEN": "max_messages"}


@command(
    "subscriber.attach",
    arity=-2,
    flags="pubsub noscript loading stale",
    group="pubsub",
    since=_SINCE,
    summary="Attach the connection to a durable subscriber, made if it is new",
    complexity="O(1)",
    arguments=(
        Arg("name"),
        Arg("seconds", "integer", token="TTL", optional=True),
        Arg("bytes", "integer", token="MAXBYTES", optional=True),
        Arg("messages", "integer", token="MAXLEN", optional=True),
    ),
    ours=True,
)
def subscriber_attach(session: CommandSession, args: list[bytes]) -> Reply:
    """What waits comes once the connection subscribes. The newest connection of a name takes over."""
    wanted = Wanted(**_options(args))
    name = args[1]
    if not name:
        raise CommandError(b"ERR a durable subscriber needs a name")
    if session.feed is not None and session.feed.durable.name != name:
        raise CommandError(b"ERR the connection is attached to another durable subscriber: SUBSCRIBER.DETACH first")
    if session.feed is None and session.holds_names:
        raise CommandError(b"ERR the connection has subscriptions of its own: attach before the first of them")
    try:
        durable = durables_of(session).attach(session, name, wanted)
        return _info(_store(session), durable)
    except StoreError as failure:
        raise CommandError(unwritten(failure)) from failure


def _options(args: list[bytes]) -> dict[str, int]:
    if len(args) % 2:
        raise CommandError(SYNTAX)
    options: dict[str, int] = {}
    for word, value in zip(args[2::2], args[3::2], strict=True):
        field = _FIELDS.get(word.upper())
        if field is None or field in options:
            raise CommandError(SYNTAX)
        options[field] = integer(value, 0, _MAX_TTL_S if field == "ttl_s" else LONG_MAX)
    return options


@command(
    "subscriber.detach",
    arity=-1,
    flags="pubsub noscript loading stale",
    group="pubsub",
    since=_SINCE,
    summary="Detach the connection from its durable subscriber, or close the one that is attached to a name",
    complexity="O(1)",
    arguments=(Arg("name", optional=True),),
    ours=True,
)
def subscriber_detach(session: CommandSession, args: list[bytes]) -> Reply:
    """Without a name the connection goes on, with no subscriptions. The subscriber's own stay."""
    if len(args) > 2:
        raise CommandError(SYNTAX)
    subscribed = durables_of(session)
    own = session.feed.durable.name if session.feed is not None else None
    if len(args) == 1 or args[1] == own:
        subscribed.detach(session)
        return 1 if own is not None else 0
    try:
        return int(subscribed.detach_name(args[1]))
    except StoreError as failure:
        raise CommandError(unwritten(failure)) from failure


@command(
    "subscriber.delete",
    arity=2,
    flags="pubsub noscript loading stale",
    group="pubsub",
    since=_SINCE,
    summary="Remove a durable subscriber with its subscriptions and what waits for it",
    complexity="O(N) where N is the number of its subscriptions and of the messages that wait.",
    arguments=(Arg("name"),),
    ours=True,
)
def subscriber_delete(session: CommandSession, args: list[bytes]) -> Reply:
    """How many were removed: 1 or 0. A connection that is attached is closed, after this reply if it is this one."""
    subscribed = durables_of(session)
    if session.feed is not None and session.feed.durable.name == args[1]:
        subscribed.detach(session)
    try:
        return int(subscribed.delete(args[1]))
    except StoreError as failure:
        raise CommandError(unwritten(failure)) from failure


@command(
    "subscriber.info",
    arity=2,
    flags="pubsub loading stale",
    group="pubsub",
    since=_SINCE,
    summary="What is known of a durable subscriber",
    complexity="O(N) where N is the number of its subscriptions.",
    arguments=(Arg("name"),),
    ours=True,
)
def subscriber_info(session: CommandSession, args: list[bytes]) -> Reply:
    store = _store(session)
    try:
        durable = store.data.read(lambda txn: durables.get(txn, args[1]))
        if durable is None:
            raise CommandError(_NO_SUCH)
        return _info(store, durable)
    except StoreError as failure:
        raise CommandError(unwritten(failure)) from failure


@command(
    "subscriber.list",
    arity=1,
    flags="pubsub loading stale",
    group="pubsub",
    since=_SINCE,
    summary="All subscribers of the store: durable ones, servers and embedded programs",
    complexity="O(N) where N is the number of subscribers and of their subscriptions.",
    ours=True,
)
def subscriber_list(session: CommandSession, args: list[bytes]) -> Reply:
    store = _store(session)
    try:
        known = store.data.read(durables.every)
        return [_info(store, durable) for durable in known] + store.live.read(_processes)
    except StoreError as failure:
        raise CommandError(unwritten(failure)) from failure


@command(
    "subscriber.help",
    arity=1,
    flags="loading stale",
    group="pubsub",
    since=_SINCE,
    summary="Show helpful text about the SUBSCRIBER commands",
    complexity="O(1)",
    ours=True,
)
def subscriber_help(session: CommandSession, args: list[bytes]) -> Reply:
    lines = (
        "SUBSCRIBER.ATTACH <name> [TTL <seconds>] [MAXBYTES <bytes>] [MAXLEN <messages>]",
        "    Attach this connection to a durable subscriber: what it subscribes to outlives it.",
        "SUBSCRIBER.DETACH [<name>]",
        "    Detach this connection, or close the connection that is attached to <name>.",
        "SUBSCRIBER.DELETE <name>",
        "    Remove a durable subscriber with all that waits for it.",
        "SUBSCRIBER.INFO <name>",
        "    What is known of a durable subscriber.",
        "SUBSCRIBER.LIST",
        "    All subscribers of the store.",
        "SUBSCRIBER.HELP",
        "    Prints this help.",
    )
    return [Status(line.encode()) for line in lines]


def _store(session: CommandSession) -> Store:
    if session.instance.store is None:
        raise CommandError(b"ERR there is no store")
    return session.instance.store


def _info(store: Store, durable: Durable) -> dict[Reply, Reply]:
    where = store.live.read(lambda txn: _where(txn, durable.id))
    return store.data.read(lambda txn: _told(txn, durable, where))


def _where(txn: Txn, durable: int) -> tuple[Attachment, int] | None:
    attachment = attachments.get(txn, durable)
    if attachment is None:
        return None
    record = subscribers.get(txn, attachment.subscriber)
    return attachment, record.pid if record is not None else 0


def _told(txn: Txn, durable: Durable, where: tuple[Attachment, int] | None) -> dict[Reply, Reply]:
    mailbox = Mailbox(durable.id)
    held = subscriptions.held(txn, durable.id)
    return {
        b"kind": b"durable",
        b"name": durable.name,
        b"id": b"%016x" % durable.id,
        b"attached": int(where is not None),
        b"pid": where[1] if where is not None else 0,
        b"client": where[0].session if where is not None else 0,
        b"names": len(held),
        b"channels": [name for byte, name in held if byte == b"c"],
        b"patterns": [name for byte, name in held if byte == b"p"],
        b"shards": [name for byte, name in held if byte == b"s"],
        b"backlog_messages": forms.waiting_messages(txn, mailbox),
        b"backlog_bytes": mailboxes.backlog(txn, mailbox).bytes,
        b"ttl": durable.ttl_s,
        b"max_bytes": durable.max_bytes,
        b"max_messages": durable.max_messages,
        b"made_ms": durable.made_ms,
        b"seen_ms": durable.seen_ms,
        b"expired": int(durable.is_expired),
        b"dropped_messages": durable.dropped,
        b"lost_untold": sum(lost.messages for lost in losses.of(txn, durable.id)),
    }


def _processes(txn: Txn) -> list[Reply]:
    found: list[Reply] = []
    for id, record in subscribers.records(txn).items():
        backlog = mailboxes.backlog_of(txn, id)
        found.append(
            {
                b"kind": record.kind.encode(),
                b"id": b"%016x" % id,
                b"pid": record.pid,
                b"joined_ms": record.joined_ms,
                b"names": len(subscriptions.held(txn, id)),
                b"backlog_messages": backlog.messages,
                b"backlog_bytes": backlog.bytes,
            }
        )
    return found
