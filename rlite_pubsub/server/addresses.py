"""Addresses as redis-server writes them."""

from __future__ import annotations

import socket


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
