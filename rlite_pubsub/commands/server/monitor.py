"""MONITOR: every request, as it is executed, to the sessions that monitor."""

from __future__ import annotations

from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import command
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import NO_REPLY, OK, Reply


@command(
    "monitor",
    arity=1,
    flags="admin noscript loading stale",
    group="server",
    since="1.0.0",
    summary="Listen for all requests received by the server in real time",
)
def monitor(session: CommandSession, args: list[bytes]) -> Reply:
    """A session that monitors already gets no second reply."""
    if session.deny_blocking:
        raise CommandError(b"ERR MONITOR isn't allowed for DENY BLOCKING client")
    if session in session.engine.monitors:
        return NO_REPLY
    session.engine.monitors[session] = None
    return OK
