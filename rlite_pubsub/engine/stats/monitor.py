"""The output of MONITOR: every request, as it is executed, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession

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
    """Return `text` in quotes, with everything unprintable escaped (sdscatrepr)."""
    if text.isalnum():
        return b'"%b"' % text
    return b'"%b"' % b"".join(
        [_ESCAPED.get(byte) or (b"%c" % byte if 0x20 <= byte < 0x7F else b"\\x%02x" % byte) for byte in text]
    )


def feed_monitors(session: CommandSession, args: list[bytes]) -> None:
    """Show one request to the sessions that monitor, except those that are leaving or want no replies."""
    monitors = session.engine.monitors
    if not monitors:
        return
    now = session.engine.clock()
    origin = session.address.encode()
    line = b"+%.6f [%d %b] %b\r\n" % (now, session.db, origin, b" ".join([quoted(arg) for arg in args]))
    for monitor in monitors:
        if not (monitor.closing or monitor.replies_off or monitor.skip_replies & 1):
            monitor.send(line)
