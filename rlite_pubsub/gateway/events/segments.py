"""The retention of events: this many segments of this size. What is too much is soon removed, oldest first. What is too
much goes soon, oldest first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rlite_pubsub.gateway.events import event
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.topics.topic_settings import UNSAID, RetentionLimits

if TYPE_CHECKING:
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.keyspace.topic.retention import Retention


class EventSegments:
    """The limits of the topic of events, by `events-segments` and `events-segment-size`."""

    def __init__(
        self, settings: Settings, keyspace: Keyspace, retention: Retention, turn_soon: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._keyspace = keyspace
        self._retention = retention
        self._turn_soon = turn_soon
        for name in ("events-segments", "events-segment-size"):
            settings.on_change(name, lambda _: self.limit_soon())

    def limit(self) -> None:
        """Trim in this turn."""
        size_bytes = self._settings["events-segments"] * self._settings["events-segment-size"]
        if not size_bytes:
            return
        topic = self._keyspace.for_change(event.DATABASE, event.TOPIC)
        if not isinstance(topic, Topic):
            return
        has = self._retention.settings(topic)
        wanted = RetentionLimits(UNSAID, UNSAID, size_bytes)
        if has is None or has.own != wanted:
            self._retention.set_own(topic, wanted)

    def limit_soon(self) -> None:
        """Trim in a turn of its own, if nobody else is about to have one."""
        if self._settings["events-segments"]:
            self.limit()
            self._turn_soon()
