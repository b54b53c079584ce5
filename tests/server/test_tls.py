"""TLS for Redis clients: the same server, behind a handshake."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from certificates import Authority
from patience import PATIENCE_S, until
from peer import Peer, request
from ports import free_port
from server_process import Serve, ServerProcess

from rlite_pubsub.server.secure_wire import SecureWire

BIG = 3 << 20
REDIS_CLI = os.environ.get("RLITE_TEST_REDIS_CLI", shutil.which("redis-cli"))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


class SecureServer:
    """One that speaks TLS, and nothing else unless flags say so."""

    def __init__(self, serve: Serve, authority: Authority, *flags: str) -> None:
        self.authority = authority
        certificate, key = authority.issue("server")
        self.tls_port = free_port()
        words = ["--tls-port", str(self.tls_port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
        words += ["--tls-ca-cert-file", str(authority.file), *flags]
        self.process: ServerProcess = serve(*words)

    def client(self, name: str | None = None, **options: object) -> redis.Redis:
        if name is not None:
            certificate, key = self.authority.issue(name)
            options |= {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
        return redis.Redis(
            port=self.tls_port, ssl=True, ssl_ca_certs=str(self.authority.file), **options  # type: ignore[arg-type]
        )

    def socket(self, receive_buffer_bytes: int | None = None) -> ssl.SSLSocket:
        raw = socket.socket()
        if receive_buffer_bytes is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        raw.settimeout(PATIENCE_S)
        raw.connect(("127.0.0.1", self.tls_port))
        return self.context().wrap_socket(raw, server_hostname="localhost")

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority.file))


Secure = Callable[..., SecureServer]


@pytest.fixture
def secure(serve: Serve, authority: Authority) -> Secure:
    return lambda *flags: SecureServer(serve, authority, *flags)


def test_client_speaks_over_tls_as_it_does_without(secure: Secure) -> None:
    server = secure("--tls-auth-clients", "no")
    with server.client() as client, server.process.connect() as plain:
        assert client.ping()
        subscription = client.pubsub()
        subscription.subscribe("news")
        subscription.get_message(timeout=PATIENCE_S)
        assert plain.do("PUBLISH", "news", "hello") == 1
        message = subscription.get_message(timeout=PATIENCE_S)
        assert message is not None and message["data"] == b"hello"
        assert client.xadd("topic", {"f": "v"})
        subscription.close()


def test_large_requests_and_replies_come_whole(secure: Secure) -> None:
    server = secure("--tls-auth-clients", "no")
    value = os.urandom(BIG)
    with server.client() as client:
        assert client.set("k", value)
        assert client.get("k") == value
        with client.pipeline(transaction=False) as pipeline:
            for _ in range(2000):
                pipeline.echo(b"x" * 100)
            assert pipeline.execute() == [b"x" * 100] * 2000


def test_peer_that_reads_late_gets_all_that_was_said_to_it(secure: Secure) -> None:
    server = secure("--tls-auth-clients", "no")
    value = os.urandom(BIG)
    with server.client() as client:
        client.set("k", value)
    with server.socket(receive_buffer_bytes=4096) as slow:
        slow.sendall(request("GET", "k") * 4 + request("QUIT"))
        until(lambda: _has_stalled(server), "a client that has stalled")
        reply = b"$%d\r\n%b\r\n" % (len(value), value)
        wanted = reply * 4 + b"+OK\r\n"
        got = bytearray()
        while piece := slow.recv(1 << 16):
            got += piece
        assert got == wanted


def _has_stalled(server: SecureServer) -> bool:
    with server.process.connect() as peer:
        return any(b"oll=0" not in line for line in peer.do("CLIENT", "LIST").splitlines())


def test_slow_subscriber_is_spilled_to_disk_and_gets_every_message_in_order(secure: Secure) -> None:
    server = secure("--tls-auth-clients", "no", "--spill-threshold", "1kb")
    with server.socket(receive_buffer_bytes=4096) as slow, server.process.connect() as publisher:
        slow.sendall(request("SUBSCRIBE", "c"))
        slow.recv(1 << 16)
        sent = [b"%05d" % number + b"x" * 1000 for number in range(5000)]
        for at in range(0, len(sent), 100):
            publisher.send(b"".join(request("PUBLISH", "c", message) for message in sent[at : at + 100]))
            assert publisher.replies(100) == [1] * 100
        wanted = b"".join(b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1005\r\n%b\r\n" % message for message in sent)
        got = bytearray()
        while len(got) < len(wanted):
            got += slow.recv(1 << 16)
        assert got == wanted


def test_one_byte_at_a_time_is_a_handshake_and_requests_too(secure: Secure) -> None:
    server = secure("--tls-auth-clients", "no")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = server.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", server.tls_port), PATIENCE_S) as raw:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def drip() -> None:
            for byte in outgoing.read():
                raw.sendall(bytes([byte]))

        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                drip()
                incoming.write(raw.recv(1 << 16))
        tls.write(request("ECHO", "hello"))
        drip()
        got = b""
        while not got.endswith(b"hello\r\n"):
            incoming.write(raw.recv(1 << 16))
            try:
                got += tls.read(1 << 16)
            except ssl.SSLWantReadError:
                continue
        assert got == b"$5\r\nhello\r\n"


def test_request_that_comes_with_the_end_of_the_handshake_is_answered(secure: Secure) -> None:
    server = secure("--tls-auth-clients", "no")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = server.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", server.tls_port), PATIENCE_S) as raw:
        with pytest.raises(ssl.SSLWantReadError):
            tls.do_handshake()
        raw.sendall(outgoing.read())
        while True:
            incoming.write(raw.recv(1 << 16))
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                continue
        tls.write(request("PING"))
        raw.sendall(outgoing.read())  # our Finished and the request, in one segment
        while True:
            incoming.write(raw.recv(1 << 16))
            try:
                assert tls.read(100) == b"+PONG\r\n"
                break
            except ssl.SSLWantReadError:
                continue


def test_who_speaks_no_tls_is_closed_and_others_go_on(secure: Secure) -> None:
    server = secure("--tls-auth-clients", "no")
    with server.client() as client:
        for data in (b"PING\r\n", b"", b"\x16\x03\x01\xff\xff", os.urandom(1000)):
            with Peer(server.tls_port) as peer:
                peer.send(data)
                peer.socket.shutdown(socket.SHUT_WR)
                assert peer.is_closed()
        assert client.ping()
        until(lambda: len(client.client_list()) == 1, "the end of the others")


@pytest.mark.parametrize(
    ("setting", "name", "is_let_in"),
    [
        ("yes", None, False),
        ("yes", "alice", True),
        ("optional", None, True),
        ("optional", "alice", True),
        ("no", None, True),
    ],
)
def test_clients_show_a_certificate_where_they_must(
    secure: Secure, setting: str, name: str | None, is_let_in: bool
) -> None:
    server = secure("--tls-auth-clients", setting)
    client = server.client(name)
    if is_let_in:
        assert client.ping()
    else:
        with pytest.raises(redis.ConnectionError):
            client.ping()


def test_certificate_of_another_authority_is_refused(secure: Secure, tmp_path: Path) -> None:
    server = secure("--tls-auth-clients", "optional")
    certificate, key = Authority(tmp_path / "strangers", "stranger").issue("alice")
    with pytest.raises(redis.ConnectionError):
        server.client(ssl_certfile=str(certificate), ssl_keyfile=str(key)).ping()


def test_certificate_names_the_user_if_asked_and_if_there_is_one(secure: Secure) -> None:
    server = secure("--tls-auth-clients-user", "cn", "--user", "alice", "on", ">secret", "+acl|whoami")
    with server.client("alice") as alice, server.client("bob") as bob:
        assert alice.acl_whoami() == "alice"
        with pytest.raises(redis.exceptions.NoPermissionError):
            alice.ping()
        assert bob.acl_whoami() == "default"
        bob.acl_setuser("alice", enabled=False)
    with server.client("alice") as alice:
        assert alice.acl_whoami() == "default"


def test_certificate_is_renewed_without_a_restart(secure: Secure) -> None:
    server = secure("--tls-auth-clients", "no")
    certificate, key = server.authority.issue("renewed")
    with server.client() as before:
        assert _subject(server) == "server"
        assert before.config_set("tls-cert-file", str(certificate), "tls-key-file", str(key))
        assert _subject(server) == "renewed"
        assert before.ping()
        with pytest.raises(redis.ResponseError, match="Unable to update TLS configuration"):
            before.config_set("tls-cert-file", "/nonexistent")
        assert before.config_get("tls-cert-file") == {"tls-cert-file": str(certificate)}
        assert _subject(server) == "renewed"
        kept, _ = server.authority.issue("again")
        for name, new in (("renewed.crt", kept), ("renewed.key", kept.with_suffix(".key"))):
            shutil.copy(new, certificate.with_name(name))
        assert _subject(server) == "renewed"  # the files have changed, and nobody has said so
        assert before.config_set("tls-cert-file", str(certificate), "tls-key-file", str(key))
        assert _subject(server) == "again"
        other = free_port()
        assert before.config_set("tls-port", other)
        server.tls_port = other
        assert _subject(server) == "again"
        assert before.ping()


def _subject(server: SecureServer) -> str:
    with server.socket() as peer:
        shown = peer.getpeercert()
        assert shown is not None
        return str(shown["subject"][0][0][1])  # type: ignore[index]


def test_tls_is_begun_by_config_set(serve: Serve, authority: Authority) -> None:
    server = serve()
    certificate, key = authority.issue("server")
    port = free_port()
    with server.connect() as peer:
        refused = peer.do("CONFIG", "SET", "tls-port", port)
        assert b"Unable to update TLS configuration" in str(refused).encode()
        words = ["tls-cert-file", str(certificate), "tls-key-file", str(key), "tls-auth-clients", "no"]
        assert peer.do("CONFIG", "SET", *words, "tls-port", port) == b"OK"
        with redis.Redis(port=port, ssl=True, ssl_ca_certs=str(authority.file)) as client:
            assert client.ping()
        assert peer.do("CONFIG", "SET", "tls-port", 0) == b"OK"
        with pytest.raises(ConnectionRefusedError):
            Peer(port)


_CIPHER = "ECDHE-ECDSA-AES128-SHA256"


def test_protocols_and_ciphers_are_those_that_were_said(secure: Secure) -> None:
    server = secure("--tls-auth-clients", "no", "--tls-protocols", "TLSv1.2", "--tls-ciphers", _CIPHER)
    with server.socket() as peer:
        assert peer.version() == "TLSv1.2"
        assert peer.cipher()[0] == _CIPHER  # type: ignore[index]
    with server.client() as client:
        client.config_set("tls-protocols", "TLSv1.3", "tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256")
        with pytest.raises(redis.ResponseError):
            client.config_set("tls-protocols", "SSLv9")
        with pytest.raises(redis.ResponseError):
            client.config_set("tls-ciphersuites", "NONE_OF_THESE")
    with server.socket() as peer:
        assert peer.version() == "TLSv1.3"
        assert peer.cipher()[0] == "TLS_CHACHA20_POLY1305_SHA256"  # type: ignore[index]


def test_key_with_a_passphrase_is_read_and_the_passphrase_is_shown_nowhere(
    serve: Serve, authority: Authority
) -> None:
    certificate, key = authority.issue("locked", passphrase=b"open sesame")
    port = free_port()
    words = ["--tls-port", str(port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
    words += ["--tls-auth-clients", "no"]
    server = serve(*words, "--tls-key-file-pass", "open sesame")
    with redis.Redis(port=port, ssl=True, ssl_ca_certs=str(authority.file)) as client:
        assert client.ping()
    assert b"sesame" not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
    assert "sesame" not in server.log()
    wrong = serve(*words, "--tls-key-file-pass", "wrong", port=free_port(), wait=False)
    assert wrong.exit_code() == 1
    assert "Failed to load certificate" in wrong.log() + wrong.output()


@pytest.mark.parametrize(("flags", "what"), [
    (["--tls-port", "1"], "No tls-cert-file configured!"),
    (["--tls-port", "1", "--tls-cert-file", "x"], "No tls-key-file configured!"),
    (["--tls-port", "1", "--tls-cert-file", "x", "--tls-key-file", "y"], "Either tls-ca-cert-file"),
])
def test_server_that_cannot_speak_tls_as_told_does_not_start(serve: Serve, flags: list[str], what: str) -> None:
    server = serve(*flags, wait=False)
    assert server.exit_code() == 1
    assert what in server.log() + server.output()


def test_password_in_a_file_and_password_in_a_flag_are_not_in_the_process_list(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("from a file\n")
    for flags, password in ((["--requirepass-file", str(tmp_path / "password")], "from a file"),
                            (["--requirepass", "from a flag"], "from a flag")):
        server = serve(*flags, folder=tmp_path / flags[0])
        with server.connect() as peer:
            assert str(peer.do("PING")).startswith("NOAUTH")
            assert peer.do("AUTH", password) == b"OK"
        shown = Path(f"/proc/{server.pid}/cmdline").read_bytes()
        assert password.encode() not in shown
        assert b"--port" in shown
    both = serve(*flags, "--requirepass-file", str(tmp_path / "password"), folder=tmp_path / "both", wait=False)
    assert both.exit_code() == 1


def test_server_that_listens_beyond_this_machine_says_what_is_missing_once(serve: Serve) -> None:
    server = serve("--bind", "0.0.0.0")
    warnings = [line for line in server.log().splitlines() if "beyond this machine" in line]
    assert len(warnings) == 1
    assert "without a password" in warnings[0] and "without TLS" in warnings[0]


@pytest.mark.skipif(not REDIS_CLI, reason="there is no redis-cli")
def test_redis_cli_speaks_tls_with_it(secure: Secure) -> None:
    server = secure("--tls-auth-clients", "no")
    said = subprocess.run(
        [str(REDIS_CLI), "--tls", "--cacert", str(server.authority.file), "-p", str(server.tls_port), "PING"],
        capture_output=True, timeout=PATIENCE_S,
    )
    assert said.stdout == b"PONG\n", said.stderr


class SlowSocket:
    """Takes a few bytes at a time, and sometimes none."""

    def __init__(self) -> None:
        self.taken = bytearray()
        self.room = 0
        self.to_read = b""

    def send(self, data: bytes) -> int:
        if not self.room:
            raise BlockingIOError
        count = min(self.room, len(data))
        self.taken += data[:count]
        self.room -= count
        return count

    def recv(self, size: int) -> bytes:
        if not self.to_read:
            raise BlockingIOError
        data, self.to_read = self.to_read[:size], self.to_read[size:]
        return data


def test_wire_owes_no_more_than_a_step_and_takes_nothing_while_it_owes(authority: Authority) -> None:
    certificate, key = authority.issue("server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    slow = SlowSocket()
    slow.room = 1 << 20
    wire = SecureWire(slow, context)  # type: ignore[arg-type]
    owing: list[None] = []
    wire.call_when_owing(lambda: owing.append(None))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    trusting = ssl.create_default_context(cafile=str(authority.file))
    peer = trusting.wrap_bio(incoming, outgoing, server_hostname="localhost")
    is_known = False
    while not is_known:
        try:
            peer.do_handshake()
        except ssl.SSLWantReadError:
            pass
        slow.to_read = outgoing.read()
        is_known = wire.shake_hands()
        incoming.write(bytes(slow.taken))
        slow.taken.clear()
    message = os.urandom(500_000)
    slow.room = 1000
    taken = wire.send(message)
    assert 0 < taken < 100_000
    assert 0 < len(wire.owed) < 100_000
    assert len(owing) == 1
    got = b""
    while taken < len(message) or wire.owed:
        slow.room = 7777
        try:
            taken += wire.send(message[taken:]) if taken < len(message) else 0
            wire.flush()
        except BlockingIOError:
            pass
        incoming.write(bytes(slow.taken))
        slow.taken.clear()
        try:
            while True:
                got += peer.read(1 << 16)
        except ssl.SSLWantReadError:
            pass
    assert got == message
