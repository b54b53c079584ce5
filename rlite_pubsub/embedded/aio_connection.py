"""redis-py's asyncio connection, with a session of this process where the streams would be."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from redis._parsers import _AsyncHiredisParser
from redis.asyncio.connection import UnixDomainSocketConnection

from rlite_pubsub.embedded.errors import UsedAfterFork
from rlite_pubsub.embedded.host import NO_OPTIONS, Host
from rlite_pubsub.embedded.loop_line import LoopLine
from rlite_pubsub.embedded.options import StoreOptions
from rlite_pubsub.embedded.request import request_of


class Parser(_AsyncHiredisParser):
    """redis-py's parser, which says what it leaves unread."""

    def on_disconnect(self) -> None:
        line = getattr(self, "_stream", None)  # there once it has been connected
        if isinstance(line, LoopLine) and self._reader is not None:
            line.is_unread = bool(self._reader.has_data())
        super().on_disconnect()  # type: ignore[no-untyped-call]


class Connection(UnixDomainSocketConnection):
    """To the store in the folder `path`. What concerns sockets alone (keep-alive, TLS, buffer sizes) has no effect."""

    def __init__(
        self, *, path: str | os.PathLike[str] = "", store_options: StoreOptions = NO_OPTIONS, **options: Any
    ) -> None:
        options["parser_class"] = Parser
        self._store_options = store_options
        super().__init__(path=os.fspath(path), **options)
        self._pid = os.getpid()

    async def connect_check_health(self, check_health: bool = True, retry_socket_connect: bool = True) -> None:
        if self.is_connected:
            return
        if self._pid != os.getpid():
            raise UsedAfterFork(self.path)
        # redis-py would make any failure a ConnectionError, and try again
        host = Host.open(self.path, self._store_options)
        try:
            await super().connect_check_health(check_health, retry_socket_connect)
        finally:
            host.close()

    async def _connect(self) -> None:
        self._reader = self._writer = LoopLine(self.path, self._store_options)  # type: ignore[assignment]

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """Execute requests as one turn."""
        if not self.is_connected:
            await self.connect_check_health(check_health=False)
        if check_health:
            await self.check_health()  # type: ignore[no-untyped-call]
        try:
            self._writer.writelines(command)  # type: ignore[union-attr]
        except BaseException:
            await self.disconnect(nowait=True)
            raise

    def pack_command(self, *args: Any) -> list[list[bytes]]:  # type: ignore[override]
        """A turn with one request."""
        return [request_of(self.encoder, args)]

    def pack_commands(self, commands: Iterable[Iterable[Any]]) -> list[list[bytes]]:  # type: ignore[override]
        """A turn with all of them."""
        return [request_of(self.encoder, tuple(args)) for args in commands]
