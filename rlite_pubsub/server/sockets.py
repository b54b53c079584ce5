"""What sockets report: their addresses, and the bytes that the peer has not acknowledged."""

from __future__ import annotations

import fcntl
import socket
import struct
import sys
import termios
from contextlib import suppress

from rlite_pubsub.engine.stats.footprint import Traffic

# -- What of a socket's bytes the peer has not acknowledged, as the kernel tells it (Linux; elsewhere: what is written
# has arrived). For TCP these are bytes that the peer's kernel has not confirmed. For a unix socket they are bytes that
# the peer has not read, and somewhat more, for the kernel counts its own overhead with them; none are none in either
# case.

OUTPUT_QUEUE_IS_KNOWN = sys.platform == "linux"
_INT = struct.Struct("i")
_TCP_COUNTS = struct.Struct("=QQ")
_TCP_COUNTS_AT, _TCP_INFO_BYTES = 120, 136
"""tcpi_bytes_acked and tcpi_bytes_received, which are the same in every version of the structure that has them."""
NOBODY_KNOWS = sys.maxsize


def unacknowledged_bytes(sock: socket.socket) -> int:
    """More than anybody has ever sent, where the kernel will not tell: then nothing has surely arrived."""
    if not OUTPUT_QUEUE_IS_KNOWN:
        return 0
    try:
        answer = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(_INT.size))  # SIOCOUTQ has the same number
    except (OSError, ValueError):
        return NOBODY_KNOWS
    return int(_INT.unpack(answer)[0])


def traffic_of(sock: socket.socket) -> Traffic | None:
    """The bytes that a TCP connection has passed, if the kernel tells (Linux)."""
    if not OUTPUT_QUEUE_IS_KNOWN:
        return None
    try:
        told = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    except OSError:
        return None
    if len(told) < _TCP_INFO_BYTES:  # an old kernel
        return None
    acknowledged, received = _TCP_COUNTS.unpack_from(told, _TCP_COUNTS_AT)
    return Traffic(received, max(0, acknowledged - 1))  # what began the connection counts as one


def has_failed(sock: socket.socket) -> bool:
    """Return whether it was reset by its peer, or cannot tell. Ask only once: the kernel reports it once."""
    try:
        return bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
    except OSError:
        return True


def shut(sock: socket.socket) -> None:
    """Say that nothing more is said; the peer may have gone already."""
    with suppress(OSError):
        sock.shutdown(socket.SHUT_WR)


def is_loopback(host: str) -> bool:
    """Return whether a numeric address is on this machine's loopback."""
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
