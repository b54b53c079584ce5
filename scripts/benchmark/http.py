"""Our server over HTTP: what is sent, and streams of events whose bytes are counted without being read.

A stream comes in chunks, whose sizes the server chooses. What is between them is read; what is in them the kernel
drops.
"""

from __future__ import annotations

import socket

from . import wire
from .client import Client, WrongAnswer
from .contestant import Server

ON = "--http-port {http_port}"
TOPIC = b"events"
TYPE = b"bench"
ID_BYTES = 36
_STATUS = b"HTTP/1.1 200 OK\r\n"
_MOST_HEAD_BYTES = 64 * 1024
_CHUNK_HEAD_BYTES = 18  # of any chunk whose size has 64 bits


def post(path: bytes, body: bytes) -> bytes:
    """A request."""
    return b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (path, len(body), body)


def proven_post(client: Client, request: bytes) -> bytes:
    """The whole answer to an event that was stored. All of them are equally long."""
    client.send(request)
    answer = b""
    while not answer.endswith(b'"}'):
        part = client.socket.recv(_MOST_HEAD_BYTES)
        answer += part
        if not part or not (answer.startswith(_STATUS) or _STATUS.startswith(answer)):
            raise WrongAnswer(f"POST was answered {answer[:200]!r}")
    return answer


def addition(body: bytes) -> bytes:
    """The same event as a Redis client adds it."""
    return wire.command(b"XADD", TOPIC, b"*", b"type", TYPE, b"body", body)


def event_bytes(body: bytes) -> int:
    """What a reader of the event bus gets of one."""
    return len(b"event: %b\nid: %b\ndata: %b\n\n" % (TYPE, b"-" * ID_BYTES, body))


class Stream:
    """One open stream. Only bytes of events are counted: what comes before the first of them has been read."""

    def __init__(self, server: Server, path: bytes) -> None:
        self._client = server.connect_http()
        self.socket: socket.socket = self._client.socket
        self._left = 0  # of the chunk, and what ends it
        self._client.send(b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % path)
        head = self._until(b"\r\n\r\n")
        if not head.startswith(_STATUS) or b"transfer-encoding: chunked" not in head:
            raise WrongAnswer(f"GET {path!r} was answered {head[:200]!r}")
        said = self.chunk()
        if not said.startswith(b"retry: "):
            raise WrongAnswer(f"the stream of {path!r} began with {said[:200]!r}")

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *failure: object) -> None:
        self._client.close()

    def fileno(self) -> int:
        return self._client.fileno()

    def chunk(self) -> bytes:
        """The next one, whole."""
        head = self._until(b"\r\n")
        size = int(head, 16)
        body = b""
        while len(body) < size + 2:
            part = self.socket.recv(size + 2 - len(body))
            if not part:
                raise WrongAnswer("the server closed a stream")
            body += part
        return body[:-2]

    def discard(self, buffer: bytearray) -> int:
        """How many bytes of events have arrived."""
        if not self._left:
            head = self.socket.recv(_CHUNK_HEAD_BYTES, socket.MSG_PEEK)
            digits, ends, _ = head.partition(b"\r\n")
            if not ends:
                if not head:
                    raise WrongAnswer("the server closed a stream")
                return 0  # the head of the chunk is not there yet
            self.socket.recv(len(digits) + 2)
            self._left = int(digits, 16) + 2
        try:
            count = self.socket.recv_into(buffer, min(self._left, len(buffer)), socket.MSG_TRUNC)
        except BlockingIOError:
            return 0  # nor is its body
        if not count:
            raise WrongAnswer("the server closed a stream")
        body_bytes = max(self._left - 2, 0)
        self._left -= count
        return min(count, body_bytes)

    def _until(self, end: bytes) -> bytes:
        """Byte by byte, for what follows is not to be taken."""
        got = b""
        while not got.endswith(end):
            part = self.socket.recv(1)
            if not part or len(got) > _MOST_HEAD_BYTES:
                raise WrongAnswer(f"the stream began with {got[:200]!r} and ended")
            got += part
        return got


def prove(streams: list[Stream], frame_end: bytes) -> None:
    """A message that every stream says, read before bytes are only counted."""
    for stream in streams:
        said = stream.chunk()
        if not said.endswith(frame_end):
            raise WrongAnswer(f"a stream said {said[:200]!r}, expected {frame_end[:80]!r}")
