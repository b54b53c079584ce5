"""A server of several workers: one port, one store, and answers as of one."""

from __future__ import annotations

import os
import signal
import stat
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from patience import PATIENCE_S, until
from peer import Peer, request
from ports import free_port
from server_process import Serve, ServerProcess
from store_view import subscriber_files

COUNT = 2


@pytest.fixture
def server(serve: Serve, tmp_path: Path) -> ServerProcess:
    return start(serve, "--pidfile", str(tmp_path / "pid"))


def start(serve: Serve, *flags: str) -> ServerProcess:
    server = serve("--workers", str(COUNT), *flags)
    until(lambda: f"{COUNT} workers serve" in server.log(), "all workers")
    return server


@pytest.fixture
def peers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def of_each(server: ServerProcess, peers: ExitStack) -> list[Peer]:
    """A connection to each worker, in order: their clients' ids tell them apart."""
    found: dict[int, Peer] = {}
    while len(found) < COUNT:
        peer = peers.enter_context(server.connect())
        found.setdefault(peer.do("CLIENT", "ID") % COUNT, peer)
    return [found[number] for number in range(COUNT)]


def info(peer: Peer) -> dict[str, str]:
    lines = peer.do("INFO", "everything").decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


def pids(peer: Peer) -> list[int]:
    told = info(peer)
    return [int(told[f"worker{number}"].partition("pid=")[2].partition(",")[0]) for number in range(COUNT)]


# -- one space


def test_what_is_said_to_one_is_heard_and_seen_at_the_other(server: ServerProcess, peers: ExitStack) -> None:
    one, other = of_each(server, peers)
    assert other.do("SUBSCRIBE", "a") == [b"subscribe", b"a", 1]

    assert one.do("PUBLISH", "a", "x") == 1
    assert other.reply() == [b"message", b"a", b"x"]
    assert one.do("SET", "k", "v") == b"OK"
    assert of_each(server, peers)[1].do("GET", "k") == b"v"
    assert one.do("PUBSUB", "NUMSUB", "a") == [b"a", 1]


def test_keyspace_events_and_users_are_of_all(server: ServerProcess, peers: ExitStack) -> None:
    one, other = of_each(server, peers)
    assert one.do("CONFIG", "SET", "notify-keyspace-events", "KEA") == b"OK"
    other.do("PSUBSCRIBE", "__keyevent@0__:set")
    assert one.do("SET", "k", "v") == b"OK"
    assert other.reply() == [b"pmessage", b"__keyevent@0__:set", b"__keyevent@0__:set", b"k"]

    assert one.do("ACL", "SETUSER", "ann", "on", ">secret", "+@all", "~*") == b"OK"
    assert of_each(server, peers)[1].do("AUTH", "ann", "secret") == b"OK"


# -- one answer


def test_client_list_and_info_show_all_clients_and_no_worker(server: ServerProcess, peers: ExitStack) -> None:
    one, other = of_each(server, peers)
    one.do("CLIENT", "SETNAME", "one")
    other.do("CLIENT", "SETNAME", "other")

    listed = one.do("CLIENT", "LIST").decode().splitlines()
    names = {name for line in listed for name in ("one", "other") if f" name={name} " in line}
    assert names == {"one", "other"}
    assert not any("rlite-workers" in line for line in listed)
    told = info(one)
    assert told["workers"] == str(COUNT) and int(told["connected_clients"]) == len(listed)
    assert int(told["process_id"]) in pids(one) and len(set(pids(one))) == COUNT
    assert "calls=2" in told["cmdstat_client|setname"]


