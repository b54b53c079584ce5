"""HTTP as a part of a running server: its sockets, uvicorn in the server's own loop, and what a turn has to do for it.

It costs a server that does not ask for it nothing, for it is not imported; and one whose gateway nobody uses one look
at an empty list for each turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import uvicorn
from starlette.exceptions import HTTPException

from rlite_pubsub.gateway.access.guard import Guard
from rlite_pubsub.gateway.asking import Asking
from rlite_pubsub.gateway.channels import Channels
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.events.bus import Events
from rlite_pubsub.gateway.events.event_log import EventLog
from rlite_pubsub.gateway.events.indexing import Indexing
from rlite_pubsub.gateway.events.posting import Posting
from rlite_pubsub.gateway.groups import Groups
from rlite_pubsub.gateway.http.connection import Connection
from rlite_pubsub.gateway.http.entrance import Entrance
from rlite_pubsub.gateway.http.openapi import OpenApi
from rlite_pubsub.gateway.http.operation import table
from rlite_pubsub.gateway.metrics import Metrics
from rlite_pubsub.gateway.pages import pages
from rlite_pubsub.gateway.streams.streams import Streams
from rlite_pubsub.gateway.streams.waves import Waves
from rlite_pubsub.gateway.subscribers import Subscribers
from rlite_pubsub.gateway.topics import Topics
from rlite_pubsub.gateway.watching import Watching, refused
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.topics.topic_settings import UNSAID, RetentionLimits

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.keyspace.keyspace import Keyspace

log = logging.getLogger("rlite_pubsub")

MAX_CONNECTIONS = 10_000
"""Beyond these one is told to come back later."""
GRACE_SECONDS = 2
"""A request under way, or a slow stream, is given so long to end."""
_KEY = (event.DATABASE, event.TOPIC)


class _Uvicorn(uvicorn.Server):
    """Signals are the server's affair."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Gateway:
    """One server's."""

    def __init__(self, engine: Engine, keyspace: Keyspace, turn_soon: Callable[[], None]) -> None:
        settings = engine.settings
        self._engine = engine
        self._keyspace = keyspace
        self._turn_soon = turn_soon
        self._events = EventLog(keyspace)
        waves = Waves()
        self.posting = Posting(engine, keyspace, turn_soon)
        self.posting.on_created = self._limit
        self.streams = Streams(
            self._events, lambda: float(settings["http-heartbeat"]), lambda: int(settings["http-retry"]), waves
        )
        self._indexing = Indexing(engine, keyspace)
        self.metrics = Metrics(engine, keyspace, self.posting, self.streams)
        engine.turn.time_commits(self.metrics.committed)
        asking = Asking(engine, keyspace, turn_soon)
        self._topics = Topics(engine, keyspace, self.posting, asking, waves)
        self._channels = Channels(engine, asking, waves, turn_soon)
        self._pages = pages(engine, keyspace, self.posting, self.metrics, turn_soon)
        self._pages.add_exception_handler(HTTPException, refused)
        events = Events(self.posting, self.streams)
        openapi = OpenApi(lambda: bool(settings["http-tokens"]) or asking.is_guarded)
        openapi.operations = table(
            (
                events,
                self._channels,
                self._topics,
                Groups(keyspace, asking, turn_soon),
                Subscribers(asking, lambda: int(engine.clock() * 1000)),
                Watching(self._pages),
                openapi,
            )
        )
        self._entrance = Entrance(
            Guard(engine), events, openapi.operations, self._pages, lambda: int(settings["http-max-body"])
        )
        self._sockets: list[socket.socket] = []
        self._uvicorn: _Uvicorn | None = None
        self._running: asyncio.Task[None] | None = None
        for name in ("events-segments", "events-segment-size"):
            settings.on_change(name, lambda _: self._limit_existing())

    @property
    def port(self) -> int:
        """The TCP port."""
        return int(self._sockets[0].getsockname()[1]) if self._sockets else 0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Listen and serve. Raises OSError where it can't listen."""
        settings = self._engine.settings
        self._sockets = _listening(settings["http-bind"], settings["http-port"], settings["tcp-backlog"])
        _make_room_for_descriptors()
        config = uvicorn.Config(
            self._entrance,
            http=Connection,
            lifespan="off",
            access_log=False,
            log_config=None,
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=75,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=2 * GRACE_SECONDS,
        )
        self._uvicorn = _Uvicorn(config)
        self._engine.followers.listen(_KEY, self._note)
        self._limit_existing()
        self._indexing.note()
        self.metrics.watch(loop)
        self._running = loop.create_task(self._uvicorn.serve(self._sockets))

    async def stop(self) -> None:
        """Answer what is under way, end the streams, close every connection."""
        if self._uvicorn is None or self._running is None:
            return
        self.streams.close()
        self._topics.close()
        self._channels.close()
        self._pages.close()
        self._indexing.close()
        self.metrics.close()
        self._uvicorn.should_exit = True
        cutting = asyncio.get_running_loop().call_later(GRACE_SECONDS, self._cut_off)
        try:
            await self._running
        except Exception:
            log.exception("HTTP has ended badly")
        cutting.cancel()
        self.posting.close()
        self._engine.followers.unlisten(_KEY, self._note)
        for listening in self._sockets:
            listening.close()

    def _cut_off(self) -> None:
        """Whoever takes nothing does not hold up the end."""
        assert self._uvicorn is not None
        for connection in list(self._uvicorn.server_state.connections):
            if isinstance(connection, Connection):
                connection.transport.abort()

    def _note(self) -> None:
        self.streams.note()
        self._indexing.note()

    # -- retention

    def _limit(self, topic: Topic) -> None:
        """So many segments of such a size are kept; what is too much goes, oldest first, within a second."""
        settings, keeping = self._engine.settings, self._engine.keeping
        size_bytes = settings["events-segments"] * settings["events-segment-size"]
        if keeping is None:
            return
        has = keeping.retention.settings(topic)
        wanted = RetentionLimits(UNSAID, UNSAID, size_bytes) if size_bytes else None
        if wanted is not None and (has is None or has.own != wanted):
            keeping.retention.set_own(topic, wanted)

    def _limit_existing(self) -> None:
        if self._engine.settings["events-segments"]:
            topic = self._keyspace.for_change(*_KEY)
            if isinstance(topic, Topic):
                self._limit(topic)
            self._turn_soon()


def _make_room_for_descriptors() -> None:
    """Connections of HTTP come on top of Redis clients, as far as the system lets them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        wanted = soft + MAX_CONNECTIONS
        granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))


def _listening(addresses: tuple[bytes, ...], port: int, backlog: int) -> list[socket.socket]:
    """A socket for every address; one with a leading minus may be missing on this machine. Raises OSError."""
    sockets: list[socket.socket] = []
    for word in addresses:
        address = word.decode()
        host = {"*": "0.0.0.0", "::*": "::"}.get(address.removeprefix("-"), address.removeprefix("-"))
        try:
            sockets.append(_listen(host, port, backlog))
        except OSError as failure:
            if address.startswith("-") and failure.errno != errno.EADDRINUSE:
                continue
            for each in sockets:
                each.close()
            raise
    return sockets


def _listen(host: str, port: int, backlog: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if listening.family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind((host, port))
        listening.listen(backlog)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening
