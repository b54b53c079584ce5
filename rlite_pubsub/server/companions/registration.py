"""A server makes itself known: to who looks for servers on this machine, and in a directory (`register`).

Promise: who can't be told is no reason not to serve. A server that may write nowhere is not found, and logs why.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from rlite_pubsub.discovery.card import ServerCard
from rlite_pubsub.discovery.machine import PostedCard, folder_of_user
from rlite_pubsub.server.listening import StartupError
from rlite_pubsub.version import __version__

if TYPE_CHECKING:
    from rlite_pubsub.discovery.registrar import Registrar
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.storage.store import Store

log = logging.getLogger("rlite_pubsub")

LOOK_SECONDS = 1.0
"""How soon other addresses (CONFIG SET port) are known."""


class Registration:
    """Registers one server; of several workers the first does it."""

    def __init__(self, settings: Settings, store: Store, addresses: Callable[[], tuple[str, ...]]) -> None:
        self._settings = settings
        self._store = store
        self._addresses = addresses
        self._card: ServerCard | None = None
        self._posted: PostedCard | None = None
        self._registrar: Registrar | None = None
        self._looked_at = 0.0

    def start(self, started_at: float) -> None:
        """The server listens. Raises StartupError where the directory's URL is none."""
        self._card = card = ServerCard(
            secrets.token_hex(16),
            socket.gethostname(),
            os.getpid(),
            str(self._store.folder.absolute()),
            self._told_addresses(),
            __version__,
            int(started_at * 1000),
        )
        url = self._settings["register"].decode()
        if url:
            from rlite_pubsub.discovery.registrar import Registrar

            try:
                self._registrar = Registrar(url, card, self._store)
            except ValueError as failure:
                raise StartupError(f"register: {failure}") from failure
        if self._settings["discoverable"]:
            try:
                self._posted = PostedCard(folder_of_user(), card)
            except OSError as failure:
                log.info("rlite-pubsub discover will not find this server: %s", failure)

    def cron(self, now: float) -> None:
        """Tell of other addresses. Raises OSError."""
        card = self._card
        if card is None or self._looked_at <= now < self._looked_at + LOOK_SECONDS:
            return
        self._looked_at = now
        addresses = self._told_addresses()
        if addresses == card.addresses:
            return
        self._card = card = replace(card, addresses=addresses)
        if self._registrar is not None:
            self._registrar.tell(card)
        if self._posted is not None:
            self._posted.tell(card)

    def stop(self) -> None:
        """The server ends."""
        if self._posted is not None:
            try:
                self._posted.leave()
            except OSError as failure:
                log.info("Left to the next rlite-pubsub discover: %s", failure)
        if self._registrar is not None:
            self._registrar.stop()
        self._card = self._posted = self._registrar = None

    def _told_addresses(self) -> tuple[str, ...]:
        said = self._settings["register-as"].decode()
        return (said,) if said else self._addresses()