def test_client_is_killed_and_unblocked_wherever_it_is(server: ServerProcess, peers: ExitStack) -> None:
    one, other = of_each(server, peers)
    victim, waiting = of_each(server, peers)[1], of_each(server, peers)[1]
    waiting_id = waiting.do("CLIENT", "ID")
    waiting.send(request("BLPOP", "nothing", "0"))
    until(lambda: f"id={waiting_id} " in _blocked(one), "the wait")

    assert one.do("CLIENT", "UNBLOCK", waiting_id) == 1
    assert waiting.reply() is None
    assert one.do("CLIENT", "KILL", "ID", victim.do("CLIENT", "ID")) == 1
    assert victim.is_closed()
    assert one.do("CLIENT", "KILL", "ID", 10**9) == 0
    assert str(one.do("CLIENT", "KILL", "1.2.3.4:5")) == "ERR No such client"
    address = other.do("CLIENT", "INFO").decode().partition(" addr=")[2].partition(" ")[0]
    assert one.do("CLIENT", "KILL", address) == b"OK"
    assert other.is_closed()


def _blocked(peer: Peer) -> str:
    return "\n".join(line for line in peer.do("CLIENT", "LIST").decode().splitlines() if "cmd=blpop" in line)


def test_setting_is_every_workers_or_nobodys(server: ServerProcess, peers: ExitStack) -> None:
    one, other = of_each(server, peers)
    assert one.do("CONFIG", "SET", "slowlog-log-slower-than", "0") == b"OK"
    assert other.do("CONFIG", "GET", "slowlog-log-slower-than") == [b"slowlog-log-slower-than", b"0"]

    refusal = one.do("CONFIG", "SET", "port", free_port())
    assert "can't be changed while workers share the port" in str(refusal)


def test_slow_log_and_latency_are_of_all(server: ServerProcess, peers: ExitStack) -> None:
    one, other = of_each(server, peers)
    one.do("CONFIG", "SET", "slowlog-log-slower-than", "0")
    one.do("SET", "from", "one")
    other.do("SET", "from", "other")

    shown = [entry[3] for entry in one.do("SLOWLOG", "GET", "-1")]
    assert [b"SET", b"from", b"one"] in shown and [b"SET", b"from", b"other"] in shown
    assert one.do("SLOWLOG", "LEN") >= 4
    one.do("CONFIG", "SET", "slowlog-log-slower-than", "-1")
    assert other.do("SLOWLOG", "RESET") == b"OK"
    assert one.do("SLOWLOG", "LEN") == 0
    assert one.do("LATENCY", "LATEST") == [] and one.do("LATENCY", "RESET") == 0


def test_monitor_shows_what_the_other_executes(server: ServerProcess, peers: ExitStack) -> None:
    one, other = of_each(server, peers)
    assert one.do("MONITOR") == b"OK"
    until(lambda: "cmd=monitor" in of_each(server, peers)[0].do("CLIENT", "LIST").decode(), "the monitor")
    seen = b""
    while b'"there"' not in seen:  # the first of them may come before it listens there
        other.do("SET", "k", "there")
        seen = one.reply()
    other.do("SET", "k", "again")
    while b'"again"' not in seen:
        seen = one.reply()


def test_script_that_was_loaded_is_there_for_all(server: ServerProcess, peers: ExitStack) -> None:
    pytest.importorskip("lupa")
    one, other = of_each(server, peers)
    sha = one.do("SCRIPT", "LOAD", "return 7")

    assert other.do("EVALSHA", sha, 0) == 7
    assert other.do("SCRIPT", "FLUSH") == b"OK"
    assert one.do("SCRIPT", "EXISTS", sha) == [0]


def test_way_between_workers_is_not_open_to_a_client(server: ServerProcess, peers: ExitStack) -> None:
    """MIGRATE goes where a client says, with the rights of whoever is met there."""
    one, _ = of_each(server, peers)
    folder = folder_of(pids(one))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    one.do("SET", "k", "v")

    refused = one.do("MIGRATE", str(folder / "1"), "0", "k", "0", "1000", "REPLACE")
    assert str(refused).startswith("IOERR")


def folder_of(processes: list[int]) -> Path:
    """The one in which these workers listen for each other."""
    (folder,) = [path for path in Path(tempfile.gettempdir()).glob("rlite-workers-*") if _is_of(path, processes)]
    return folder


