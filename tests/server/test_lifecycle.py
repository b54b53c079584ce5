"""A server's two ends: it starts where it is told to, and stops in order, leaving nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from patience import until
from peer import Peer, request
from ports import free_port
from server_process import Serve, ServerProcess
from store_view import look, subscriber_files

STOPS = [signal.SIGTERM, signal.SIGINT]


def info(peer: Peer, field: str) -> str:
    text = peer.do("INFO", "everything").decode()
    return next((line.partition(":")[2] for line in text.splitlines() if line.startswith(field + ":")), "")


def assert_left_nothing(server: ServerProcess) -> None:
    assert subscriber_files(server.store_folder) == []
    view = look(server.store_folder)
    assert view.has_no_names and view.has_no_mail
    assert view.subscribers == 0
    assert "Traceback" not in server.log() + server.output()


# -- the end


@pytest.mark.parametrize("number", STOPS)
def test_signal_stops_in_order_with_1000_subscribers(serve: Serve, tmp_path: Path, number: signal.Signals) -> None:
    path, pidfile = tmp_path / "socket", tmp_path / "pid"
    server = serve("--unixsocket", str(path), "--pidfile", str(pidfile))
    with ExitStack() as peers:
        crowd = [peers.enter_context(server.connect()) for _ in range(1000)]
        for at, peer in enumerate(crowd):
            peer.send(request("SUBSCRIBE", "all", f"channel {at}"))
        for peer in crowd:
            peer.replies(2)
        assert path.exists() and pidfile.exists()
        assert server.end(number) == 0
        assert all(peer.is_closed() for peer in crowd)
    assert not path.exists()
    assert not pidfile.exists()
    assert f"Received {number.name} scheduling shutdown..." in server.log()
    assert_left_nothing(server)


@pytest.mark.parametrize("words", [("SHUTDOWN",), ("SHUTDOWN", "NOSAVE"), ("SHUTDOWN", "NOW", "FORCE")])
def test_shutdown_command_stops_in_order(serve: Serve, words: tuple[str, ...]) -> None:
    server = serve()
    subscriber, peer = server.connect(), server.connect()
    subscriber.do("SUBSCRIBE", "a")
    peer.send(request(*words))
    assert server.exit_code() == 0
    assert subscriber.is_closed() and peer.is_closed()
    assert_left_nothing(server)


def test_what_was_published_before_the_end_is_delivered(server: ServerProcess) -> None:
    subscriber, publisher = server.connect(), server.connect()
    subscriber.do("SUBSCRIBE", "a")
    publisher.send(request("PUBLISH", "a", "last words") * 100 + request("SHUTDOWN"))
    assert server.exit_code() == 0
    assert subscriber.replies(100) == [[b"message", b"a", b"last words"]] * 100


def test_signal_while_starting_again_and_again_leaves_nothing(serve: Serve) -> None:
    for _ in range(3):
        server = serve()
        assert server.end() == 0
        assert_left_nothing(server)


# -- where it listens


def test_unix_socket_alone_with_port_0_and_permissions(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    server = serve("--unixsocket", str(path), "--unixsocketperm", "750", port=0)
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    with Peer(str(path)) as subscriber, Peer(str(path)) as publisher:
        subscriber.do("SUBSCRIBE", "a")
        assert publisher.do("PUBLISH", "a", "x") == 1
        assert subscriber.reply() == [b"message", b"a", b"x"]
        assert f"addr={path}:0" in publisher.do("CLIENT", "INFO").decode()
    assert server.end() == 0
    assert not path.exists()


def test_neither_port_nor_unix_socket_is_refused(serve: Serve) -> None:
    server = serve(port=0, wait=False)
    assert server.exit_code() == 1
    assert "Configured to not listen anywhere, exiting." in server.log()


def test_address_that_is_not_here_is_refused_unless_it_has_a_minus(serve: Serve, tmp_path: Path) -> None:
    server = serve("--bind", "127.0.0.1", "203.0.113.1", folder=tmp_path, wait=False)
    assert server.exit_code() == 1
    assert "Could not create server TCP listening socket 203.0.113.1" in server.log()
    assert "Cannot assign requested address" in server.log()
    assert serve("--bind", "127.0.0.1", "-203.0.113.1").connect().do("PING") == b"PONG"


def outer_address() -> str:
    """An address of this machine that is not the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            address = str(probe.getsockname()[0])
        except OSError:
            address = "127.0.0.1"
    if address.startswith("127."):
        pytest.skip("this machine has no address but the loopback")
    return address


