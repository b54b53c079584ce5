"""SUBSCRIBER.*: durable subscribers by name, and what can be seen of all subscribers. An extension."""

from __future__ import annotations

from rlite_pubsub.durable.lifetimes import Wanted
from rlite_pubsub.engine.access.durable_rights import check_attachment
from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.arguments.lookup import durables_of
from rlite_pubsub.engine.refusal import refused
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.stats import connections
from rlite_pubsub.engine.stats.subscriber_view import FIELDS, view
from rlite_pubsub.engine.table import Arg, command
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply, Status
from rlite_pubsub.pubsub.census import NAMES_SHOWN, Depth, census, census_of_durable
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.names import durables
from rlite_pubsub.storage.names.durables import Durable
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
    summary="Attach the connection to a durable subscriber, which is created if necessary",
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
    """Attach to a durable subscriber: what waits comes once the connection subscribes. The newest connection of a name
    takes over."""
    wanted = Wanted(**_options(args))
    name = args[1]
    if not name:
        raise CommandError(b"ERR a durable subscriber needs a name")
    if session.feed is not None and session.feed.durable.name != name:
        raise CommandError(b"ERR the connection is attached to another durable subscriber: SUBSCRIBER.DETACH first")
    if session.feed is None and session.holds_names:
        raise CommandError(b"ERR the connection has subscriptions of its own: attach before the first of them")
    try:
        check_attachment(session, name, args)
        durable = durables_of(session).attach(session, name, wanted)
        return _info(session, _store(session), durable)
    except StoreError as failure:
        raise refused(failure) from failure


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
    """Without a name the connection goes on, with no subscriptions. The subscriber keeps its own."""
    if len(args) > 2:
        raise CommandError(SYNTAX)
    subscribed = durables_of(session)
    own = session.feed.durable.name if session.feed is not None else None
    if len(args) == 1 or args[1] == own:
        session.leave_in_peace()
        subscribed.detach(session)
        return 1 if own is not None else 0
    try:
        return int(subscribed.detach_name(args[1]))
    except StoreError as failure:
        raise refused(failure) from failure


@command(
    "subscriber.delete",
    arity=2,
    flags="pubsub noscript loading stale",
    group="pubsub",
    since=_SINCE,
    summary="Remove a durable subscriber with its subscriptions and waiting messages",
    complexity="O(N) where N is the number of its subscriptions and of the messages that wait.",
    arguments=(Arg("name"),),
    ours=True,
)
def subscriber_delete(session: CommandSession, args: list[bytes]) -> Reply:
    """Remove a durable subscriber; answer how many were removed: 1 or 0. An attached connection is closed, after this
    reply if it is this one."""
    subscribed = durables_of(session)
    if session.feed is not None and session.feed.durable.name == args[1]:
        subscribed.detach(session)
    try:
        return int(subscribed.delete(args[1]))
    except StoreError as failure:
        raise refused(failure) from failure


@command(
    "subscriber.info",
    arity=2,
    flags="pubsub loading stale",
    group="pubsub",
    since=_SINCE,
    summary="Show a durable subscriber: its process, its names, its backlog and its limits",
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
        return _info(session, store, durable)
    except StoreError as failure:
        raise refused(failure) from failure


@command(
    "subscriber.list",
    arity=1,
    flags="pubsub loading stale",
    group="pubsub",
    since=_SINCE,
    summary="List the subscribers of the store with their names, backlog and state",
    complexity="O(N) where N is the number of subscribers and of their subscriptions.",
    ours=True,
)
def subscriber_list(session: CommandSession, args: list[bytes]) -> Reply:
    store = _store(session)
    try:
        return [view(entry, int(session.engine.clock() * 1000)) for entry in census(store)]
    except StoreError as failure:
        raise refused(failure) from failure


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
        "    Remove a durable subscriber and its waiting messages.",
        "SUBSCRIBER.INFO <name>",
        "    Show a durable subscriber, with all of its names.",
        "SUBSCRIBER.LIST",
        f"    List all subscribers of the store, with up to {NAMES_SHOWN} names of each kind. The fields of each:",
        *(f"      {names}: {meaning}" for names, meaning in FIELDS),
        "SUBSCRIBER.CLIENTS [COUNT <count>]",
        "    List the connections of every process of the store, the slowest readers first. The fields of each:",
        *(f"      {names}: {meaning}" for names, meaning in connections.FIELDS),
        "SUBSCRIBER.KILL <process> <client-id>",
        "    Close a connection of any process of the store.",
        "SUBSCRIBER.RATES [COUNT <count>]",
        "    Show the messages a second of the busiest channels with subscribers in this process.",
        "SUBSCRIBER.HELP",
        "    Prints this help.",
    )
    return [Status(line.encode()) for line in lines]


def _store(session: CommandSession) -> Store:
    if session.engine.store is None:
        raise CommandError(b"ERR there is no store")
    return session.engine.store


def _info(session: CommandSession, store: Store, durable: Durable) -> dict[Reply, Reply]:
    entry = census_of_durable(store, durable, Depth(shown=None))
    return view(entry, int(session.engine.clock() * 1000))
