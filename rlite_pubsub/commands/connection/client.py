"""CLIENT: what a session tells of itself and chooses for itself. LIST, KILL and TRACKING have files of their own."""

from __future__ import annotations

import re

from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, command, container
from rlite_pubsub.engine.waits.pause import Scope
from rlite_pubsub.engine.workers import merging
from rlite_pubsub.protocol.errors import (
    BAD_TIMEOUT,
    NEGATIVE_TIMEOUT,
    SYNTAX,
    CommandError,
    c_string,
    subcommand_syntax,
)
from rlite_pubsub.protocol.replies import NO_REPLY, OK, Reply

# -- What CLIENT HELP says: each subcommand's grammar and, indented, what it does.

HELP = (
    "CACHING (YES|NO)",
    "    Say whether the next command's keys are tracked, in OPTIN or OPTOUT mode.",
    "GETREDIR",
    "    Tell the id of the client that gets this connection's invalidations.",
    "GETNAME",
    "    Tell the name of this connection.",
    "ID",
    "    Tell the id of this connection.",
    "INFO",
    "    Describe this connection.",
    "KILL <ip:port>",
    "    Close the connection that comes from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Close the connections that meet all of these conditions:",
    "    * ADDR (<ip:port>|<unixsocket>:0)",
    "      It comes from this address.",
    "    * LADDR (<ip:port>|<unixsocket>:0)",
    "      It was made to this address of ours.",
    "    * ID <id>",
    "      It has this id.",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      It is of this type.",
    "    * USER <username>",
    "      It belongs to this user.",
    "    * SKIPME (YES|NO)",
    "      It is not the one that asks (default: yes).",
    "LIST [options ...]",
    "    Describe all connections, or some:",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Those of this type.",
    "    * ID <id> [<id> ...]",
    "      Those with these ids.",
    "UNPAUSE",
    "    End a pause; what was held back is executed.",
    "PAUSE <timeout> [WRITE|ALL]",
    "    Hold back all commands, or those that write, for <timeout> milliseconds.",
    "REPLY (ON|OFF|SKIP)",
    "    Switch the replies to this connection on or off, or leave one out.",
    "SETINFO (LIB-NAME|LIB-VER) <value>",
    "    Tell which library this connection uses.",
    "SETNAME <name>",
    "    Name this connection.",
    "UNBLOCK <clientid> [TIMEOUT|ERROR]",
    "    End the waiting of a client that a command blocks.",
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
    "         [OPTIN] [OPTOUT] [NOLOOP]",
    "    Switch the help for client side caches on or off.",
    "TRACKINGINFO",
    "    Tell how tracking is set for this connection.",
    "NO-EVICT (ON|OFF)",
    "    Spare this connection when clients are dropped for their memory.",
    "NO-TOUCH (ON|OFF)",
    "    Leave the idle time of keys alone that this connection reads.",
)


_PRINTABLE = re.compile(rb"[!-~]*")
"""What cannot break the format of CLIENT LIST."""

_TYPES = {
    b"normal": b"normal",
    b"slave": b"replica",
    b"replica": b"replica",
    b"pubsub": b"pubsub",
    b"master": b"master",
}
_SCOPES = {b"write": Scope.WRITE, b"all": Scope.ALL}

ON_OFF = (Arg("on", "pure-token", token="ON"), Arg("off", "pure-token", token="OFF"))

container(
    "client",
    arity=-2,
    flags="sentinel",
    group="connection",
    since="2.4.0",
    summary="A container for client connection commands",
    complexity="Depends on subcommand.",
)


def client_type(word: bytes) -> bytes:
    """Return the type that a TYPE filter names, spelt in one way. Raises CommandError."""
    type_ = _TYPES.get(word.lower())
    if type_ is None:
        raise CommandError(b"ERR Unknown client type '%b'" % c_string(word))
    return type_


# -- name, id, library


@command(
    "client|id",
    arity=2,
    flags="noscript loading stale sentinel",
    categories="connection",
    group="connection",
    since="5.0.0",
    summary="Returns the client ID for the current connection",
    complexity="O(1)",
)
def client_id(session: CommandSession, args: list[bytes]) -> Reply:
    return session.id


@command(
    "client|setname",
    arity=3,
    flags="noscript loading stale sentinel",
    categories="connection",
    group="connection",
    since="2.6.9",
    summary="Set the current connection name",
    complexity="O(1)",
    arguments=(Arg("connection-name"),),
)
def client_setname(session: CommandSession, args: list[bytes]) -> Reply:
    set_name(session, args[2])
    return OK


def set_name(session: CommandSession, name: bytes) -> None:
    """Name the session; an empty name takes its name away. Raises CommandError."""
    if _PRINTABLE.fullmatch(name) is None:
        raise CommandError(b"ERR Client names cannot contain spaces, newlines or special characters.")
    session.introduce(name=name)


@command(
    "client|getname",
    arity=2,
    flags="noscript loading stale sentinel",
    categories="connection",
    group="connection",
    since="2.6.9",
    summary="Get the current connection name",
    complexity="O(1)",
)
def client_getname(session: CommandSession, args: list[bytes]) -> Reply:
    return session.name or None


