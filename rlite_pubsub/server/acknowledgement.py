"""What of a socket's bytes the peer has not acknowledged, as the kernel tells it (Linux; elsewhere: what is written has
arrived).

For TCP these are bytes that the peer's kernel has not confirmed. For a unix socket they are bytes that the peer has not
read, and somewhat more, for the kernel counts its own overhead with them; none are none in either case.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import sys
import termios

_INT = struct.Struct("i")
_ALL = sys.maxsize


def unacknowledged_bytes(sock: socket.socket) -> int:
    """More than anybody has ever sent, where the kernel will not tell: then nothing has surely arrived."""
    if sys.platform != "linux":
        return 0
    try:
        answer = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(_INT.size))  # SIOCOUTQ has the same number
    except (OSError, ValueError):
        return _ALL
    return int(_INT.unpack(answer)[0])
