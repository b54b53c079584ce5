"""Who a session is: AUTH, and what HELLO shares with it.

A refused login is noted in the ACL log. Passwords are blotted out of the request before MONITOR or the slow log see it.
"""

from __future__ import annotations

from rlite_pubsub.commands.client_list import client_line
from rlite_pubsub.commands.session import CommandSession
from rlite_pubsub.commands.table import Arg, command
from rlite_pubsub.protocol.errors import SYNTAX, WRONG_PASSWORD, CommandError
from rlite_pubsub.protocol.replies import OK, Reply

REDACTED = b"(redacted)"


def authenticate(session: CommandSession, args: list[bytes], username: bytes, password: bytes) -> None:
    """Make the session that user's, or raise CommandError. `args` is the request, for the ACL log."""
    user = session.instance.users.get(username)
    if user is not None and user.admits(password):
        session.log_in(user)
        return
    context = b"toplevel" if session.transaction is None else b"multi"
    session.instance.acl_log.note(b"auth", context, args[0], username, client_line(session, args))
    raise CommandError(WRONG_PASSWORD)


def redact(args: list[bytes], *indexes: int) -> list[bytes]:
    """Blot out these arguments for all who look at the request later; returned is the request as it was."""
    original = list(args)
    for index in indexes:
        args[index] = REDACTED
    return original


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
        if session.instance.users.default.no_password:
            raise CommandError(
                b"ERR AUTH <password> called without any password configured for the default user. "
                b"Are you sure your configuration is correct?"
            )
        authenticate(session, request, b"default", request[1])
    else:
        authenticate(session, request, request[1], request[2])
    return OK