@pytest.mark.skipif(sys.platform != "linux", reason="ps shows what a process has made of its arguments on Linux only")
def test_no_password_of_the_command_line_is_in_the_list_of_processes(serve: Serve) -> None:
    flags = ["--masterauth", "SECRET1", "--register-as", "redis://u:SECRET2@127.0.0.1:1"]
    flags += ["--register", "redis://u:SECRET3@127.0.0.1:1/?secret_key=SECRET4", "--tls-key-file-pass", "SECRET5"]
    flags += ["--appendonly", "no", "--cold-store", "no", "--requirepass SECRET6", "--user", "ann", "on", ">SECRET7"]
    server = serve(*flags)
    shown = Path(f"/proc/{server.pid}/cmdline").read_bytes()
    assert b"SECRET" not in shown and b"redis://u:*******@127.0.0.1:1" in shown
    assert b"--cold-store\0no\0" in shown and b"--appendonly\0no\0" in shown
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    assert all(b"SECRET" not in Path(f"/proc/{each}/cmdline").read_bytes() for each in children)
    assert "SECRET" not in server.log() + server.output()


@pytest.mark.parametrize(("mode", "is_told"), [(0o700, False), (0o2770, False), (0o755, True), (0o750, True)])
def test_folder_that_others_can_list_is_told_of(serve: Serve, tmp_path: Path, mode: int, is_told: bool) -> None:
    store = tmp_path / "s"
    store.mkdir()
    store.chmod(mode)
    server = serve("--dir", str(store))
    assert ("chmod 700" in server.log()) is is_told
    assert stat.S_IMODE(store.stat().st_mode) == mode


def test_protected_mode_lets_in_only_the_loopback_until_there_is_a_password(serve: Serve) -> None:
    address = outer_address()
    server = serve("--bind", "127.0.0.1", address)
    stranger = Peer((address, server.port))
    assert str(stranger.reply()).startswith("DENIED Redis is running in protected mode")
    assert stranger.is_closed()
    local = server.connect()
    assert local.do("PING") == b"PONG"
    assert info(local, "rejected_connections") == "1"
    local.do("CONFIG", "SET", "requirepass", "secret")
    assert str(Peer((address, server.port)).do("PING")) == "NOAUTH Authentication required."
    local.do("CONFIG", "SET", "requirepass", "")
    local.do("CONFIG", "SET", "protected-mode", "no")
    assert Peer((address, server.port)).do("PING") == b"PONG"


# -- CONFIG SET while it runs


def test_config_set_port_moves_the_listener_and_keeps_the_connections(server: ServerProcess) -> None:
    peer, port = server.connect(), free_port()
    peer.do("SUBSCRIBE", "a")
    admin = server.connect()
    assert admin.do("CONFIG", "SET", "port", port) == b"OK"
    with pytest.raises(ConnectionRefusedError):
        server.connect()
    assert Peer(port).do("PUBLISH", "a", "moved") == 1
    assert peer.reply() == [b"message", b"a", b"moved"]


def test_config_set_port_to_one_in_use_is_refused_and_changes_nothing(server: ServerProcess) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refusal = server.connect().do("CONFIG", "SET", "port", taken.getsockname()[1])
    expected = "ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port."
    assert str(refusal).startswith(expected)
    assert server.connect().do("CONFIG", "GET", "port") == [b"port", str(server.port).encode()]


