"""MONITOR: every request, as it is executed, to whoever asked to watch."""

from __future__ import annotations

from collections.abc import Iterable

from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import command
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import NO_REPLY, OK, Reply

_ESCAPED = {
    ord("\\"): b"\\\\",
    ord('"'): b'\\"',
    ord("\n"): b"\\n",
    ord("\r"): b"\\r",
    ord("\t"): b"\\t",
    ord("\a"): b"\\a",
    ord("\b"): b"\\b",
}


def quoted(text: bytes) -> bytes:
    """`text` in quotes, all that is not printable escaped (sdscatrepr)."""
    if text.isalnum():
        return b'"%b"' % text
    return b'"%b"' % b"".join(
        [_ESCAPED.get(byte) or (b"%c" % byte if 0x20 <= byte < 0x7F else b"\\x%02x" % byte) for byte in text]
    )


def feed(monitors: Iterable[CommandSession], session: CommandSession, args: list[bytes], now: float) -> None:
    """Show one request to those who watch and are willing to listen: not to one that leaves or wants no replies."""
    origin = session.address.encode()
    line = b"+%.6f [%d %b] %b\r\n" % (now, session.db, origin, b" ".join([quoted(arg) for arg in args]))
    for monitor in monitors:
        if not (monitor.closing or monitor.replies_off or monitor.skip_replies & 1):
            monitor.send(line)


@command(
    "monitor",
    arity=1,
    flags="admin noscript loading stale",
    group="server",
    since="1.0.0",
    summary="Listen for all requests received by the server in real time",
)
def monitor(session: CommandSession, args: list[bytes]) -> Reply:
    """Who watches already gets no second answer."""
    if session.deny_blocking:
        raise CommandError(b"ERR MONITOR isn't allowed for DENY BLOCKING client")
    if session in session.instance.monitors:
        return NO_REPLY
    session.instance.monitors[session] = None
    return OK
