"""Keyspace notifications: what happened to a key, published to its subscribers.

`notify-keyspace-events` says which classes of events are published and in which of the two forms. They are published
where the change is made, before anything published later, and leave with the turn: after its commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from rlite_pubsub.pubsub.kinds import CHANNELS
from rlite_pubsub.pubsub.publish import publish
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.pubsub.hub import Hub

log: Final = logging.getLogger("rlite_pubsub")


class Notifications:
    """Publishes the keyspace events of one engine."""

    def __init__(self, settings: Settings, hub: Hub) -> None:
        self._hub = hub
        self.classes = ""  # those that are published at all
        self._held: list[Callable[[], None]] | None = None  # what to do after the reply
        self._by_key = False
        self._by_event = False
        self._follow(settings["notify-keyspace-events"])
        settings.on_change("notify-keyspace-events", self._follow)

    def _follow(self, letters: bytes) -> None:
        text = letters.decode()
        self._by_key, self._by_event = "K" in text, "E" in text
        self.classes = text if self._by_key or self._by_event else ""

    def wants(self, letter: str) -> bool:
        """Return whether events of this class are wanted."""
        return letter in self.classes

    def tell(self, letter: str, event: bytes, database: int, key: bytes) -> None:
        """Publish an event of this class (a letter of the setting), if the class is wanted."""
        if letter not in self.classes:
            return
        if self._by_key:
            self._publish(b"__keyspace@%d__:%b" % (database, key), event)
        if self._by_event:
            self._publish(b"__keyevent@%d__:%b" % (database, event), key)

    def hold(self) -> None:
        """Hold back what the command under way publishes, until its reply is out."""
        if self.classes and self._held is None:
            self._held = []

    @property
    def is_holding(self) -> bool:
        """True if `release` is due, after the reply."""
        return self._held is not None

    def release(self) -> None:
        """Publish what was held."""
        held, self._held = self._held, None
        for act in held or ():
            act()

    def drop(self) -> None:
        """Drop what was held: it was not done."""
        self._held = None

    def in_order(self, act: Callable[[], None]) -> None:
        """Do something that publishes or replies, in its place among the held events."""
        if self._held is not None:
            self._held.append(act)
        else:
            act()

    def _publish(self, channel: bytes, payload: bytes) -> None:
        if self._held is not None:
            self._held.append(partial(self._publish, channel, payload))
            return
        try:
            publish(self._hub, CHANNELS, channel, [b"%d\r\n%b" % (len(payload), payload)], aside=True)
        except StoreError as failure:  # the change itself is not to be refused for it
            log.warning("Can't publish a keyspace event: %s", failure)
