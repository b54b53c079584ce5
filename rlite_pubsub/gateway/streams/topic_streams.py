"""Streams of topics that are open: all who want the same topic in the same form share one reading of it.

Law 6: `Streams` replays from a place and goes on live; it is told of the topic's changes from before its first look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.events.event_log import EventLog, Form
from rlite_pubsub.gateway.http.operation import Request
from rlite_pubsub.gateway.http.request import Receive
from rlite_pubsub.gateway.streams.streams import Streams
from rlite_pubsub.gateway.streams.waves import Waves
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.keyspace.topic.followers import Followers


class _Open(NamedTuple):
    """Streams of one topic in one form, and how they hear of it."""

    streams: Streams
    listener: Callable[[], None]


class TopicStreams:
    """All of one server, but those of the event bus."""

    def __init__(self, settings: Settings, followers: Followers, keyspace: Keyspace, waves: Waves) -> None:
        self._settings = settings
        self._followers = followers
        self._keyspace = keyspace
        self._waves = waves
        self._open: dict[Form, _Open] = {}

    def close(self) -> None:
        """End every stream."""
        for each in self._open.values():
            each.streams.close()

    async def serve(
        self, request: Request, form: Form, asked: str | None, since: Id | None, receive: Receive | None = None
    ) -> None:
        """Stream a topic from where `Streams.start` says, until `receive` (by default the request's) says that the peer
        is gone, or the server goes. Raises StoreError."""
        there = self._open.get(form)
        key = event.DATABASE, form.topic
        if there is None:
            settings = self._settings
            streams = Streams(
                EventLog(self._keyspace, form),
                lambda: float(settings["http-heartbeat"]),
                lambda: int(settings["http-retry"]),
                self._waves,
            )
            there = self._open[form] = _Open(streams, streams.note)
            self._followers.listen(key, there.listener)
        try:
            there.streams.expected += 1
            start = there.streams.start(asked, since)
            await there.streams.serve(start, None, request.headers, receive or request.receive, request.send)
        finally:
            there.streams.expected -= 1
            if not there.streams.expected and self._open.get(form) is there:
                del self._open[form]
                self._followers.unlisten(key, there.listener)
