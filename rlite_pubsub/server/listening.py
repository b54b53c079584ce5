"""Where a server listens: its addresses and its unix socket, from the start, by CONFIG SET, to the end."""

from __future__ import annotations

import errno
import logging
import socket
from typing import TYPE_CHECKING

from rlite_pubsub.engine.settings.settings import SettingError
from rlite_pubsub.server.listener import Listener, listen_tcp, listen_unix
from rlite_pubsub.server.startup import StartupError

if TYPE_CHECKING:
    from rlite_pubsub.server.node import Node

log = logging.getLogger("rlite_pubsub")

_BAD_PORT = "Unable to listen on this port. Check server logs."
_BAD_ADDRESS = "Failed to bind to specified addresses."


class Listening:
    """All listeners of one server."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._settings = node.settings
        self._listeners: list[Listener] = []

    @property
    def port(self) -> int:
        """The TCP port, 0 if there is none."""
        return next((listener.port for listener in self._listeners if listener.port), 0)

    def start(self, any_port: bool) -> None:
        """Listen as the settings say; with `any_port` on a free port, which they then name. Raises StartupError."""
        settings = self._settings
        port = settings["port"]
        if port or any_port:
            self._listeners += self._tcp(settings["bind"], 0 if any_port else port)
        path = settings["unixsocket"].decode()
        if path:
            sock = listen_unix(path, settings["unixsocketperm"], settings["tcp-backlog"])
            self._listeners.append(Listener(self._node, sock, path))
        if any_port:
            settings.set("port", [b"%d" % self.port])
        if not self._listeners:
            raise StartupError("Configured to not listen anywhere, exiting.")

    def stop(self) -> None:
        """Accept no longer."""
        self._close(list(self._listeners))

    def follow_port(self, _: int) -> None:
        """CONFIG SET port. Raises SettingError."""
        self._move(_BAD_PORT)

    def follow_bind(self, _: tuple[bytes, ...]) -> None:
        """CONFIG SET bind. Raises SettingError."""
        self._move(_BAD_ADDRESS)

    def _move(self, refusal: str) -> None:
        """The new sockets first, and then the old ones are closed."""
        port = self._settings["port"]
        old = [listener for listener in self._listeners if listener.port]
        same_port = [listener.host for listener in old if listener.port == port]
        if same_port:  # on other addresses: it must be let go first
            self._close(old)
        try:
            new = self._tcp(self._settings["bind"], port) if port else []
        except StartupError as failure:
            log.warning("%s", failure)
            self._listeners += self._tcp(tuple(host.encode() for host in same_port), port)
            raise SettingError(refusal) from failure
        self._close([listener for listener in old if listener.is_open])
        self._listeners += new

    def _tcp(self, addresses: tuple[bytes, ...], port: int) -> list[Listener]:
        """Listen on every address; one with a leading minus may be missing on this machine. Raises StartupError."""
        sockets: list[socket.socket] = []
        for word in addresses:
            address = word.decode()
            host = address.removeprefix("-")
            host = {"*": "0.0.0.0", "::*": "::"}.get(host, host)
            try:
                sockets.append(listen_tcp(host, port, self._settings["tcp-backlog"]))
            except OSError as failure:
                text = f"Could not create server TCP listening socket {host}:{port}: bind: {failure.strerror}"
                if address.startswith("-") and failure.errno != errno.EADDRINUSE:
                    log.debug(text)
                    continue
                for sock in sockets:
                    sock.close()
                raise StartupError(text) from failure
            port = port or sockets[0].getsockname()[1]
        return [Listener(self._node, sock) for sock in sockets]

    def _close(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.close()
            self._listeners.remove(listener)
