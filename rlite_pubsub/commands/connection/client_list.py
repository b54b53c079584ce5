"""CLIENT LIST and INFO: the sessions that were asked for, a line each (engine/client_line.py)."""

from __future__ import annotations

from rlite_pubsub.commands.connection.client import client_type
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.client_line import client_line
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, command
from rlite_pubsub.engine.workers import merging
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply, Verbatim

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
    merge=merging.lines,
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
    clients = session.engine.clients
    option = args[2].lower() if len(args) > 2 else b""
    if len(args) == 2:
        return clients
    if len(args) == 4 and option == b"type":
        type_ = client_type(args[3])
        return [listed for listed in clients if listed.type == type_]
    if len(args) > 3 and option == b"id":
        ids = [integer(text, refusal=b"ERR Invalid client ID") for text in args[3:]]
        known = {listed.id: listed for listed in clients}
        return [known[id_] for id_ in ids if id_ in known]
    raise CommandError(SYNTAX)
