"""CLIENT LIST and INFO: one line for each session, `field=value` in redis-server 7.0.15's order.

A session that told its library (CLIENT SETINFO) has that after the rest, as in later versions; all others look as they
always did.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlite_pubsub.commands.connection.client import client_type
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.session import CommandSession, Transaction
from rlite_pubsub.engine.table import Arg, command
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply, Verbatim
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS

_POINTER_BYTES = 8
"""Redis counts the pointer to each queued argument, too."""


def client_line(session: CommandSession, request: Sequence[bytes] = ()) -> bytes:
    """All about a session; `request` is what it is executing at this moment, if it is the one that asks."""
    now = int(session.instance.clock())
    footprint = session.footprint()
    if request and session.deny_blocking:  # inside EXEC, and that is the request under way
        request = (b"exec",)
    transaction, tracking, command = session.transaction, session.tracking, session.last_command
    fields: list[tuple[str, object]] = [
        ("id", session.id),
        ("addr", session.address),
        ("laddr", session.local_address),
        ("fd", footprint.descriptor),
        ("name", session.name),
        ("age", max(0, now - int(session.connected_at))),
        ("idle", max(0, now - int(session.last_active))),
        ("flags", _flags(session)),
        ("db", session.db),
        ("sub", len(session.names[CHANNELS.index])),
        ("psub", len(session.names[PATTERNS.index])),
        ("ssub", len(session.names[SHARDS.index])),
        ("multi", -1 if transaction is None else len(transaction.queue)),
        ("qbuf", footprint.query),
        ("qbuf-free", footprint.query_free),
        ("argv-mem", sum(map(len, request)) or footprint.arguments),
        ("multi-mem", 0 if transaction is None else _queued_bytes(transaction)),
        ("rbs", footprint.reply_buffer),
        ("rbp", footprint.reply_buffer_peak),
        ("obl", footprint.outbox),
        ("oll", footprint.outbox_parts),
        ("omem", footprint.outbox_parts_memory),
        ("tot-mem", footprint.total),
        ("events", footprint.awaited_events),
        ("cmd", b"NULL" if command is None else command.name),
        ("user", session.user),
        ("redir", -1 if tracking is None else tracking.redirect),
        ("resp", session.protocol),
    ]
    if session.lib_name or session.lib_version:
        fields += [("lib-name", session.lib_name), ("lib-ver", session.lib_version)]
    return b" ".join([b"%b=%b" % (name.encode(), _text(value)) for name, value in fields])


def _text(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


def _queued_bytes(transaction: Transaction) -> int:
    return sum(len(arg) + _POINTER_BYTES for _, args in transaction.queue for arg in args)


def _flags(session: CommandSession) -> bytes:
    transaction, tracking = session.transaction, session.tracking
    letters = {
        b"O": session in session.instance.monitors,
        b"P": session.holds_names,
        b"x": transaction is not None,
        b"b": session.blocked is not None,
        b"t": tracking is not None,
        b"R": tracking is not None and tracking.broken_redirect,
        b"B": tracking is not None and tracking.broadcast,
        b"d": session.cas_broken,
        b"c": session.closing,
        b"U": session.footprint().unix,
        b"e": session.no_evict,
        b"T": session.no_touch,
    }
    return b"".join([letter for letter, holds in letters.items() if holds]) or b"N"


# -- commands


@command(
    "client|info",
    arity=2,
    flags="noscript loading stale sentinel",
    categories="connection",
    group="connection",
    since="6.2.0",
    summary="Returns information about the current client connection.",
    complexity="O(1)",
    tips=("nondeterministic_output",),
)
def client_info(session: CommandSession, args: list[bytes]) -> Reply:
    return Verbatim(client_line(session, args) + b"\n")


@command(
    "client|list",
    arity=-2,
    flags="admin noscript loading stale sentinel",
    categories="connection",
    group="connection",
    since="2.4.0",
    summary="Get the list of client connections",
    complexity="O(N) where N is the number of client connections",
    arguments=(
        Arg(
            "normal_master_replica_pubsub",
            "oneof",
            token="TYPE",
            optional=True,
            since="5.0.0",
            arguments=(
                Arg("normal", "pure-token", token="normal"),
                Arg("master", "pure-token", token="master"),
                Arg("replica", "pure-token", token="replica"),
                Arg("pubsub", "pure-token", token="pubsub"),
            ),
        ),
        Arg(
            "id",
            "block",
            token="ID",
            optional=True,
            since="6.2.0",
            arguments=(Arg("client-id", "integer", multiple=True),),
        ),
    ),
    tips=("nondeterministic_output",),
    history=(
        ("2.8.12", "Added unique client `id` field."),
        ("5.0.0", "Added optional `TYPE` filter."),
        ("6.0.0", "Added `user` field."),
        ("6.2.0", "Added `argv-mem`, `tot-mem`, `laddr` and `redir` fields and the optional `ID` filter."),
        ("7.0.0", "Added `resp`, `multi-mem`, `rbs` and `rbp` fields."),
        ("7.0.3", "Added `ssub` field."),
    ),
)
def client_list(session: CommandSession, args: list[bytes]) -> Reply:
    lines = [client_line(listed, args if listed is session else ()) + b"\n" for listed in _chosen(session, args)]
    return Verbatim(b"".join(lines))


def _chosen(session: CommandSession, args: list[bytes]) -> list[CommandSession]:
    sessions = session.instance.sessions
    option = args[2].lower() if len(args) > 2 else b""
    if len(args) == 2:
        return list(sessions.values())
    if len(args) == 4 and option == b"type":
        type_ = client_type(args[3])
        return [listed for listed in sessions.values() if listed.type == type_]
    if len(args) > 3 and option == b"id":
        ids = [integer(text, refusal=b"ERR Invalid client ID") for text in args[3:]]
        return [sessions[id_] for id_ in ids if id_ in sessions]
    raise CommandError(SYNTAX)
