"""HTTP's sockets and connections: uvicorn in the server's own loop, within bounds.

Promises:
 - The head of a request, and what frames its body, has a limit: nobody is known yet who could be trusted with more. The
   parser has none of its own. Nor is it waited for longer than for a next request, nor for its body longer than
   `http-body-timeout`.
 - Who says HTTP/1.0 knows no chunks: a stream's end is the connection's.
 - What a peer does wrong is in the log at level verbose, as with Redis clients: nobody fills the log from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from rlite_pubsub.engine.settings.tls import common_name
from rlite_pubsub.gateway.http.request import Problem

if TYPE_CHECKING:
    import ssl

    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.gateway.http.entrance import Entrance

MAX_CONNECTIONS = 10_000
"""Beyond these, requests are answered with 503."""
GRACE_SECONDS = 2
"""A request under way, or a slow stream, is given so long to end."""
MAX_HEAD_BYTES = 64 * 1024
"""More than one read of the socket beyond it is never kept."""
_VERBOSE = 15
_SERVER_LOG = logging.getLogger("rlite_pubsub")
_LOG = logging.getLogger("rlite_pubsub.http")
_LOG.setLevel(_VERBOSE)


def _as_verbose(record: logging.LogRecord) -> bool:
    """uvicorn warns of peers only."""
    if record.levelno == logging.WARNING:
        record.levelno, record.levelname = _VERBOSE, "VERBOSE"
    return _LOG.parent is None or _LOG.parent.isEnabledFor(record.levelno)


_LOG.addFilter(_as_verbose)


class HttpConnection(HttpToolsProtocol):
    """An HTTP connection, from a peer's coming to its going."""

    def __init__(self, *of_uvicorn: Any, **named: Any) -> None:
        super().__init__(*of_uvicorn, **named)
        self.logger = _LOG
        self._head_bytes = 0  # and whatever else has come that is no body, since the last piece of one
        self._head_until = 0.0
        self._body_timer: asyncio.TimerHandle | None = None
        self._shown_name: str | None = None
        self._cycles: list[RequestResponseCycle] = []  # requests that are not answered yet

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_until = self.loop.time() + self.timeout_keep_alive
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self._shown_name = common_name(tls.getpeercert())
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_body_timer()
        self._end_cycles()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # which uvicorn forgets where the peer has reset it

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(Problem(431, "Headers too large", f"Headers may have at most {MAX_HEAD_BYTES} bytes."))
        elif self.cycle is None or self.cycle.response_complete:
            self._wait_for_head()

    def _wait_for_head(self) -> None:
        """uvicorn ends this with whatever comes next."""
        self.timeout_keep_alive_task = self.loop.call_at(self._head_until, self.timeout_keep_alive_handler)

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        self._head_until = self.loop.time() + self.timeout_keep_alive
        super().on_message_begin()
        if self._shown_name is not None:
            self.scope["tls_name"] = self._shown_name  # type: ignore[typeddict-unknown-key]

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._cycles = [cycle for cycle in self._cycles if not cycle.response_complete]
        self._cycles.append(self.cycle)
        if self.scope["http_version"] != "1.1":
            _end_with_the_connection(self.cycle)
        if self.cycle.more_body and self._body_timer is None:
            config = self.config
            assert isinstance(config, _Config)
            self._body_timer = self.loop.call_later(config.body_seconds(), self._end_waiting_for_body)

    def on_message_complete(self) -> None:
        self._stop_body_timer()
        super().on_message_complete()

    def _stop_body_timer(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _end_waiting_for_body(self) -> None:
        self._body_timer = None
        if not self.transport.is_closing():
            self._refuse(Problem(408, "Request timeout", "The body did not arrive in time (http-body-timeout)."))

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn."""
        self._refuse(Problem(400, "Bad request", msg))

    def _refuse(self, problem: Problem) -> None:
        """Answer a request that cannot be read, unless another answer is under way."""
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            head = b"HTTP/1.1 %d %b\r\ncontent-type: application/problem+json\r\ncontent-length: %d\r\n"
            said = head % (problem.status, problem.title.encode(), len(problem.body))
            self.transport.write(said + b"connection: close\r\n\r\n" + problem.body)
        self.transport.close()
        self._end_cycles()

    def _end_cycles(self) -> None:
        """A handler that still answers must not write to a closed connection: uvicorn tells only the last of a
        pipeline."""
        for cycle in self._cycles:
            cycle.disconnected = True
            cycle.message_event.set()


def _end_with_the_connection(cycle: RequestResponseCycle) -> None:
    """An answer without a length is sent as it is."""
    framed = cycle.send
    has_no_length = False

    async def send(message: Any) -> None:
        nonlocal has_no_length
        if message["type"] == "http.response.start":
            has_no_length = not any(name.lower() == b"content-length" for name, _ in message.get("headers", ()))
            cycle.chunked_encoding = False if has_no_length else None
        elif has_no_length:
            cycle.expected_content_length = len(message.get("body", b""))
        await framed(message)

    cycle.send = send  # type: ignore[method-assign]


class _Uvicorn(uvicorn.Server):
    """Signals are the server's affair, and so is TLS, whose context may be renewed while it serves."""

    def __init__(self, config: uvicorn.Config, context: ssl.SSLContext | None) -> None:
        super().__init__(config)
        self._context = context
        self._alone = asyncio.Lock()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on duplicates, so that a renewal can let go of the sockets it takes over from."""
        self.config.ssl = self._context
        await super().startup([each.dup() for each in sockets or ()])

    async def renew(self, context: ssl.SSLContext, sockets: list[socket.socket]) -> None:
        """Listen again, in another context; existing connections go on."""
        async with self._alone:
            if self.should_exit:
                return
            before = self.servers if self.started else []
            self._context = context
            await self.startup(sockets)
            for each in before:
                each.close()


class _Config(uvicorn.Config):
    """uvicorn's configuration, with what our connections need besides."""

    def __init__(self, settings: Settings, entrance: Entrance, **named: Any) -> None:
        super().__init__(entrance, **named)
        self._settings = settings

    def body_seconds(self) -> float:
        """Return how long the body of a request may take."""
        return float(self._settings["http-body-timeout"])


class HttpServing:
    """Serves one HTTP port, from listening to the end of the last connection."""

    def __init__(
        self,
        settings: Settings,
        entrance: Entrance,
        loop: asyncio.AbstractEventLoop,
        sockets: list[socket.socket],
        context: ssl.SSLContext | None = None,
    ) -> None:
        """Serves from now on what connects to these sockets, which listen; HTTPS in a context of TLS."""
        self._loop = loop
        self._renewals: set[asyncio.Task[None]] = set()
        self._sockets = sockets
        _make_room_for_descriptors()
        self._uvicorn = _Uvicorn(
            _Config(
                settings,
                entrance,
                http=HttpConnection,
                lifespan="off",
                access_log=False,
                log_config=None,
                ws="none",
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=75,
                limit_concurrency=MAX_CONNECTIONS,
                timeout_graceful_shutdown=2 * GRACE_SECONDS,
            ),
            context,
        )
        self._running = loop.create_task(self._uvicorn.serve(self._sockets))

    def renew(self, context: ssl.SSLContext) -> None:
        """Later connections are served in this context."""
        renewing = self._loop.create_task(self._uvicorn.renew(context, self._sockets))
        self._renewals.add(renewing)  # the loop itself would not keep it
        renewing.add_done_callback(self._renewals.discard)

    @property
    def port(self) -> int:
        """The TCP port."""
        return int(self._sockets[0].getsockname()[1]) if self._sockets else 0

    async def end(self) -> None:
        """Answer what is under way, and close every connection. A peer that takes nothing does not hold that up."""
        self._uvicorn.should_exit = True
        cutting = asyncio.get_running_loop().call_later(GRACE_SECONDS, self._cut_off)
        try:
            await self._running
        except Exception:
            _SERVER_LOG.exception("HTTP has ended badly")
        cutting.cancel()
        for listening in self._sockets:
            listening.close()

    def _cut_off(self) -> None:
        for connection in list(self._uvicorn.server_state.connections):
            if isinstance(connection, HttpConnection):
                connection.transport.abort()


def _make_room_for_descriptors() -> None:
    """HTTP connections come on top of Redis clients, if the system has room for them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        wanted = soft + MAX_CONNECTIONS
        granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
