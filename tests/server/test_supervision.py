"""A server that somebody watches over: systemd's notifications, watchdog and sockets, and a log that is rotated."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S, until
from peer import Peer
from ports import free_port
from server_process import Serve


class Manager:
    """systemd's end of NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._socket.settimeout(PATIENCE_S)

    def told(self) -> dict[str, str]:
        """The next message."""
        return dict(line.split("=", 1) for line in self._socket.recv(4096).decode().splitlines())

    def told_of(self, name: str) -> dict[str, str]:
        """The next message that says this."""
        while name not in (message := self.told()):
            pass
        return message

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", pytest.param("abstract", marks=pytest.mark.skipif(sys.platform != "linux", reason=""))])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    manager = Manager(str(tmp_path / "notify") if request.param == "path" else f"@rlite-test-{os.getpid()}")
    yield manager
    manager.close()


def test_systemd_hears_of_the_start_of_a_reload_and_of_the_end(serve: Serve, manager: Manager) -> None:
    server = serve("--supervised", "systemd", environment={"NOTIFY_SOCKET": manager.address}, wait=False)

    assert manager.told()["READY"] == "1"
    assert server.connect().do("PING") == b"PONG"

    server.process.send_signal(signal.SIGHUP)
    assert int(manager.told_of("RELOADING")["MONOTONIC_USEC"]) > 0
    assert manager.told()["READY"] == "1"

    server.process.send_signal(signal.SIGTERM)
    assert manager.told_of("STOPPING") == {"STOPPING": "1"}
    assert server.exit_code() == 0


def test_watchdog_is_fed_as_long_as_the_loop_turns(serve: Serve, tmp_path: Path) -> None:
    manager = Manager(str(tmp_path / "notify"))
    said = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "100000"}
    server = serve("--supervised", "auto", environment=said)

    assert [manager.told_of("WATCHDOG") for _ in range(3)] == [{"WATCHDOG": "1"}] * 3

    server.process.send_signal(signal.SIGSTOP)
    until(lambda: is_stopped(server.pid), "the server to be stopped")
    manager._socket.settimeout(0.5)
    with pytest.raises(TimeoutError):
        while True:
            manager.told()
    manager.close()


def is_stopped(pid: int) -> bool:
    return subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout[:1] == "T"


def test_watchdog_of_another_process_is_not_fed(serve: Serve, tmp_path: Path) -> None:
    manager = Manager(str(tmp_path / "notify"))
    said = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "10000", "WATCHDOG_PID": "1"}
    server = serve("--supervised", "systemd", environment=said)
    server.end()

    assert "READY" in manager.told()
    assert "STOPPING" in manager.told()
    manager.close()


def test_supervised_no_tells_nobody(serve: Serve, tmp_path: Path) -> None:
    manager = Manager(str(tmp_path / "notify"))
    said = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "10000"}
    serve(environment=said).end()

    manager._socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        manager.told()
    manager.close()


# -- sockets that are handed over

