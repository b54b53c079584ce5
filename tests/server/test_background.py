"""`Server`: a server in a thread, for tests and notebooks."""

from __future__ import annotations

import gc
import os
import socket
import threading
from pathlib import Path

import pytest
import redis
from patience import until
from peer import Peer

from rlite_pubsub import Server
from rlite_pubsub.engine.settings.settings import SettingError
from rlite_pubsub.server.listening import StartupError


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def test_two_servers_in_one_process_know_nothing_of_each_other() -> None:
    with Server() as first, Server() as second:
        assert first.port != second.port
        with Peer(first.port) as subscriber, Peer(second.port) as stranger, Peer(first.port) as publisher:
            subscriber.do("SUBSCRIBE", "a")
            assert stranger.do("PUBLISH", "a", "x") == 0
            assert publisher.do("PUBLISH", "a", "x") == 1
            assert subscriber.reply() == [b"message", b"a", b"x"]


def test_two_servers_of_one_store_in_one_process(tmp_path: Path) -> None:
    with Server(dir=str(tmp_path)) as first:
        with Server(dir=str(tmp_path)) as second, Peer(second.port) as peer:
            assert peer.do("PING") == b"PONG"
        with Peer(first.port) as peer:
            assert peer.do("SUBSCRIBE", "a") == [b"subscribe", b"a", 1]
    assert os.listdir(tmp_path / "subscribers") == []


def test_keywords_are_directives() -> None:
    with Server(requirepass="secret", maxclients=1, proto_max_bulk_len="2mb", protected_mode=False) as server:
        with Peer(server.port) as peer:
            assert str(peer.do("PING")) == "NOAUTH Authentication required."
            assert peer.do("AUTH", "secret") == b"OK"
            assert peer.do("CONFIG", "GET", "proto-max-bulk-len") == [b"proto-max-bulk-len", b"2097152"]
            assert peer.do("CONFIG", "GET", "protected-mode") == [b"protected-mode", b"no"]
            assert peer.do("CONFIG", "GET", "port") == [b"port", str(server.port).encode()]
            assert str(Peer(server.port).reply()) == "ERR max number of clients reached"


def test_url_is_all_that_a_client_needs() -> None:
    for password in ("", "secret", "p@ss/wörd:%"):
        with Server(requirepass=password) as server, redis.from_url(server.url) as client:
            assert client.ping()


def test_bad_keyword_or_value_raises() -> None:
    with pytest.raises(SettingError, match="^maxclients: "):
        Server(maxclients="many")
    with pytest.raises(SettingError, match="^no_such_directive: "):
        Server(no_such_directive=1)


def test_startup_failure_raises_and_leaves_neither_thread_nor_descriptor(tmp_path: Path) -> None:
    before, threads = descriptors(), threading.active_count()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for _ in range(3):
            with pytest.raises(StartupError, match="Address already in use"):
                Server(port=taken.getsockname()[1]).start()
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupError, match="is not a folder"):
        Server(dir=str(tmp_path / "file")).start()
    assert descriptors() == before
    assert threading.active_count() == threads


def test_stop_leaves_neither_thread_nor_descriptor_nor_folder() -> None:
    with Server() as server, Peer(server.port) as peer:
        peer.do("PING")
    before, threads = descriptors(), threading.active_count()
    for _ in range(5):
        with Server() as server:
            peer = Peer(server.port)
            folder = peer.do("CONFIG", "GET", "dir")[1].decode()
            peer.do("SUBSCRIBE", "a")
        assert peer.is_closed()
        peer.close()
        assert not os.path.exists(folder)
    assert descriptors() == before
    assert threading.active_count() == threads


def test_server_can_be_stopped_twice_and_started_again() -> None:
    server = Server()
    for _ in range(2):
        server.start()
        with Peer(server.port) as peer:
            assert peer.do("PING") == b"PONG"
        server.stop()
        server.stop()


def test_server_that_was_shut_down_by_a_client_can_still_be_stopped() -> None:
    with Server() as server, Peer(server.port) as peer:
        folder = peer.do("CONFIG", "GET", "dir")[1].decode()
        peer.send(b"SHUTDOWN\r\n")
        assert peer.is_closed()
        until(lambda: "rlite-pubsub" not in [thread.name for thread in threading.enumerate()])
    until(lambda: not os.path.exists(folder))
