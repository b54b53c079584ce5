"""The addresses of a server, as URLs without users."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.server.listening import Listening

_EVERYWHERE = ("*", "0.0.0.0", "::*", "::")


def redis_urls(settings: Settings, listening: Listening) -> Iterator[str]:
    """Return the URLs for Redis clients."""
    host = _host(settings["bind"])
    if listening.port:
        yield f"redis://{host}:{listening.port}"
    if listening.tls_port:
        yield f"rediss://{host}:{listening.tls_port}"
    if settings["unixsocket"]:
        yield f"unix://{settings['unixsocket'].decode()}"


def http_urls(settings: Settings) -> Iterator[str]:
    """Return the URLs for HTTP."""
    host = _host(settings["http-bind"])
    if settings["http-port"]:
        yield f"http://{host}:{settings['http-port']}/"
    if settings["http-tls-port"]:
        yield f"https://{host}:{settings['http-tls-port']}/"


def _host(addresses: tuple[bytes, ...]) -> str:
    """The name to reach it by; this machine's if it listens on all addresses."""
    first = addresses[0].decode().removeprefix("-") if addresses else "127.0.0.1"
    if first in _EVERYWHERE:
        return socket.gethostname()
    return f"[{first}]" if ":" in first else first
