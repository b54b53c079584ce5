"""HTTP as a part of a running server: its parts put together, and what a turn has to do for it.

It costs a server that does not ask for it nothing, for it is not imported; and one whose gateway nobody uses one look
at an empty list for each turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from rlite_pubsub.engine.settings.settings import SettingError
from rlite_pubsub.engine.settings.tls_directives import TLS_CONTEXT
from rlite_pubsub.gateway.access.guard import Guard
from rlite_pubsub.gateway.access.logins import Logins
from rlite_pubsub.gateway.asking import Asking
from rlite_pubsub.gateway.channels import ChannelsResource, SubscribersResource
from rlite_pubsub.gateway.connections import ConnectionsResource
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.events.bus import EventsResource
from rlite_pubsub.gateway.events.event_log import EventLog
from rlite_pubsub.gateway.events.indexing import Indexing
from rlite_pubsub.gateway.events.posting import Posting
from rlite_pubsub.gateway.events.segments import EventSegments
from rlite_pubsub.gateway.figures import figures_of
from rlite_pubsub.gateway.groups import GroupsResource
from rlite_pubsub.gateway.history import History
from rlite_pubsub.gateway.http.entrance import Entrance
from rlite_pubsub.gateway.http.openapi import OpenApi
from rlite_pubsub.gateway.http.serving import HttpServing
from rlite_pubsub.gateway.keys import KeysResource
from rlite_pubsub.gateway.login import SessionResource
from rlite_pubsub.gateway.metrics import Metrics
from rlite_pubsub.gateway.pages import Pages
from rlite_pubsub.gateway.session import HttpSession
from rlite_pubsub.gateway.streams.channel_streams import ChannelListener, ChannelStreams
from rlite_pubsub.gateway.streams.retained_streams import Presence, RetainedStreams
from rlite_pubsub.gateway.streams.streams import Streams
from rlite_pubsub.gateway.streams.topic_streams import TopicStreams
from rlite_pubsub.gateway.streams.waves import Waves
from rlite_pubsub.gateway.topics import TopicsResource
from rlite_pubsub.gateway.watching import LiveSamples, WatchingResource

if TYPE_CHECKING:
    import ssl

    from rlite_pubsub.engine.doors import Doors
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.keyspace.keyspace import Keyspace

_KEY = (event.DATABASE, event.TOPIC)


class Gateway:
    """HTTP of one server."""

    def __init__(self, engine: Engine, keyspace: Keyspace, turn_soon: Callable[[], None]) -> None:
        settings, users, pause = engine.settings, engine.users, engine.pause
        assert engine.keeping is not None
        self._settings = settings
        self._followers = engine.followers
        waves = Waves()
        session = partial(HttpSession, engine)
        self._segments = EventSegments(
            settings, keyspace, engine.keeping.retention, turn_soon, engine.call_later
        )
        self.posting = Posting(session, keyspace, pause, self._segments, engine.hub.agenda, turn_soon)
        self.streams = Streams(
            EventLog(keyspace), lambda: float(settings["http-heartbeat"]), lambda: int(settings["http-retry"]), waves
        )
        self._indexing = Indexing(keyspace, engine.call_later)
        figures = figures_of(engine)
        self.metrics = Metrics(figures, keyspace, self.posting, self.streams, lambda: settings["appendfsync"])
        engine.key_commit.time_commits(self.metrics.committed)
        self._samples = LiveSamples(figures, keyspace, lambda: int(settings["http-retry"]), turn_soon)
        self._history = History(self._samples.unwatched, self.metrics.take_worst_lag)
        logins = Logins(users, engine.clock)
        asking = Asking(session, pause, turn_soon)
        self._topic_streams = TopicStreams(settings, engine.followers, keyspace, waves)
        self._channel_streams = ChannelStreams(
            lambda client, user: ChannelListener(engine, client, user, waves), settings, waves, turn_soon
        )
        retained_streams = RetainedStreams(
            lambda client, user, is_kept: Presence(engine, client, user, waves, is_kept),
            engine.hub,
            keyspace,
            asking,
            self._topic_streams,
            turn_soon,
        )
        data = keyspace.environment
        resources = (
            EventsResource(self.posting, self.streams),
            ChannelsResource(
                engine.hub,
                engine.channel_rates,
                asking,
                self._channel_streams,
                retained_streams,
                turn_soon,
                keyspace.clock_ms,
            ),
            TopicsResource(self.posting, asking, self._topic_streams),
            GroupsResource(keyspace, asking, turn_soon),
            SubscribersResource(asking, lambda: figures.now_ms),
            ConnectionsResource(asking, lambda: figures.now_ms),
            KeysResource(asking),
            SessionResource(logins, settings, lambda: bool(settings["http-tokens"]) or not users.default.is_open),
            WatchingResource(
                lambda: engine.key_commit.failure or data.room.full or data.safety.failure,
                data.last_commit,
                self.metrics,
                self._samples,
                self._history,
                figures.warnings,
                turn_soon,
            ),
        )
        self._entrance = Entrance(
            Guard(settings, users, engine.acl_log, engine.clock, logins),
            OpenApi(resources, lambda: bool(settings["http-tokens"]) or not users.default.is_open),
            Pages(),
            lambda: int(settings["http-max-body"]),
        )
        self._plain: HttpServing | None = None
        self._secure: HttpServing | None = None

    @property
    def port(self) -> int:
        """The TCP port of plain HTTP."""
        return self._plain.port if self._plain is not None else 0

    def start(self, loop: asyncio.AbstractEventLoop, doors: Doors) -> None:
        """Listen and serve. Raises CannotListen, and TlsError."""
        settings, entrance = self._settings, self._entrance
        addresses, backlog = settings["http-bind"], settings["tcp-backlog"]
        port, tls_port = settings["http-port"], settings["http-tls-port"]
        context = self._context() if tls_port else None
        if port:
            self._plain = HttpServing(settings, entrance, loop, doors.tcp(addresses, port, backlog))
        if tls_port:
            self._secure = HttpServing(settings, entrance, loop, doors.tcp(addresses, tls_port, backlog), context)
            for name in TLS_CONTEXT:
                settings.on_change(name, self._renew)
        self._followers.listen(_KEY, self._note)
        self._segments.limit_soon()
        self._indexing.note()
        self.metrics.watch(loop)
        self._history.begin(loop)

    async def stop(self) -> None:
        """Answer what is under way, end the streams, close every connection."""
        servings = [serving for serving in (self._plain, self._secure) if serving is not None]
        if not servings:
            return
        self.streams.close()
        self._topic_streams.close()
        self._channel_streams.close()
        self._samples.close()
        self._indexing.close()
        self.metrics.close()
        self._history.close()
        for serving in servings:
            await serving.end()
        self.posting.close()
        self._followers.unlisten(_KEY, self._note)

    def _context(self) -> ssl.SSLContext:
        from rlite_pubsub.engine.settings.tls import make_context

        return make_context(self._settings, self._settings["http-tls-auth-clients"])

    def _renew(self, _: object) -> None:
        """CONFIG SET of what a context of TLS is made of. Raises SettingError."""
        from rlite_pubsub.engine.settings.tls import TlsError

        assert self._secure is not None
        try:
            self._secure.renew(self._context())
        except TlsError as failure:
            raise SettingError("Unable to update TLS configuration. Check server logs.") from failure

    def _note(self) -> None:
        self.streams.note()
        self._indexing.note()
        self._segments.note()
