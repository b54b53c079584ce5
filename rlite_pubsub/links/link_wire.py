"""A connection in RESP3, to the store or to another server: requests go out in one order, and in one stream replies and
pushes come back. What comes is parsed in C and handed on in lists, for a link has many messages at a time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import NoneType
from typing import Any, Final, Protocol, cast

import hiredis
from redis.asyncio.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import ConnectionError, InvalidResponse, ResponseError

from rlite_pubsub.embedded.loop_line import LoopLine
from rlite_pubsub.protocol.bounded import BoundedReader, ReplyLimits
from rlite_pubsub.pubsub.kinds import KINDS

READ_BYTES: Final = 256 * 1024
_NOTHING: Final = object()
_MESSAGES: Final = {b"message": 3, b"smessage": 3, b"pmessage": 4}
_CONFIRMATIONS: Final = frozenset([word for kind in KINDS for word in (kind.subscribed, kind.unsubscribed)])

Request = list[bytes]
pack: Final = cast("Callable[[tuple[bytes, ...]], bytes]", hiredis.pack_command)
Pushed = Callable[[list[list[Any]]], None]
"""Takes what was pushed, in its order."""


class ByteStream(Protocol):
    """What a wire reads and writes."""

    is_remote: bool
    bytes_in: int
    bytes_out: int

    async def read(self) -> bytes:
        """Return what has come; nothing at the end."""

    def write(self, requests: list[Request]) -> None:
        """Send all of them, in order."""

    async def drain(self) -> None:
        """Wait until the other side has taken most of it."""

    async def close(self) -> None:
        """Leave."""


class _Raw:
    """redis-py's connection, which has connected and logged in: from then on its bytes."""

    _reader: Any
    _writer: Any

    async def read_bytes(self) -> bytes:
        data: bytes = await self._reader.read(READ_BYTES)
        return data

    def write_bytes(self, data: bytes) -> None:
        if self._writer is None:
            raise ConnectionError("the connection is closed")
        self._writer.write(data)

    async def drain_bytes(self) -> None:
        await self._writer.drain()


class RawConnection(_Raw, Connection):
    """Over TCP."""


class RawTlsConnection(_Raw, SSLConnection):
    """Over TLS."""


class RawUnixConnection(_Raw, UnixDomainSocketConnection):
    """Over a unix socket."""


AnyConnection = RawConnection | RawTlsConnection | RawUnixConnection


class ServerStream:
    """To another server."""

    is_remote = True

    def __init__(self, connection: AnyConnection) -> None:
        """One that is connected."""
        self._connection = connection
        self.bytes_in = self.bytes_out = 0

    async def read(self) -> bytes:
        data = await self._connection.read_bytes()
        self.bytes_in += len(data)
        return data

    def write(self, requests: list[Request]) -> None:
        self.write_packed(b"".join([pack(tuple(request)) for request in requests]))

    def write_packed(self, data: bytes) -> None:
        """Send requests that are packed already."""
        self.bytes_out += len(data)
        self._connection.write_bytes(data)

    async def drain(self) -> None:
        await self._connection.drain_bytes()

    async def close(self) -> None:
        await self._connection.disconnect(nowait=True)


class StoreStream:
    """To the store, as a program has it open: a request is executed before `write` returns."""

    is_remote = False

    def __init__(self, folder: str) -> None:
        self._line = LoopLine(folder)
        self.line = self._line
        self.bytes_in = self.bytes_out = 0

    async def read(self) -> bytes:
        data = await self._line.read()
        self.bytes_in += len(data)
        return data

    def write(self, requests: list[Request]) -> None:
        self._line.writelines(requests)

    async def drain(self) -> None:
        """Others have their turn."""
        await asyncio.sleep(0)

    async def close(self) -> None:
        self._line.close()


class LinkWire:
    """Has a task of its own, which reads until `close`, or until the stream ends."""

    def __init__(self, stream: ByteStream, pushed: Pushed | None = None) -> None:
        self.stream = stream
        self._pushed = pushed
        reader = hiredis.Reader(notEnoughData=_NOTHING, replyError=ResponseError, protocolError=InvalidResponse)
        self._reader = BoundedReader(reader, ReplyLimits(), _NOTHING, InvalidResponse)
        self._expected: deque[tuple[int, list[Any], asyncio.Future[list[Any]]]] = deque()
        self._failure: BaseException | None = None
        self._task = asyncio.ensure_future(self._read())

    @property
    def ended(self) -> asyncio.Task[None]:
        """Is done when there will be nothing more; it raises why."""
        return self._task

    def send(self, requests: list[Request]) -> asyncio.Future[list[Any]]:
        """Send requests; return their replies, in order, an error as an exception. Raises ConnectionError."""
        future = self._expect(len(requests))
        self.stream.write(requests)
        return future

    def _expect(self, count: int) -> asyncio.Future[list[Any]]:
        """Return what becomes of so many requests, which go out now. Raises ConnectionError."""
        if self._failure is not None:
            raise ConnectionError(str(self._failure)) from self._failure
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._expected.append((count, [], future))
        return future

    def subscribe(self, requests: list[Request]) -> None:
        """Requests that are answered by pushes alone; one that is refused ends the wire."""
        self.stream.write(requests)

    async def ask(self, *request: bytes) -> Any:
        """Send one request; return its reply. Raises what the other side answers, and ConnectionError."""
        (reply,) = await self.send([list(request)])
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def close(self) -> None:
        """Nobody reads any more."""
        self._task.cancel()
        await asyncio.wait([self._task])
        await self.stream.close()

    async def _read(self) -> None:
        try:
            while True:
                data = await self.stream.read()
                if not data:
                    raise ConnectionError("the other side has closed the connection")
                self._reader.feed(data)
                self._sort()
        except BaseException as failure:
            self._failure = failure
            for _, _, future in self._expected:
                if not future.done():
                    future.set_exception(ConnectionError(str(failure)))
                    future.exception()  # those who wait hear of it; nobody else needs to
            raise

    def _sort(self) -> None:
        gets, expected, is_remote = self._reader.gets, self._expected, self.stream.is_remote
        pushes: list[list[Any]] = []
        while (found := gets()) is not _NOTHING:
            if isinstance(found, hiredis.PushNotification):
                if is_remote and not _is_push(found):
                    raise InvalidResponse("the other side pushes what no server does")
                pushes.append(found)
                continue
            if not expected:
                raise found if isinstance(found, Exception) else ConnectionError("a reply to no request")
            count, replies, future = expected[0]
            replies.append(found)
            if len(replies) == count:
                expected.popleft()
                if not future.done():
                    future.set_result(replies)
        if pushes and self._pushed is not None:
            self._pushed(pushes)


def _is_push(push: list[Any]) -> bool:
    """Whether it has the parts that the one who hears it takes for granted."""
    word = push[0] if push else None
    if not isinstance(word, bytes):
        return False
    length = _MESSAGES.get(word)
    if length is not None:
        return len(push) == length and [type(part) for part in push[1:]] == [bytes] * (length - 1)
    return word not in _CONFIRMATIONS or (len(push) == 3 and isinstance(push[1], (bytes, NoneType)))


class ServerWire(LinkWire):
    """To another server."""

    stream: ServerStream

    def send_packed(self, requests: bytes, count: int) -> asyncio.Future[list[Any]]:
        """Like `send`, for so many requests that are packed already."""
        future = self._expect(count)
        self.stream.write_packed(requests)
        return future
