"""The retention of events: this many segments of this size, and the oldest events go.

Promises:
 - The limit holds at every commit of posted events: what is too much goes in the commit that would exceed it. What
   Redis clients append to the topic is held against it in the next turn.
 - An event that is larger than all segments together is refused: it could only be stored by removing all others, and
   then itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rlite_pubsub.gateway.events import event
from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.topic_settings import UNSAID, RetentionLimits

if TYPE_CHECKING:
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.keyspace.topic.retention import Retention

_LENGTH_DIGITS = 20
_FRAME_BYTES = len(encode_entry(entry_ids.MAX, event.words(b"", b""))) - sum(map(len, event.words(b"", b"")))
_MOST_AROUND_BYTES = _FRAME_BYTES + 2 * _LENGTH_DIGITS
"""What an entry has around its fields and values, at most."""


class EventSegments:
    """The limits of the topic of events, by `events-segments` and `events-segment-size`."""

    def __init__(
        self,
        settings: Settings,
        keyspace: Keyspace,
        retention: Retention,
        turn_soon: Callable[[], None],
        call_later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._settings = settings
        self._keyspace = keyspace
        self._retention = retention
        self._turn_soon = turn_soon
        self._call_later = call_later
        self._is_waiting = False
        for name in ("events-segments", "events-segment-size"):
            settings.on_change(name, lambda _: self.limit_soon())

    @property
    def size_bytes(self) -> int:
        """The most bytes of events that are kept; 0: there is no limit."""
        return int(self._settings["events-segments"] * self._settings["events-segment-size"])

    def most_entry_bytes(self) -> int:
        """Return the most bytes that the fields and values of an event may have together; 0: there is no limit."""
        return _most_entry_bytes(self.size_bytes)

    def limit(self) -> None:
        """Give the topic its limits, and trim, in this turn. Raises StoreError."""
        size_bytes = self.size_bytes
        if not size_bytes:
            return
        topic = self._keyspace.for_change(event.DATABASE, event.TOPIC)
        if not isinstance(topic, Topic):
            return
        has = self._retention.settings(topic)
        wanted = RetentionLimits(UNSAID, UNSAID, size_bytes)
        if has is None or has.own != wanted:
            rules = self._retention.append_rules(topic)
            before = _most_entry_bytes(has.own.size_bytes) if has is not None and has.own.size_bytes != UNSAID else 0
            most = _most_entry_bytes(size_bytes)
            if rules.max_entry_bytes in (0, before) or rules.max_entry_bytes > most:  # else it is a user's own
                self._retention.set_append_rules(topic, rules._replace(max_entry_bytes=most))
            self._retention.set_own(topic, wanted)
        self._retention.hold(topic)

    def limit_soon(self) -> None:
        """Trim in a turn of its own, if nobody else is about to have one."""
        if self._settings["events-segments"]:
            self.limit()
            self._turn_soon()

    def note(self) -> None:
        """Note that the topic has changed, whoever has changed it."""
        if not self._is_waiting and self.size_bytes and self._is_too_much():
            self._is_waiting = True
            self._call_later(0.0, self._hold)

    def _is_too_much(self) -> bool:
        try:
            found = self._keyspace.read_topic(
                event.DATABASE, event.TOPIC, lambda _, topic: 0 if topic is None else topic.size_bytes
            )
        except StoreError:
            return False
        return found > self.size_bytes

    def _hold(self) -> None:
        self._is_waiting = False
        keyspace = self._keyspace
        if keyspace.turn.failure is not None or not keyspace.times.may_expire:
            return
        try:
            self.limit()
        except Exception as failure:  # retention tries again, and says so
            keyspace.fail(failure)


def _most_entry_bytes(size_bytes: int) -> int:
    return max(1, size_bytes - _MOST_AROUND_BYTES) if size_bytes else 0
