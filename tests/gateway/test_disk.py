"""What posts and probes say of the disk beneath: when it stalls, and when it fails."""

from __future__ import annotations

import errno
import http.client
import json
import mmap
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
import redis
from patience import PATIENCE_S, until
from ports import free_port

from rlite_pubsub import Server
from rlite_pubsub.storage.handle import Handle

Ask = Callable[..., tuple[int, bytes]]


class Disk:
    """Takes what is synced, unless it is held or broken."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.is_broken = False
        self.waiting = 0

    def under(self, sync: Callable[[Handle], None]) -> Callable[[Handle], None]:
        def held(handle: Handle) -> None:
            self.waiting += 1
            assert self.goes_on.wait(PATIENCE_S)
            if self.is_broken:
                raise OSError(errno.EIO, "broken")
            sync(handle)

        return held


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(Handle, "to_disk", disk.under(Handle.to_disk))
    monkeypatch.setattr(os, "pread", _no_pages(os.pread))  # so each sync is one of the whole file
    return disk


def _no_pages(pread: Callable[[int, int, int], bytes]) -> Callable[[int, int, int], bytes]:
    """As the function, but what was changed in data.mdb can't be read, and so can't be written elsewhere."""

    def read(descriptor: int, size: int, at: int) -> bytes:
        if size % mmap.PAGESIZE == 0 and os.readlink(f"/proc/self/fd/{descriptor}").endswith("data.mdb"):
            raise OSError(errno.EIO, "no page")
        return pread(descriptor, size, at)

    return read


@pytest.fixture
def server(disk: Disk) -> Iterator[Server]:
    with Server(appendfsync="always", http_port=free_port()) as server:
        yield server
        disk.is_broken = False
        disk.goes_on.set()


@pytest.fixture
def ask(server: Server) -> Ask:
    port = int(redis.Redis(port=server.port).config_get("http-port")["http-port"])

    def ask(method: str, path: str, body: str = "", kind: str = "text/plain") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body, {"Content-Type": kind})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    return ask


POSTS = [
    ("/api/events?type=t", "x", "text/plain"),
    ("/api/topics/a", '{"fields": {"a": "b"}}', "application/json"),
    ("/api/topics/a/batch", '{"a": "b"}\n{"a": "c"}\n', "application/x-ndjson"),
]


@pytest.mark.parametrize(("path", "body", "kind"), POSTS)
def test_post_is_answered_once_the_disk_has_it(
    server: Server, disk: Disk, ask: Ask, path: str, body: str, kind: str
) -> None:
    disk.goes_on.clear()
    waited = disk.waiting
    with ThreadPoolExecutor() as threads:
        post: Future[tuple[int, bytes]] = threads.submit(ask, "POST", path, body, kind)
        until(lambda: disk.waiting > waited, "the sync")
        client = redis.Redis(port=server.port)
        assert client.keys("*")  # it is committed
        assert client.ping() and ask("GET", "/healthz")[0] == 200  # nobody else waits
        assert not post.done()
        disk.goes_on.set()
        assert post.result(PATIENCE_S)[0] == 200


@pytest.mark.parametrize(("path", "body", "kind"), POSTS)
def test_disk_that_fails_fails_the_post_and_the_probe_until_it_takes_something_again(
    disk: Disk, ask: Ask, path: str, body: str, kind: str
) -> None:
    assert ask("POST", path, body, kind)[0] == 200
    disk.is_broken = True
    status, said = ask("POST", path, body, kind)
    assert status == 503 and "error" in json.loads(said)["detail"]
    status, said = ask("GET", "/healthz")
    assert status == 503 and json.loads(said)["status"] == "failing"
    disk.is_broken = False
    until(lambda: ask("GET", "/healthz")[0] == 200, "a disk that has taken what was left")  # by itself
    assert ask("POST", path, body, kind)[0] == 200


def test_probe_tells_of_a_disk_that_nobody_waits_for(server: Server, disk: Disk, ask: Ask) -> None:
    redis.Redis(port=server.port).config_set("appendfsync", "everysec")
    disk.is_broken = True
    assert ask("POST", "/api/events?type=t", "x")[0] == 200
    until(lambda: ask("GET", "/healthz")[0] == 503, "the failing disk")
    disk.is_broken = False
    until(lambda: ask("GET", "/healthz")[0] == 200, "the disk")


def test_topic_sync_is_answered_once_the_disk_has_it_and_nobody_else_waits(server: Server, disk: Disk) -> None:
    client, other = redis.Redis(port=server.port), redis.Redis(port=server.port)
    client.config_set("appendfsync", "no")
    client.set("a", "b")
    disk.goes_on.clear()
    waited = disk.waiting
    with ThreadPoolExecutor() as threads:
        sync = threads.submit(client.execute_command, "TOPIC.SYNC")
        until(lambda: disk.waiting > waited, "the sync")
        assert other.ping() and not sync.done()
        disk.goes_on.set()
        assert sync.result(PATIENCE_S) == b"OK"
        disk.is_broken = True
        client.set("a", "c")
        with pytest.raises(redis.ResponseError, match="MISCONF"):
            client.execute_command("TOPIC.SYNC")
