"""PING, ECHO, SELECT, RESET, QUIT: a session and nothing else."""

from __future__ import annotations

from typing import Final

from rlite_pubsub.engine.arguments.integers import INT_MAX, INT_MIN, integer
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.shards.restrictions import check_unsharded
from rlite_pubsub.engine.table import Arg, command
from rlite_pubsub.engine.waits.cold_wait import Places, reads_ahead
from rlite_pubsub.protocol.errors import DB_OUT_OF_RANGE, CommandError, wrong_arity
from rlite_pubsub.protocol.replies import OK, PONG, Reply, Status

_RESET: Final = Status(b"RESET")


@command(
    "ping",
    is_plain=True,
    arity=-1,
    flags="fast sentinel",
    categories="connection",
    group="connection",
    since="1.0.0",
    summary="Ping the server",
    complexity="O(1)",
    arguments=(Arg("message", optional=True),),
    tips=("request_policy:all_shards", "response_policy:all_succeeded"),
)
def ping(session: CommandSession, args: list[bytes]) -> Reply:
    """A subscribed RESP2 client could mistake a bare reply for a message, so there it looks like one."""
    if len(args) > 2:
        raise wrong_arity(b"ping")
    if session.protocol == 2 and not session.plain and session.holds_names:
        return [b"pong", args[1] if len(args) == 2 else b""]
    return args[1] if len(args) == 2 else PONG


@command(
    "echo",
    is_plain=True,
    arity=2,
    flags="loading stale fast",
    categories="connection",
    group="connection",
    since="1.0.0",
    summary="Echo the given string",
    complexity="O(1)",
    arguments=(Arg("message"),),
)
def echo(session: CommandSession, args: list[bytes]) -> Reply:
    return args[1]


@command(
    "select",
    arity=2,
    flags="loading stale fast",
    categories="connection",
    group="connection",
    since="1.0.0",
    summary="Change the selected database for the current connection",
    complexity="O(1)",
    arguments=(Arg("index", "integer"),),
)
def select(session: CommandSession, args: list[bytes]) -> Reply:
    number = integer(args[1])
    if not INT_MIN <= number <= INT_MAX:
        raise CommandError(b"ERR value is out of range, value must between %d and %d" % (INT_MIN, INT_MAX))
    if not 0 <= number < session.engine.settings["databases"]:
        raise CommandError(DB_OUT_OF_RANGE)
    if number:
        check_unsharded(session, b"SELECT is")
    session.select(number)
    return OK


@reads_ahead(b"select")
def _look_elsewhere(session: CommandSession, args: list[bytes], places: Places) -> None:
    select(session, args)


@command(
    "reset",
    arity=1,
    flags="noscript loading stale fast no_auth allow_busy",
    categories="connection",
    group="connection",
    since="6.2.0",
    summary="Reset the connection",
    complexity="O(1)",
)
def reset(session: CommandSession, args: list[bytes]) -> Reply:
    session.reset()
    return _RESET


@command(
    "quit",
    arity=-1,
    flags="allow_busy noscript loading stale fast no_auth",
    categories="connection",
    group="connection",
    since="1.0.0",
    summary="Close the connection",
    complexity="O(1)",
)
def quit_(session: CommandSession, args: list[bytes]) -> Reply:
    session.leave_in_peace()
    session.close_after_reply()
    return OK
