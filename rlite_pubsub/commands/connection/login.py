"""AUTH and HELLO: who a session is; HELLO also chooses the protocol and a name in the same request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rlite_pubsub.commands.connection.client import set_name
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.client_line import client_line
from rlite_pubsub.engine.engine import REDIS_VERSION
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, command
from rlite_pubsub.protocol.errors import NO_PROTOCOL, SYNTAX, WRONG_PASSWORD, CommandError, c_string
from rlite_pubsub.protocol.replies import OK, Reply
from rlite_pubsub.storage.errors import StoreHeld

# -- Who a session is: AUTH, and what HELLO shares with it. A refused login is noted in the ACL log. Passwords are
# blotted out of the request before MONITOR or the slow log see it.

REDACTED = b"(redacted)"


def authenticate(session: CommandSession, args: list[bytes], username: bytes, password: bytes) -> None:
    """Make the session that user's, or raise CommandError. `args` is the request, for the ACL log."""
    user = session.engine.users.get(username)
    if user is not None and user.admits(password):
        session.log_in(user)
        return
    context = b"toplevel" if session.transaction is None else b"multi"
    session.engine.acl_log.note(b"auth", context, args[0], username, client_line(session, args))
    raise CommandError(WRONG_PASSWORD)


def redact(args: list[bytes], *indexes: int) -> list[bytes]:
    """Blot out these arguments for all who look at the request later; returned is the request as it was."""
    original = list(args)
    for index in indexes:
        args[index] = REDACTED
    return original


@contextmanager
def whole_if_held(args: list[bytes], original: list[bytes]) -> Iterator[None]:
    """A request that has to stand in line behind another process's write is handed in again, as it was."""
    try:
        yield
    except StoreHeld:
        args[:] = original
        raise


@command(
    "auth",
    arity=-2,
    flags="noscript loading stale fast no_auth sentinel allow_busy",
    categories="connection",
    group="connection",
    since="1.0.0",
    summary="Authenticate to the server",
    complexity="O(N) where N is the number of passwords defined for the user",
    arguments=(Arg("username", optional=True, since="6.0.0"), Arg("password")),
    history=(("6.0.0", "Added ACL style (username and password)."),),
)
def auth(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) > 3:
        raise CommandError(SYNTAX)
    request = redact(args, *range(1, len(args)))
    if len(request) == 2:
        if session.engine.users.default.no_password:
            raise CommandError(
                b"ERR AUTH <password> called without any password configured for the default user. "
                b"Are you sure your configuration is correct?"
            )
        authenticate(session, request, b"default", request[1])
    else:
        authenticate(session, request, request[1], request[2])
    return OK


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
    request = list(args)
    _hide_passwords(args)
    if len(args) > 1:
        version = integer(args[1], refusal=b"ERR Protocol version is not an integer or out of range")
        if version not in (2, 3):
            raise CommandError(NO_PROTOCOL)
    _take_options(session, request)
    if not session.logged_in:
        raise CommandError(_NO_AUTH)
    session.speak(version)
    return {
        b"server": b"redis",
        b"version": REDIS_VERSION.encode(),
        b"proto": version,
        b"id": session.id,
        b"mode": b"standalone" if session.engine.sharding.directory is None else b"cluster",
        b"role": b"master",
        b"modules": [],
    }


def _hide_passwords(args: list[bytes]) -> None:
    """Blot out what follows each AUTH, whatever becomes of the request."""
    if b"auth" not in b" ".join(args).lower():
        return
    at = 2
    while at < len(args):
        is_login = args[at].upper() == b"AUTH"
        for index in range(at + 1, min(at + 3, len(args)) if is_login else at + 1):
            args[index] = REDACTED
        at += 3 if is_login else 2


def _take_options(session: CommandSession, request: list[bytes]) -> None:
    at = 2
    while at < len(request):
        option, following = request[at].upper(), len(request) - at - 1
        if option == b"AUTH" and following >= 2:
            authenticate(session, request, request[at + 1], request[at + 2])
            at += 3
        elif option == b"SETNAME" and following:
            set_name(session, request[at + 1])
            at += 2
        else:
            raise CommandError(b"ERR Syntax error in HELLO option '%b'" % c_string(request[at]))