Activate = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def activate(tmp_path: Path) -> Iterator[Activate]:
    """Start a server as systemd does: with these sockets as its descriptors from 3 on."""
    started: list[subprocess.Popen[bytes]] = []

    def start(sockets: list[socket.socket], *flags: str) -> subprocess.Popen[bytes]:
        places = " ".join(f"{3 + at}<&{sock.fileno()}" for at, sock in enumerate(sockets))
        script = f'LISTEN_PID=$$ LISTEN_FDS={len(sockets)} LISTEN_FDNAMES=a:b exec "$@" {places}'
        serve = [sys.executable, "-m", "rlite_pubsub", "serve", "--dir", str(tmp_path / "store")]
        words = ["bash", "-c", script, "bash", *serve, "--logfile", str(tmp_path / "log"), *flags]
        started.append(subprocess.Popen(words, pass_fds=[sock.fileno() for sock in sockets]))
        return started[-1]

    if shutil.which("bash") is None:
        pytest.skip("sockets are handed over by bash")
    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def door() -> Iterator[socket.socket]:
    """A TCP socket that listens, on a free port of the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


def port_of(sock: socket.socket) -> int:
    return int(sock.getsockname()[1])


def test_socket_of_the_configured_port_is_taken_over(activate: Activate, door: socket.socket) -> None:
    activate([door], "--port", str(port_of(door)))

    with Peer(port_of(door)) as peer:  # nobody need wait for the server: the socket listens already
        assert peer.do("PING") == b"PONG"
        assert peer.do("CONFIG", "GET", "port") == [b"port", b"%d" % port_of(door)]


def test_who_connects_between_two_servers_is_served_by_the_second(activate: Activate, door: socket.socket) -> None:
    flags = "--port", str(port_of(door))
    first = activate([door], *flags)
    with Peer(port_of(door)) as peer:
        assert peer.do("SET", "k", "v") == b"OK"
    first.terminate()
    assert first.wait(PATIENCE_S) == 0

    with Peer(port_of(door)) as peer:
        activate([door], *flags)
        assert peer.do("GET", "k") == b"v"


def test_unix_socket_that_was_handed_over_keeps_its_file(activate: Activate, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        door.listen()
        server = activate([door], "--port", "0", "--unixsocket", str(path))
        with Peer(str(path)) as peer:
            assert peer.do("PING") == b"PONG"
        server.terminate()
        assert server.wait(PATIENCE_S) == 0
        assert path.is_socket()


def test_http_takes_the_socket_of_its_port(activate: Activate, door: socket.socket) -> None:
    pytest.importorskip("uvicorn")
    with socket.create_server(("127.0.0.1", 0)) as http:
        activate([http, door], "--port", str(port_of(door)), "--http-port", str(port_of(http)))
        with urllib.request.urlopen(f"http://127.0.0.1:{port_of(http)}/metrics", timeout=PATIENCE_S) as answer:
            assert answer.status == 200


def test_socket_that_nobody_asks_for_is_told_of(activate: Activate, door: socket.socket, tmp_path: Path) -> None:
    port = free_port()
    activate([door], "--port", str(port))

    until((tmp_path / "log").exists, "the log")
    until(lambda: f"on the port {port_of(door)} that was handed over" in (tmp_path / "log").read_text(), "the warning")


def test_what_is_meant_for_another_process_is_not_taken() -> None:
    from rlite_pubsub.engine.doors import handed_over

    environment = {"LISTEN_PID": str(os.getpid() + 1), "LISTEN_FDS": "3", "HOME": "/"}

    assert handed_over(environment, os.getpid()) == []
    assert environment == {"HOME": "/"}


# -- the log


def test_hangup_has_the_log_go_on_in_a_new_file(serve: Serve) -> None:
    server = serve()
    rotated = server.log_file.with_name("log.1")
    server.log_file.rename(rotated)
    server.process.send_signal(signal.SIGHUP)

    until(lambda: "Received SIGHUP" in server.log(), "the new log")
    assert "Ready to accept connections" in rotated.read_text()
    assert server.connect().do("PING") == b"PONG"
    assert server.end() == 0
    assert "Bye bye" in server.log()


def test_umask_that_leaves_the_group_its_rights_makes_the_store_the_groups(serve: Serve, tmp_path: Path) -> None:
    socket_path = tmp_path / "socket"
    server = serve("--umask", "007", "--unixsocket", str(socket_path), "--unixsocketperm", "660")
    with Peer(str(socket_path)) as peer:
        assert peer.do("CONFIG", "GET", "umask") == [b"umask", b"7"]
        assert peer.do("SUBSCRIBE", "a") == [b"subscribe", b"a", 1]
        found = [server.store_folder, *server.store_folder.rglob("*"), socket_path, server.log_file]
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in found}

    assert modes.pop("store") == modes.pop("subscribers") == 0o2770
    assert len(modes) > 6 and set(modes.values()) == {0o660}
