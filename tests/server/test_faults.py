"""Bad input and faults: a clear message, and nothing lost or leaked."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from patience import until
from peer import Peer, request
from server_process import Serve, ServerProcess
from store_view import look

MB = 1 << 20


def info(peer: Peer, field: str) -> str:
    text = peer.do("INFO", "everything").decode()
    return next((line.partition(":")[2] for line in text.splitlines() if line.startswith(field + ":")), "")


def assert_refuses_to_start(server: ServerProcess, message: str) -> None:
    assert server.exit_code() == 1
    told = server.log() + server.output()
    assert message in told
    assert "Traceback" not in told


# -- too many


def test_client_beyond_maxclients_is_told_so_and_closed_and_counted(serve: Serve) -> None:
    server = serve("--maxclients", "3")
    first, *_ = peers = [server.connect() for _ in range(3)]
    assert first.do("PING") == b"PONG"
    refused = server.connect()
    assert str(refused.reply()) == "ERR max number of clients reached"
    assert refused.is_closed()
    assert info(first, "rejected_connections") == "1"
    peers[2].close()
    until(lambda: info(first, "connected_clients") == "2")
    assert server.connect().do("PING") == b"PONG"


def test_maxclients_is_no_more_than_the_system_has_descriptors_for(serve: Serve) -> None:
    def few_descriptors() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))

    server = serve(before_start=few_descriptors)
    assert "Only 60 file descriptors are available, fewer than 10000 clients need." in server.log()
    first = server.connect()
    allowed = int(first.do("CONFIG", "GET", "maxclients")[1])
    assert 10 < allowed < 60
    with ExitStack() as peers:
        for _ in range(allowed - 1):
            assert peers.enter_context(server.connect()).do("PING") == b"PONG"
        assert str(peers.enter_context(server.connect()).reply()) == "ERR max number of clients reached"


def test_server_out_of_descriptors_survives_says_so_and_recovers(serve: Serve) -> None:
    server = serve()
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (60, 60))
    keeper = server.connect()
    keeper.do("SUBSCRIBE", "a")
    assert keeper.do("PING") == [b"pong", b""]
    before = server.descriptors()
    with ExitStack() as peers:
        crowd = [peers.enter_context(server.connect()) for _ in range(100)]
        refused = [peer for peer in crowd if _is_refused(peer)]
        assert 10 < len(refused) < 100
        served = next(peer for peer in crowd if peer not in refused)
        assert served.do("PUBLISH", "a", "still here") == 1
        assert keeper.reply()[2] == b"still here"
        assert served.do("SUBSCRIBE", "b") == [b"subscribe", b"b", 1]
    until(lambda: server.descriptors() == before)
    assert server.connect().do("PUBLISH", "a", "recovered") == 1
    assert "Accepting client connection: Too many open files" in server.log()


def _is_refused(peer: Peer) -> bool:
    """Turned away: closed, or told so before."""
    try:
        return peer.do("PING") != b"PONG"
    except OSError:
        return True


# -- where the server cannot start


def test_port_in_use_is_told_as_redis_tells_it(serve: Serve) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = serve(port=port, wait=False)
        assert_refuses_to_start(
            server, f"Could not create server TCP listening socket 127.0.0.1:{port}: bind: Address already in use"
        )
        told = f"# Failed listening on port {port} (TCP), aborting."
        assert told in server.log(), "by which who starts servers on ports at random takes the next one"
    view = look(server.store_folder)
    assert view.subscribers == 0


def test_second_server_on_the_same_port_and_store_leaves_the_first_one_alone(serve: Serve) -> None:
    first = serve()
    subscriber = first.connect()
    subscriber.do("SUBSCRIBE", "a")
    assert_refuses_to_start(serve(port=first.port, wait=False), "Address already in use")
    assert look(first.store_folder).names == [["channels", "a", 1]]
    assert first.connect().do("PUBLISH", "a", "x") == 1
    assert subscriber.reply() == [b"message", b"a", b"x"]


def test_unix_socket_of_a_living_server_is_not_taken_over(serve: Serve, tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    first = serve("--unixsocket", path)
    assert_refuses_to_start(
        serve("--unixsocket", path, wait=False), f"Failed opening Unix socket: bind: Address already in use: {path}"
    )
    assert Peer(path).do("PING") == b"PONG"
    assert first.end() == 0


def test_unix_socket_of_a_living_server_that_is_busy_is_not_taken_over(serve: Serve, tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as busy, ExitStack() as waiting:
        busy.bind(path)
        busy.listen(0)
        for _ in range(3):
            peer = waiting.enter_context(socket.socket(socket.AF_UNIX))
            peer.setblocking(False)
            peer.connect_ex(path)
        assert_refuses_to_start(serve("--unixsocket", path, wait=False), "Address already in use")
    assert os.path.exists(path)


@pytest.mark.parametrize("is_link", [False, True])
def test_file_at_the_place_of_the_unix_socket_is_replaced(serve: Serve, tmp_path: Path, is_link: bool) -> None:
    """As by redis-server: many tests make the file first, to have a name."""
    path, other = tmp_path / "s", tmp_path / "other"
    other.write_text("kept")
    if is_link:
        path.symlink_to(other)
    else:
        path.write_text("")
    server = serve("--unixsocket", str(path))
    assert path.is_socket() and not path.is_symlink() and other.read_text() == "kept"
    assert f"The file {path} is replaced" in server.log()


@pytest.mark.parametrize("name", ["data.mdb", "subscribers/x", "folder"])
def test_file_of_a_store_is_not_replaced_by_the_unix_socket(serve: Serve, tmp_path: Path, name: str) -> None:
    store = tmp_path / "a"
    (store / "subscribers").mkdir(parents=True)
    (store / "folder").mkdir()
    for each in ("data.mdb", "subscribers/x"):
        (store / each).write_text("precious")
    server = serve("--unixsocket", str(store / name), wait=False)
    assert server.exit_code() == 1
    assert "Failed opening Unix socket" in server.log() + server.output()
    assert name == "folder" or (store / name).read_text() == "precious"


def test_unix_socket_that_a_killed_server_left_is_replaced(serve: Serve, tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    serve("--unixsocket", path).end(signal.SIGKILL)
    assert os.path.exists(path)
    serve("--unixsocket", path)
    assert Peer(path).do("PING") == b"PONG"


@pytest.mark.parametrize("path", ["{}/no/such/folder/socket", "{}/" + "long" * 40])
def test_unix_socket_that_cannot_be_made_is_told(serve: Serve, tmp_path: Path, path: str) -> None:
    server = serve("--unixsocket", path.format(tmp_path), wait=False)
    assert_refuses_to_start(server, "Failed opening Unix socket: bind: ")
    assert "None" not in server.log()


def test_store_that_is_a_file_is_told(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    assert_refuses_to_start(serve(wait=False), f"{tmp_path / 'store'} is not a folder")


def without_power() -> None:
    """Root may write anywhere, unless it gives up that capability."""
    CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, PR_CAPBSET_DROP = 1, 2, 24
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


@pytest.mark.parametrize("name", ["", "store/subscribers"])
def test_unwritable_folder_is_told(serve: Serve, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "house"
    folder.mkdir()
    serve(folder=folder).end()
    if not name:
        shutil.rmtree(folder / "store")
    (folder / "log").unlink()
    (folder / name).chmod(0o500)
    try:
        server = serve("--logfile", "", folder=folder, before_start=without_power, wait=False)
        assert_refuses_to_start(server, f"cannot write to the store at {folder / 'store'}")
        assert "Permission denied" in server.output()
    finally:
        (folder / name).chmod(0o700)


def test_store_whose_files_belong_to_another_is_told(serve: Serve, tmp_path: Path) -> None:
    serve().end()
    (tmp_path / "store" / "live.mdb").chmod(0)
    server = serve(before_start=without_power, wait=False)
    assert_refuses_to_start(server, "Permission denied")


def test_data_that_is_no_database_is_told(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "data.mdb").write_bytes(b"not a database" * 1000)
    assert_refuses_to_start(serve(wait=False), "data.mdb is damaged")


# -- peers that misbehave


@pytest.mark.parametrize(
    "half",
    [b"*3\r\n$7\r\nPUBLISH\r\n$1\r\na\r\n$5\r\nhal", b"*2\r\n$9\r\nSUBS", b"SUBSCR", b"*", b"*1\r\n$1000000\r\nxxx"],
)
@pytest.mark.parametrize("way", ["close", "reset"])
def test_half_a_command_and_then_a_disconnect_leaves_nothing(server: ServerProcess, half: bytes, way: str) -> None:
    watcher = server.connect()
    watcher.do("SUBSCRIBE", "a")
    before = server.descriptors()
    peer = server.connect()
    peer.send(half)
    getattr(peer, way)()
    other = server.connect()
    until(lambda: info(other, "connected_clients") == "2")
    assert server.descriptors() == before + 1
    assert other.do("PUBLISH", "a", "whole") == 1
    assert watcher.reply() == [b"message", b"a", b"whole"]


def test_subscriber_that_is_killed_in_mid_write_harms_nobody(server: ServerProcess) -> None:
    publisher, other = server.connect(), server.connect()
    other.do("SUBSCRIBE", "b")
    for _ in range(20):
        victim = server.connect(receive_buffer_bytes=16_384)
        victim.do("SUBSCRIBE", "a")
        publisher.send(request("PUBLISH", "a", b"x" * MB) * 8)
        victim.socket.recv(1000)
        victim.reset()
        publisher.replies(8)
    until(lambda: publisher.do("PUBSUB", "NUMSUB", "a") == [b"a", 0])
    assert publisher.do("PUBLISH", "b", "fine") == 1
    assert other.reply() == [b"message", b"b", b"fine"]
    until(lambda: info(publisher, "connected_clients") == "2")
    view = look(server.store_folder)
    assert view.names == [["channels", "b", 1]]
    assert view.has_no_mail
    assert "Traceback" not in server.log()


def test_bytes_that_come_one_by_one_are_served_and_keep_nobody_waiting(server: ServerProcess) -> None:
    slow, other = server.connect(), server.connect()
    for byte in request("SUBSCRIBE", "a") + b"PING\r\n":
        slow.send(bytes((byte,)))
        assert other.do("PING") == b"PONG"
    assert slow.replies(2) == [[b"subscribe", b"a", 1], [b"pong", b""]]


def test_thousand_peers_that_never_finish_a_request_keep_nobody_waiting(server: ServerProcess) -> None:
    other = server.connect()
    with ExitStack() as peers:
        for _ in range(1000):
            peers.enter_context(server.connect()).send(b"*2\r\n$9\r\nSUBSCRIBE\r\n$10000")
        assert other.do("PING") == b"PONG"
    until(lambda: info(other, "connected_clients") == "1")


def test_half_closed_peer_is_gone_for_redis_and_for_us(server: ServerProcess) -> None:
    peer = server.connect()
    peer.do("SUBSCRIBE", "a")
    peer.socket.shutdown(socket.SHUT_WR)
    assert peer.is_closed()
    until(lambda: look(server.store_folder).has_no_names)


def test_2000_cycles_of_connect_subscribe_disconnect_leak_nothing(server: ServerProcess) -> None:
    watcher = server.connect()

    def cycle(first: int, last: int) -> None:
        for number in range(first, last):
            with server.connect() as peer:
                peer.send(request("SUBSCRIBE", "a", f"channel {number}") + request("PSUBSCRIBE", f"pattern {number}*"))
                if number % 2:
                    peer.replies(3)
                if number % 10 == 0:
                    peer.reset()
        until(lambda: info(watcher, "connected_clients") == "1")

    cycle(0, 500)
    descriptors, memory = server.descriptors(), server.memory_bytes()
    cycle(500, 2000)
    assert server.descriptors() == descriptors
    assert server.memory_bytes() - memory < 3 * MB
    assert watcher.do("PUBSUB", "CHANNELS") == []
    view = look(server.store_folder)
    assert view.has_no_names
    assert view.has_no_mail
    assert "Traceback" not in server.log()