@command(
    "client|setinfo",
    arity=4,
    flags="noscript loading stale sentinel",
    categories="connection",
    group="connection",
    since="7.2.0",
    summary="Tell which library the client uses",
    complexity="O(1)",
    arguments=(
        Arg(
            "attr",
            "oneof",
            arguments=(Arg("libname", token="LIB-NAME"), Arg("libver", token="LIB-VER")),
        ),
    ),
    tips=("request_policy:all_nodes", "response_policy:all_succeeded"),
)
def client_setinfo(session: CommandSession, args: list[bytes]) -> Reply:
    attribute, value = args[2].lower(), args[3]
    if attribute not in (b"lib-name", b"lib-ver"):
        raise CommandError(b"ERR Unrecognized option '%b'" % c_string(args[2]))
    if _PRINTABLE.fullmatch(value) is None:
        raise CommandError(b"ERR %b cannot contain spaces, newlines or special characters." % args[2])
    if attribute == b"lib-name":
        session.introduce(lib_name=value)
    else:
        session.introduce(lib_version=value)
    return OK


# -- what is sent to the client, and what is spared


@command(
    "client|reply",
    arity=3,
    flags="noscript loading stale sentinel",
    categories="connection",
    group="connection",
    since="3.2.0",
    summary="Instruct the server whether to reply to commands",
    complexity="O(1)",
    arguments=(Arg("on_off_skip", "oneof", arguments=(*ON_OFF, Arg("skip", "pure-token", token="SKIP"))),),
)
def client_reply(session: CommandSession, args: list[bytes]) -> Reply:
    match args[2].lower():
        case b"on":
            session.want_replies()
            return OK
        case b"off":
            session.want_no_replies()
        case b"skip":
            session.skip_reply()
        case _:
            raise CommandError(SYNTAX)
    return NO_REPLY


@command(
    "client|no-evict",
    arity=3,
    flags="admin noscript loading stale sentinel",
    categories="connection",
    group="connection",
    since="7.0.0",
    summary="Set client eviction mode for the current connection",
    complexity="O(1)",
    arguments=(Arg("enabled", "oneof", arguments=ON_OFF),),
)
def client_no_evict(session: CommandSession, args: list[bytes]) -> Reply:
    session.no_evict = _is_on(args[2])
    return OK


@command(
    "client|no-touch",
    arity=3,
    flags="noscript loading stale",
    categories="connection",
    group="connection",
    since="7.2.0",
    summary="Choose whether this connection's commands touch the keys that they read",
    complexity="O(1)",
    arguments=(Arg("enabled", "oneof", arguments=ON_OFF),),
)
def client_no_touch(session: CommandSession, args: list[bytes]) -> Reply:
    session.no_touch = _is_on(args[2])
    return OK


def _is_on(word: bytes) -> bool:
    if word.lower() not in (b"on", b"off"):
        raise CommandError(SYNTAX)
    return word.lower() == b"on"


# -- other sessions


@command(
    "client|pause",
    merge=merging.by_all,
    arity=-3,
    flags="admin noscript loading stale sentinel",
    categories="connection",
    group="connection",
    since="2.9.50",
    summary="Stop processing commands from clients for some time",
    complexity="O(1)",
    arguments=(
        Arg("timeout", "integer"),
        Arg(
            "mode",
            "oneof",
            optional=True,
            since="6.2.0",
            arguments=(Arg("write", "pure-token", token="WRITE"), Arg("all", "pure-token", token="ALL")),
        ),
    ),
    history=(("6.2.0", "`CLIENT PAUSE WRITE` mode added along with the `mode` option."),),
)
def client_pause(session: CommandSession, args: list[bytes]) -> Reply:
    """A timeout that leads beyond 64 bits of milliseconds pauses nothing, as Redis's sum wraps into the past."""
    if len(args) > 4:
        raise subcommand_syntax(args)
    scope = _SCOPES.get(args[3].lower()) if len(args) == 4 else Scope.ALL
    if scope is None:
        raise CommandError(b"ERR CLIENT PAUSE mode must be WRITE or ALL")
    timeout_ms = integer(args[2], refusal=BAD_TIMEOUT)
    if timeout_ms < 0:
        raise CommandError(NEGATIVE_TIMEOUT)
    engine = session.engine
    wraps = timeout_ms + int(engine.clock() * 1000) > LONG_MAX
    engine.pause.begin(engine.stopwatch() + timeout_ms / 1000 if timeout_ms and not wraps else 0.0, scope)
    return OK


@command(
    "client|unpause",
    merge=merging.by_all,
    arity=2,
    flags="admin noscript loading stale sentinel",
    categories="connection",
    group="connection",
    since="6.2.0",
    summary="Resume processing of clients that were paused",
    complexity="O(N) Where N is the number of paused clients",
)
def client_unpause(session: CommandSession, args: list[bytes]) -> Reply:
    session.engine.pause.end()
    return OK


@command(
    "client|unblock",
    merge=merging.total,
    arity=-3,
    flags="admin noscript loading stale sentinel",
    categories="connection",
    group="connection",
    since="5.0.0",
    summary="Unblock a client blocked in a blocking command from a different connection",
    complexity="O(log N) where N is the number of client connections",
    arguments=(
        Arg("client-id", "integer"),
        Arg(
            "timeout_error",
            "oneof",
            optional=True,
            arguments=(Arg("timeout", "pure-token", token="TIMEOUT"), Arg("error", "pure-token", token="ERROR")),
        ),
    ),
)
def client_unblock(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) > 4:
        raise subcommand_syntax(args)
    reason = args[3].lower() if len(args) == 4 else b"timeout"
    if reason not in (b"timeout", b"error"):
        raise CommandError(b"ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
    target = session.engine.sessions.get(integer(args[2]))
    if target is None or target.blocked is None:
        return 0
    return int(target.blocked.stop(with_error=reason == b"error"))


helps(
    "client",
    *HELP,
    flags="loading stale sentinel",
    categories="connection",
    group="connection",
    since="5.0.0",
)
