"""HELLO: log in, take a name and choose the protocol in one request.

Options take effect in the order in which they are written, and what took effect before an error stays. The protocol is
switched last, and not at all without authentication.
"""

from __future__ import annotations

from rlite_pubsub.commands.authentication import authenticate, redact
from rlite_pubsub.commands.client import set_name
from rlite_pubsub.commands.instance import REDIS_VERSION
from rlite_pubsub.commands.integers import integer
from rlite_pubsub.commands.session import CommandSession
from rlite_pubsub.commands.table import Arg, command
from rlite_pubsub.protocol.errors import NO_PROTOCOL, CommandError, c_string
from rlite_pubsub.protocol.replies import Reply

_NO_AUTH = (
    b"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option "
    b"can be used to authenticate the client and select the RESP protocol version at the same time"
)


@command(
    "hello",
    arity=-1,
    flags="noscript loading stale fast no_auth sentinel allow_busy",
    categories="connection",
    group="connection",
    since="6.0.0",
    summary="Handshake with Redis",
    complexity="O(1)",
    arguments=(
        Arg(
            "arguments",
            "block",
            optional=True,
            arguments=(
                Arg("protover", "integer"),
                Arg(
                    "username_password",
                    "block",
                    token="AUTH",
                    optional=True,
                    arguments=(Arg("username"), Arg("password")),
                ),
                Arg("clientname", token="SETNAME", optional=True),
            ),
        ),
    ),
    history=(
        (
            "6.2.0",
            "`protover` made optional; when called without arguments the command reports the current connection's "
            "context.",
        ),
    ),
)
def hello(session: CommandSession, args: list[bytes]) -> Reply:
    version = session.protocol
    if len(args) > 1:
        version = integer(args[1], refusal=b"ERR Protocol version is not an integer or out of range")
        if version not in (2, 3):
            raise CommandError(NO_PROTOCOL)
    _take_options(session, args)
    if not session.logged_in:
        raise CommandError(_NO_AUTH)
    switch_protocol(session, version)
    return {
        b"server": b"redis",
        b"version": REDIS_VERSION.encode(),
        b"proto": version,
        b"id": session.id,
        b"mode": b"standalone",
        b"role": b"master",
        b"modules": [],
    }


def _take_options(session: CommandSession, args: list[bytes]) -> None:
    at = 2
    while at < len(args):
        option, following = args[at].upper(), len(args) - at - 1
        if option == b"AUTH" and following >= 2:
            request = redact(args, at + 1, at + 2)
            authenticate(session, request, request[at + 1], request[at + 2])
            at += 3
        elif option == b"SETNAME" and following:
            set_name(session, args[at + 1])
            at += 2
        else:
            raise CommandError(b"ERR Syntax error in HELLO option '%b'" % c_string(args[at]))


def switch_protocol(session: CommandSession, version: int) -> None:
    """What was published before goes out in the old version, what comes later in the new one."""
    if version != session.protocol:
        session.hub.protocol_changed(session)
        session.protocol = version
