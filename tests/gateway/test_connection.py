"""What comes over a connection of HTTP before anybody knows whose it is."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import socket
import struct
import weakref
from collections.abc import Callable, Iterator

import pytest
from http_server import HttpServer
from patience import PATIENCE_S, until, until_async
from uvicorn import Config
from uvicorn.server import ServerState

from rlite_pubsub.gateway.http.request import Receive, Scope, Send
from rlite_pubsub.gateway.http.serving import MAX_HEAD_BYTES, HttpConnection


def connected(server: HttpServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.http_port), PATIENCE_S)


def sent(peer: socket.socket, parts: Iterator[bytes]) -> int:
    """How many bytes go out until the other side has had enough."""
    count = 0
    try:
        for part in parts:
            peer.sendall(part)
            count += len(part)
    except OSError:
        pass
    return count


def endless(start: bytes, more: bytes) -> Iterator[bytes]:
    yield start
    for _ in range(1000):
        yield more * (MAX_HEAD_BYTES // len(more))


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"GET /healthz?a=", b"a"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ", b"a"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", b"X-Many: 1\r\n"),
        (b"POST /api/channels/c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", b"X-Trailer: 1\r\n"),
        (b"POST /api/channels/c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"a"),
    ],
)
def test_head_without_an_end_is_cut_off(server: HttpServer, start: bytes, more: bytes) -> None:
    before = server.own_memory_bytes()
    with connected(server) as peer:
        assert sent(peer, endless(start, more)) < 40 << 20  # what sockets hold, and more
        until(lambda: server.ask("GET", "/healthz")[0] == 200, "an answer to others")
    assert server.own_memory_bytes() - before < 8 << 20


def test_head_that_is_too_long_is_told_so(server: HttpServer) -> None:
    with connected(server) as peer:
        peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
        until(lambda: server.ask("GET", "/healthz")[0] == 200, "that to be read")
        peer.sendall(b"a" * (MAX_HEAD_BYTES + 1))
        answer = peer.makefile("rb").read()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ") and b"application/problem+json" in head
    assert json.loads(body)["status"] == 431


def test_long_head_within_the_limit_is_read(server: HttpServer) -> None:
    status, _, _ = server.ask("GET", "/healthz", X_Long="a" * (MAX_HEAD_BYTES - 1024))
    assert status == 200


def test_what_is_no_request_is_told_so_and_is_not_in_the_log(server: HttpServer) -> None:
    with connected(server) as peer:
        peer.sendall(b"*1\r\n$4\r\nPING\r\n")
        answer = peer.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 400 ") and json.loads(answer.partition(b"\r\n\r\n")[2])["status"] == 400
    assert "Invalid" not in server.log() + server.output()


BODY = [
    (b"Content-Length: 8388608", b"x" * (8 << 20)),
    (b"Transfer-Encoding: chunked", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
]


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize(("framing", "part"), BODY, ids=["length", "chunks"])
def test_who_sends_too_large_a_body_to_its_end_gets_an_answer_and_no_reset(
    serve: Callable[..., HttpServer], framing: bytes, part: bytes, version: bytes
) -> None:
    server = serve("--http-max-body", "1000")
    with connected(server) as peer:
        peer.sendall(b"POST /api/channels/c HTTP/%b\r\nHost: localhost\r\n%b\r\n\r\n" % (version, framing))
        peer.sendall(part[:70_000])
        answer = peer.makefile("rb")
        assert answer.readline().startswith(b"HTTP/1.1 413 ")
        peer.sendall(part[70_000:])
        if framing.endswith(b"chunked"):
            peer.sendall(part * 100 + b"0\r\n\r\n")
        assert json.loads(answer.read().partition(b"\r\n\r\n")[2])["status"] == 413


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_connection_is_closed_behind_the_refusal_of_a_body_that_has_come_at_once(
    serve: Callable[..., HttpServer], version: bytes
) -> None:
    """Its end is not waited for once more."""
    server = serve("--http-max-body", "1000")
    with connected(server) as peer:
        body = b"258\r\n" + b"x" * 0x258 + b"\r\n"
        head = b"POST /api/channels/c HTTP/%b\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" % version
        peer.sendall(head + 2 * body + b"0\r\n\r\n")
        peer.settimeout(PATIENCE_S)
        answer = peer.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 413 ") and answer.count(b"HTTP/1.1") == 1


def test_rest_of_a_body_that_is_too_large_is_not_waited_for_without_an_end(serve: Callable[..., HttpServer]) -> None:
    server = serve("--http-max-body", "1000", "--http-body-timeout", "1")
    with connected(server) as peer:
        peer.sendall(b"POST /api/channels/c HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8388608\r\n\r\nx")
        answer = peer.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 413 ") and answer.count(b"HTTP/1.1") == 1
    assert "Traceback" not in server.log() + server.output()


@pytest.mark.parametrize("version", [b" HTTP/1.0", b""])
def test_reader_of_http_1_0_gets_a_stream_without_chunks(server: HttpServer, version: bytes) -> None:
    id = server.post("t", "x" * 600_000)
    with connected(server) as peer:
        peer.sendall(b"GET /api/events" + version + b"\r\n\r\n")
        lines = peer.makefile("rb")
        head = []
        while line := lines.readline().strip():
            head.append(line)
        assert b"connection: close" in head and not any(line.startswith(b"transfer-encoding") for line in head)
        assert [lines.readline() for _ in range(2)] == [b"retry: 2000\n", b"\n"]
        assert [lines.readline() for _ in range(3)] == [
            b"event: t\n", b"id: %b\n" % id.encode(), b"data: %b\n" % (b"x" * 600_000)
        ]  # fmt: skip
        server.process.send_signal(signal.SIGTERM)
        assert lines.read() == b"\n"


def test_reader_of_http_1_0_gets_an_answer_of_known_length(server: HttpServer) -> None:
    with connected(server) as peer:
        peer.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert peer.makefile("rb").read().endswith(b'\r\n\r\n{"status":"ok"}')


def test_readers_who_take_nothing_do_not_hold_up_the_end(server: HttpServer) -> None:
    for _ in range(20):
        server.post("t", "x" * 500_000)
    peers = [connected(server) for _ in range(5)]
    for peer in peers:
        peer.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert peer.recv(1)
    server.process.send_signal(signal.SIGTERM)
    assert server.exit_code() == 0
    assert "Traceback" not in server.log() + server.output()
    for peer in peers:
        peer.close()


@pytest.mark.parametrize("request_before", [False, True])
async def test_connection_that_was_reset_is_let_go_at_once(request_before: bool) -> None:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    config = Config(answer, http=HttpConnection, timeout_keep_alive=3600, log_config=None, lifespan="off")
    config.load()
    made: list[weakref.ref[HttpConnection]] = []

    def make() -> HttpConnection:
        connection = HttpConnection(config, ServerState(), {})
        made.append(weakref.ref(connection))
        return connection

    listening = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
    if request_before:
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
    peer = writer.get_extra_info("socket")
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()

    async def is_let_go() -> bool:
        gc.collect()
        return bool(made) and made[0]() is None

    await until_async(is_let_go, "the end of the connection")
    listening.close()


async def nobody(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("nothing is asked for")


@pytest.mark.parametrize("said", [b"", b"GET /healthz HTTP/1.1\r\nHo"])
async def test_head_that_does_not_come_is_not_waited_for_for_ever(said: bytes) -> None:
    config = Config(nobody, http=HttpConnection, timeout_keep_alive=1, log_config=None, lifespan="off")
    config.load()
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: HttpConnection(config, ServerState(), {}), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
    writer.write(said)
    assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
    writer.close()
    listening.close()