def test_config_set_bind_to_an_address_that_is_not_here_is_refused_and_changes_nothing(server: ServerProcess) -> None:
    refusal = server.connect().do("CONFIG", "SET", "bind", "203.0.113.1")
    expected = "ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified addresses."
    assert str(refusal).startswith(expected)
    assert server.connect().do("CONFIG", "GET", "bind") == [b"bind", b"127.0.0.1 -::1"]
    assert server.connect().do("PING") == b"PONG"


def test_config_set_bind_listens_elsewhere(server: ServerProcess) -> None:
    assert server.connect().do("CONFIG", "SET", "bind", "127.0.0.2") == b"OK"
    assert Peer(("127.0.0.2", server.port)).do("PING") == b"PONG"
    with pytest.raises(ConnectionRefusedError):
        server.connect()


def test_config_set_maxclients_holds_for_the_next_connection(server: ServerProcess) -> None:
    admin = server.connect()
    assert admin.do("CONFIG", "SET", "maxclients", 1) == b"OK"
    assert str(server.connect().reply()) == "ERR max number of clients reached"
    assert admin.do("CONFIG", "SET", "maxclients", 2) == b"OK"
    assert server.connect().do("PING") == b"PONG"


# -- idle and dead peers


def test_timeout_closes_idle_clients_but_no_subscribers(serve: Serve) -> None:
    server = serve("--timeout", "1")
    subscriber, pattern, monitor, idle = (server.connect() for _ in range(4))
    subscriber.do("SUBSCRIBE", "a")
    pattern.do("PSUBSCRIBE", "a*")
    monitor.do("MONITOR")
    assert idle.do("PING") == b"PONG"
    assert idle.is_closed()
    publisher = server.connect()
    assert publisher.do("PUBLISH", "a", "x") == 2
    assert subscriber.reply() == [b"message", b"a", b"x"]
    assert b'"PING"' in monitor.reply()
    assert b'"PUBLISH"' in monitor.reply()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/net")
def test_tcp_keepalive_is_set_on_connections(serve: Serve) -> None:
    server = serve("--tcp-keepalive", "77")
    peer = server.connect()
    assert peer.do("PING") == b"PONG"
    ours = peer.socket.getsockname()[1]
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table]
    row = next(row for row in rows if row[1].endswith(f":{server.port:04X}") and row[2].endswith(f":{ours:04X}"))
    timer, expires = row[5].split(":")
    assert timer == "02", "the keepalive timer runs"
    assert 60 < int(expires, 16) / os.sysconf("SC_CLK_TCK") <= 77


# -- without uvloop


def test_server_works_on_asyncio_alone(serve: Serve, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "uvloop.py").write_text("raise ImportError('there is none')\n")
    server = serve(environment={"PYTHONPATH": str(hidden)})
    maps = Path(f"/proc/{server.pid}/maps").read_text()
    assert "uvloop" not in maps
    subscriber, publisher = server.connect(), server.connect()
    subscriber.do("SUBSCRIBE", "a")
    publisher.send(request("PUBLISH", "a", "x" * 100_000) * 300)
    assert publisher.replies(300) == [1] * 300
    assert subscriber.replies(300) == [[b"message", b"a", b"x" * 100_000]] * 300
    assert server.end() == 0
    assert_left_nothing(server)


def test_many_turns_of_a_busy_server_do_not_keep_timers_waiting(serve: Serve) -> None:
    """The cron runs while a publisher never pauses."""
    server = serve("--timeout", "1")
    idle, publisher = server.connect(), server.connect()
    assert idle.do("PING") == b"PONG"
    idle.socket.setblocking(False)

    def is_idle_closed() -> bool:
        publisher.send(request("PUBLISH", "a", "x") * 1000)
        publisher.replies(1000)
        try:
            return idle.socket.recv(1) == b""
        except BlockingIOError:
            return False

    until(is_idle_closed)
