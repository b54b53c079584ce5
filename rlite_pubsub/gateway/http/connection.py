"""One connection of HTTP: uvicorn's, within bounds.

Promises:
 - The head of a request, and what frames its body, has a limit: nobody is known yet who could be trusted with more. The
   parser has none of its own. Nor is it waited for longer than for a next request.
 - Who says HTTP/1.0 knows no chunks: a stream's end is the connection's.
 - What a peer does wrong is in the log at level verbose, as with Redis clients: nobody fills the log from outside.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from rlite_pubsub.gateway.http.request import Problem

MAX_HEAD_BYTES = 64 * 1024
"""More than one read of the socket beyond it is never kept."""
_VERBOSE = 15
_LOG = logging.getLogger("rlite_pubsub.http")
_LOG.setLevel(_VERBOSE)


def _as_verbose(record: logging.LogRecord) -> bool:
    """uvicorn warns of peers only."""
    if record.levelno == logging.WARNING:
        record.levelno, record.levelname = _VERBOSE, "VERBOSE"
    return _LOG.parent is None or _LOG.parent.isEnabledFor(record.levelno)


_LOG.addFilter(_as_verbose)


class Connection(HttpToolsProtocol):
    """From a peer's coming to its going."""

    def __init__(self, *of_uvicorn: Any, **named: Any) -> None:
        super().__init__(*of_uvicorn, **named)
        self.logger = _LOG
        self._head_bytes = 0  # and whatever else has come that is no body, since the last piece of one
        self._head_until = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_until = self.loop.time() + self.timeout_keep_alive
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(Problem(431, "Too much of a head", f"A request's head has at most {MAX_HEAD_BYTES} bytes."))
        elif self.cycle is None or self.cycle.response_complete:
            self._wait_for_head()

    def _wait_for_head(self) -> None:
        """uvicorn ends this with whatever comes next."""
        self.timeout_keep_alive_task = self.loop.call_at(self._head_until, self.timeout_keep_alive_handler)

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        self._head_until = self.loop.time() + self.timeout_keep_alive
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if self.scope["http_version"] != "1.1":
            _end_with_the_connection(self.cycle)

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn."""
        self._refuse(Problem(400, "Bad request", msg))

    def _refuse(self, problem: Problem) -> None:
        """What can't be read is answered, unless another answer is under way."""
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            head = b"HTTP/1.1 %d %b\r\ncontent-type: application/problem+json\r\ncontent-length: %d\r\n"
            said = head % (problem.status, problem.title.encode(), len(problem.body))
            self.transport.write(said + b"connection: close\r\n\r\n" + problem.body)
        self.transport.close()


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
