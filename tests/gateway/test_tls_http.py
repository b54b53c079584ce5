"""HTTPS: the same gateway behind a handshake, its certificate renewed while it serves; and bodies that do not come."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from certificates import Authority
from http_server import HttpServer
from patience import PATIENCE_S, until
from ports import free_port

ServeHttp = Callable[..., HttpServer]


class HttpsServer:
    """Speaks HTTPS on one port and HTTP on another."""

    def __init__(self, serve: ServeHttp, folder: Path, *flags: str) -> None:
        self.authority = Authority(folder / "certificates")
        certificate, key = self.authority.issue("server")
        self.port = free_port()
        words = ["--http-tls-port", str(self.port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
        self.process = serve(*words, "--tls-ca-cert-file", str(self.authority.file), *flags)

    def connect(self, name: str | None = None) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self.authority.file))
        if name is not None:
            context.load_cert_chain(*self.authority.issue(name))
        return http.client.HTTPSConnection("localhost", self.port, timeout=PATIENCE_S, context=context)

    def ask(self, method: str, path: str, body: bytes = b"", name: str | None = None) -> tuple[int, bytes]:
        connection = self.connect(name)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


@pytest.fixture
def https(serve_http: ServeHttp, tmp_path: Path) -> Callable[..., HttpsServer]:
    return lambda *flags: HttpsServer(serve_http, tmp_path, *flags)


def test_events_and_streams_come_over_https_as_over_http(https: Callable[..., HttpsServer]) -> None:
    server = https()
    stream = server.connect()
    stream.request("GET", "/api/events", headers={"Last-Event-ID": "latest"})
    reading = stream.getresponse()
    assert reading.status == 200
    status, answer = server.ask("POST", "/api/events?type=tea", b"hello")
    assert status == 200
    wanted = json.loads(answer)["id"]
    lines = iter(reading.readline, b"")
    assert any(line == f"id: {wanted}\n".encode() for line in lines)
    assert server.process.ask("GET", "/healthz")[0] == 200
    stream.close()


def test_plain_http_at_the_port_of_https_gets_nowhere(https: Callable[..., HttpsServer]) -> None:
    server = https()
    plain = http.client.HTTPConnection("localhost", server.port, timeout=PATIENCE_S)
    with pytest.raises((http.client.HTTPException, OSError)):
        plain.request("GET", "/healthz")
        plain.getresponse()
    assert server.ask("GET", "/healthz")[0] == 200


def test_certificate_of_https_is_renewed_while_streams_go_on(https: Callable[..., HttpsServer]) -> None:
    server = https()
    stream = server.connect()
    stream.request("GET", "/api/events", headers={"Last-Event-ID": "latest"})
    reading = stream.getresponse()
    certificate, key = server.authority.issue("renewed")
    with server.process.connect() as peer:
        assert peer.do("CONFIG", "SET", "tls-cert-file", certificate, "tls-key-file", key) == b"OK"
        assert b"Unable to update TLS" in str(peer.do("CONFIG", "SET", "tls-cert-file", "/nonexistent")).encode()
    until(lambda: _subject(server) == "renewed", "the new certificate")
    server.ask("POST", "/api/events?type=tea", b"hello")
    assert any(line == b"event: tea\n" for line in iter(reading.readline, b""))
    stream.close()
    assert server.process.end() == 0


def _subject(server: HttpsServer) -> str:
    connection = server.connect()
    connection.connect()
    shown = connection.sock.getpeercert()
    connection.close()
    return str(shown["subject"][0][0][1])


def test_certificate_names_the_user_of_https_if_asked(https: Callable[..., HttpsServer]) -> None:
    server = https(
        "--http-tls-auth-clients", "optional", "--tls-auth-clients-user", "cn", "--requirepass", "secret",
        "--user", "alice", "on", ">pass", "+@all", "~*", "&*",
    )
    assert server.ask("GET", "/api/topics")[0] == 401
    assert server.ask("GET", "/api/topics", name="alice")[0] == 200
    assert server.ask("GET", "/api/topics", name="nobody")[0] == 401


def test_client_must_show_a_certificate_where_https_asks_for_one(https: Callable[..., HttpsServer]) -> None:
    server = https("--http-tls-auth-clients", "yes")
    with pytest.raises(OSError):
        server.ask("GET", "/healthz")
    assert server.ask("GET", "/healthz", name="anybody")[0] == 200


def test_events_command_trusts_the_authority_it_is_given(https: Callable[..., HttpsServer]) -> None:
    server = https()
    words = [sys.executable, "-m", "rlite_pubsub", "events", "post", "--url", f"https://localhost:{server.port}"]
    words += ["tea", "hello"]
    assert subprocess.run(words, capture_output=True).returncode == 1
    trusting = subprocess.run([*words, "--cacert", str(server.authority.file)], capture_output=True)
    assert trusting.returncode == 0, trusting.stderr


def test_body_that_does_not_come_in_time_is_given_up(serve_http: ServeHttp) -> None:
    server = serve_http("--http-body-timeout", "1")
    with socket.create_connection(("127.0.0.1", server.http_port), PATIENCE_S) as dripping:
        dripping.sendall(b"POST /api/events?type=x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nabc")
        answer = b""
        while piece := dripping.recv(1 << 16):
            answer += piece
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"http-body-timeout" in answer
    assert server.ask("POST", "/api/events?type=x", b"0123456789")[0] == 200
