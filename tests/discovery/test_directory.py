"""A directory: servers register there with their topics, and are gone from it when they are gone."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from hostile_server import HostileServer
from other_server import RedisProcess
from patience import PATIENCE_S, until
from ports import free_port
from server_process import ServerProcess

from rlite_pubsub import discovery
from rlite_pubsub.discovery import directory, registrar
from rlite_pubsub.discovery.card import ServerCard
from rlite_pubsub.discovery.directory import without_user
from rlite_pubsub.discovery.registrar import Registrar
from rlite_pubsub.storage.store import Store

Start = Callable[..., ServerProcess]
SECRET = "sesame-0123456789"
CARD = ServerCard("id", "host", 1, "/store", ("redis://h:1",), "1", 5)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    servers: list[ServerProcess] = []

    def begin(name: str, *flags: str, port: int | None = None) -> ServerProcess:
        (tmp_path / name).mkdir(exist_ok=True)
        servers.append(ServerProcess(tmp_path / name, *flags, "--discoverable", "no", port=port))
        return servers[-1]

    yield begin
    for server in servers:
        server.clean_up()


def url_of(server: ServerProcess) -> str:
    return f"redis://:{SECRET}@127.0.0.1:{server.port}"


def pids(url: str, topic: str | None = None) -> set[int]:
    return {card.pid for card in discovery.in_directory(url, topic)}


def test_servers_are_found_by_their_topics_until_they_are_gone(start: Start) -> None:
    url = url_of(start("directory", "--requirepass", SECRET))
    first = start("a", "--register", url, "--register-as", "redis://a.example:1")
    second = start("b", "--register", url)
    until(lambda: pids(url) == {first.pid, second.pid}, "both servers")
    redis.Redis(port=first.port).xadd("orders", {"n": 1})
    redis.Redis(port=second.port).xadd(b"\xff", {"n": 1})
    redis.Redis(port=second.port).set("no-topic", 1)
    until(lambda: pids(url, "orders") == {first.pid}, "the topic")
    until(lambda: pids(url, "\\xff") == {second.pid}, "the topic whose name is no text")
    assert not pids(url, "no-topic")
    (card,) = discovery.in_directory(url, "orders")
    assert card.addresses == ("redis://a.example:1",) and card.store == str(first.store_folder)
    program = [sys.executable, "-m", "rlite_pubsub", "discover", "--directory", url, "--topic", "orders", "--json"]
    told = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert [each["pid"] for each in json.loads(told.stdout)] == [first.pid] and SECRET not in told.stdout
    first.end()
    assert pids(url) == {second.pid}
    assert SECRET not in first.log() + second.log()
    second.process.kill()
    until(lambda: not pids(url), "the end of the card of who was killed")


def test_directory_that_is_away_is_told_again_when_it_is_back(start: Start) -> None:
    port = free_port()
    server = start("a", "--register", f"redis://:{SECRET}@127.0.0.1:{port}")
    assert redis.Redis(port=server.port).ping()
    until(lambda: f"Can't register in the directory redis://127.0.0.1:{port}" in server.log(), "the log")
    there = start("directory", "--requirepass", SECRET, port=port)
    until(lambda: pids(url_of(there)) == {server.pid}, "the server")
    assert SECRET not in server.log()


def test_what_is_no_url_stops_the_start(tmp_path: Path) -> None:
    words = ["--port", str(free_port()), "--dir", str(tmp_path), "--discoverable", "no", "--register", "here"]
    program = [sys.executable, "-m", "rlite_pubsub", "serve", *words]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.returncode == 1 and "register: " in ended.stdout + ended.stderr


def test_many_topics_are_named_in_part_and_counted(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    there = start("directory", "--requirepass", SECRET)
    busy = start("busy")
    pipeline = redis.Redis(port=busy.port).pipeline(transaction=False)
    for number in range(1300):
        pipeline.execute_command("TOPIC.CREATE", f"t{number:04}")
    pipeline.execute()
    busy.end()
    monkeypatch.setattr(registrar, "MAX_TOPICS", 1000)
    with Store.open(busy.store_folder) as store:
        registered = Registrar(url_of(there), CARD, store)
        until(lambda: discovery.in_directory(url_of(there)), "the card")
        (card,) = discovery.in_directory(url_of(there))
        assert card.topics == tuple(f"t{number:04}" for number in range(1000)) and card.topics_left_out == 300
        registered.stop()
    assert discovery.in_directory(url_of(there)) == []


def test_a_card_expires_by_itself_and_no_user_is_shown(start: Start) -> None:
    there = start("directory", "--requirepass", SECRET)
    client = redis.Redis.from_url(url_of(there))
    directory.put(client, CARD)
    assert 0 < client.pttl(directory.PREFIX + CARD.id) <= directory.TTL_MS
    assert without_user(f"redis://alice:{SECRET}@h:1/0?password={SECRET}") == "redis://h:1/0"


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisProcess]:
    server = RedisProcess(tmp_path / "redis")
    yield server
    server.kill()


def test_a_redis_server_is_a_directory_and_its_users_need_no_more_than_is_documented(
    start: Start, redis_server: RedisProcess
) -> None:
    admin = redis.Redis(port=redis_server.port)
    of_servers, of_readers = "+set +del ~rlite:server:*".split(), "+scan +mget ~rlite:server:*".split()
    admin.execute_command("ACL", "SETUSER", "server", "on", f">{SECRET}", "-@all", *of_servers)
    admin.execute_command("ACL", "SETUSER", "reader", "on", f">{SECRET}", "-@all", *of_readers)
    admin.set("other", 1)
    address = f"127.0.0.1:{redis_server.port}"
    reader = f"redis://reader:{SECRET}@{address}"
    server = start("a", "--register", f"redis://server:{SECRET}@{address}")
    redis.Redis(port=server.port).xadd("orders", {"n": 1})
    until(lambda: pids(reader, "orders") == {server.pid}, "the topic")
    program = [sys.executable, "-m", "rlite_pubsub", "discover", "--directory", reader, "--json"]
    told = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert [each["topics"] for each in json.loads(told.stdout)] == [["orders"]] and SECRET not in told.stdout
    (name,) = admin.keys(directory.PREFIX + "*")
    assert 0 < admin.pttl(name) <= directory.TTL_MS
    server.end()
    assert not pids(reader) and f"Registered in the directory redis://{address}" in server.log()
    assert SECRET not in server.log() and admin.acl_log() == []


def test_a_user_without_the_right_is_said_once_and_registers_when_it_has_it(
    start: Start, redis_server: RedisProcess
) -> None:
    admin = redis.Redis(port=redis_server.port)
    admin.execute_command("ACL", "SETUSER", "server", "on", f">{SECRET}", "-@all")
    url = f"redis://127.0.0.1:{redis_server.port}"
    server = start("a", "--register", f"redis://server:{SECRET}@127.0.0.1:{redis_server.port}")
    until(lambda: f"Can't register in the directory {url}" in server.log(), "the refusal")
    admin.execute_command("ACL", "SETUSER", "server", "+set", "+del", "~rlite:server:*")
    until(lambda: pids(url) == {server.pid}, "the server")
    assert server.log().count("Can't register") == 1 and SECRET not in server.log()
    program = [sys.executable, "-m", "rlite_pubsub", "discover", "--directory", f"redis://server:{SECRET}@{url[8:]}"]
    refused = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_S)
    assert refused.returncode == 1 and "no permissions to run the 'scan' command" in refused.stderr
    assert SECRET not in refused.stderr and "Traceback" not in refused.stderr


def _forever(reply: bytes) -> Callable[[socket.socket], None]:
    """To each request the same reply."""

    def answer(peer: socket.socket) -> None:
        while data := peer.recv(1 << 16):
            is_scan = b"SCAN" in data
            peer.sendall(reply if is_scan else b"+OK\r\n" * data.count(b"*"))

    return answer


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (b"*4294967295\r\n", "announces 4294967295"),
        (b"$400000000000\r\n", "announces 400000000000 bytes"),
        (b"*2\r\n$1\r\n7\r\n*100001\r\n" + b"".join([b"$8\r\n%08d\r\n" % n for n in range(100_001)]), "and more"),
    ],
    ids=["elements", "bytes", "names without end"],
)
def test_a_directory_that_says_too_much_is_refused(reply: bytes, why: str) -> None:
    with HostileServer(_forever(reply)) as theirs, pytest.raises(redis.RedisError, match=why):
        discovery.in_directory(f"redis://127.0.0.1:{theirs.port}?protocol=2")