def _is_of(folder: Path, processes: list[int]) -> bool:
    """Whether these processes listen in it."""
    inodes = {line.split()[6] for line in Path("/proc/net/unix").read_text().splitlines() if f"{folder}/" in line}
    links = [os.readlink(each) for pid in processes for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()]
    return any(f"socket:[{inode}]" in links for inode in inodes)


def test_in_a_transaction_one_worker_answers(server: ServerProcess, peers: ExitStack) -> None:
    one, _ = of_each(server, peers)
    one.do("MULTI")
    one.do("SLOWLOG", "LEN")
    assert one.do("EXEC") == [0]


# -- all other sockets


def test_unix_socket_and_http_serve(serve: Serve, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    path, port = tmp_path / "socket", free_port()
    start(serve, "--unixsocket", str(path), "--http-port", str(port))

    with Peer(str(path)) as peer:
        assert peer.do("PING") == b"PONG"
    for _ in range(4):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
            assert answer.status == 200


# -- life and death


def test_worker_that_is_killed_is_replaced_and_leaves_nothing(server: ServerProcess, peers: ExitStack) -> None:
    one, other = of_each(server, peers)
    first, second = pids(one)
    one.do("CONFIG", "SET", "slowlog-max-len", "77")
    other.do("SUBSCRIBE", "a")
    os.kill(second, signal.SIGKILL)
    assert other.is_closed()

    until(lambda: server.log().count("Ready to accept connections") == COUNT + 1, "another worker")
    new = of_each(server, peers)
    assert pids(new[0])[0] == first and second not in pids(new[0])
    assert new[1].do("PUBLISH", "a", "x") == 0
    assert new[1].do("CONFIG", "GET", "slowlog-max-len") == [b"slowlog-max-len", b"77"]
    assert f"(process {second}) was ended by SIGKILL; another takes its place" in server.log()


def test_worker_that_is_stopped_holds_no_answer_up_for_long(server: ServerProcess, peers: ExitStack) -> None:
    one, _ = of_each(server, peers)
    stopped = pids(one)[1]
    os.kill(stopped, signal.SIGSTOP)
    try:
        listed = one.do("CLIENT", "LIST").decode().splitlines()
        assert listed and all(int(line.split()[0].partition("=")[2]) % COUNT == 0 for line in listed)
    finally:
        os.kill(stopped, signal.SIGCONT)


@pytest.mark.parametrize("how", ["SHUTDOWN", "SIGTERM", "SIGINT"])
def test_all_end_together(server: ServerProcess, peers: ExitStack, tmp_path: Path, how: str) -> None:
    one, other = of_each(server, peers)
    assert int((tmp_path / "pid").read_text()) == server.pid
    processes = pids(one)
    if how == "SHUTDOWN":
        one.send(request("SHUTDOWN"))
        assert server.exit_code() == 0
    else:
        assert server.end(signal.Signals[how]) == 0

    assert one.is_closed() and other.is_closed()
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes)
    assert subscriber_files(server.store_folder) == []
    assert not (tmp_path / "pid").exists()
    assert "Traceback" not in server.log() + server.output()


def test_workers_end_where_their_supervisor_is_killed(server: ServerProcess, peers: ExitStack) -> None:
    one, _ = of_each(server, peers)
    processes = pids(one)
    folder = folder_of(processes)
    server.end(signal.SIGKILL)

    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in processes), "the workers' end")
    assert not folder.exists()
    assert subscriber_files(server.store_folder) == []


def test_what_is_wrong_is_said_once_and_ends_the_start(serve: Serve, tmp_path: Path) -> None:
    first = start(serve)
    second = serve("--workers", "2", port=first.port, folder=tmp_path / "second", wait=False)
    assert second.exit_code() == 1
    assert second.log().count("Address already in use") == 1

    (tmp_path / "file").write_text("")
    third = serve("--workers", "2", store_folder=tmp_path / "file", folder=tmp_path / "third", wait=False)
    assert third.exit_code() == 1
    assert third.log().count("Can't open the store") == 1
