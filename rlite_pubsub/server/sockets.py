"""What sockets tell: their addresses, and which bytes the peer has not acknowledged."""

from __future__ import annotations

import fcntl
import socket
import struct
import sys
import termios

# -- What of a socket's bytes the peer has not acknowledged, as the kernel tells it (Linux; elsewhere: what is written
# has arrived). For TCP these are bytes that the peer's kernel has not confirmed. For a unix socket they are bytes that
# the peer has not read, and somewhat more, for the kernel counts its own overhead with them; none are none in either
# case.

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


def is_loopback(host: str) -> bool:
    """Whether a numeric address is on this machine's loopback."""
    return host.startswith("127.") or host in ("::1", "::ffff:127.0.0.1")


def spelled(host: str, port: int) -> str:
    """`ip:port`, the ip in brackets if it has colons."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def local_address(sock: socket.socket) -> str:
    """Our end of a connection."""
    try:
        address = sock.getsockname()
    except OSError:
        return "?:0"
    return spelled(address[0], address[1]) if isinstance(address, tuple) else f"{address}:0"
