"""SLOWLOG: what the slow log has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.table import Arg, command, container
from rlite_pubsub.engine.workers import merging
from rlite_pubsub.protocol.errors import subcommand_syntax
from rlite_pubsub.protocol.replies import OK, Reply

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession


DEFAULT_COUNT = 10

container(
    "slowlog",
    arity=-2,
    group="server",
    since="2.2.12",
    summary="A container for slow log commands",
    complexity="Depends on subcommand.",
)


@command(
    "slowlog|get",
    merge=merging.slowest,
    arity=-2,
    flags="admin loading stale",
    group="server",
    since="2.2.12",
    summary="Get the slow log's entries",
    complexity="O(N) where N is the number of entries returned",
    arguments=(Arg("count", "integer", optional=True),),
    tips=("request_policy:all_nodes", "nondeterministic_output"),
    history=(("4.0.0", "Added client IP address, port and name to the reply."),),
)
def slowlog_get(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) > 3:
        raise subcommand_syntax(args)
    entries = session.engine.slowlog.entries
    count = DEFAULT_COUNT
    if len(args) == 3:
        count = integer(args[2], -1, refusal=b"ERR count should be greater than or equal to -1")
    wanted = list(entries) if count == -1 else list(entries)[:count]
    return [[entry.id, entry.time, entry.duration_us, entry.args, entry.address, entry.name] for entry in wanted]


@command(
    "slowlog|len",
    merge=merging.total,
    arity=2,
    flags="admin loading stale",
    group="server",
    since="2.2.12",
    summary="Get the slow log's length",
    complexity="O(1)",
    tips=("request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"),
)
def slowlog_len(session: CommandSession, args: list[bytes]) -> Reply:
    return len(session.engine.slowlog.entries)


@command(
    "slowlog|reset",
    merge=merging.by_all,
    arity=2,
    flags="admin loading stale",
    group="server",
    since="2.2.12",
    summary="Clear all entries from the slow log",
    complexity="O(N) where N is the number of entries in the slowlog",
    tips=("request_policy:all_nodes", "response_policy:all_succeeded"),
)
def slowlog_reset(session: CommandSession, args: list[bytes]) -> Reply:
    session.engine.slowlog.entries.clear()
    return OK


helps(
    "slowlog",
    "GET [<count>]",
    "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
    "    Entries are made of:",
    "    id, timestamp, time in microseconds, arguments array, client IP and port,",
    "    client name",
    "LEN",
    "    Return the length of the slowlog.",
    "RESET",
    "    Reset the slowlog.",
    group="server",
    since="6.2.0",
)
