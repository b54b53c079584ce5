"""Groups with real servers: what a consumer was given and has acknowledged is so after a kill -9, and two servers of
one store give each entry once."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from server_process import Serve, ServerProcess

ENTRIES = 3000


def client(server: ServerProcess) -> redis.Redis:
    return redis.Redis(port=server.port, protocol=3, retry=Retry(NoBackoff(), 0))


class Worker(threading.Thread):
    """Reads and acknowledges until its server is gone, or nothing new comes."""

    def __init__(self, server: ServerProcess, name: str) -> None:
        super().__init__(daemon=True)
        self._redis = client(server)
        self._name = name
        self.given: list[bytes] = []
        self.acknowledged: list[bytes] = []
        self.in_doubt: list[bytes] = []  # sent to be acknowledged, and not answered

    def run(self) -> None:
        number = 0
        try:
            while reply := self._redis.xreadgroup("g", self._name, {"t": ">"}, count=7, block=500):
                ids = [entry_id for entry_id, _ in reply[b"t"][0]]
                self.given += ids
                number += 1
                chosen = ids[number % 3 :: 2] or ids
                self.in_doubt = chosen
                assert self._redis.xack("t", "g", *chosen) == len(chosen)
                self.in_doubt = []
                self.acknowledged += chosen
        except redis.ConnectionError:
            """Killed, as it should be."""


def write(server: ServerProcess, start: int, count: int) -> None:
    pipeline = client(server).pipeline(transaction=False)
    for number in range(start, start + count):
        pipeline.xadd("t", {"n": number}, id=f"{number}-1")
    pipeline.execute()


def pending_ids(server: ServerProcess) -> list[bytes]:
    return [row["message_id"] for row in client(server).xpending_range("t", "g", "-", "+", 10 * ENTRIES)]


@pytest.mark.parametrize("answered", [1, 100, 300])
def test_what_was_given_and_acknowledged_is_so_after_a_kill(serve: Serve, tmp_path: Path, answered: int) -> None:
    server = serve(folder=tmp_path)
    client(server).xgroup_create("t", "g", mkstream=True)
    write(server, 1, ENTRIES)
    workers = [Worker(server, f"c{number}") for number in range(3)]
    for worker in workers:
        worker.start()
    while sum(len(worker.acknowledged) for worker in workers) < answered and any(map(Worker.is_alive, workers)):
        workers[0].join(0.001)
    server.end(signal.SIGKILL)
    for worker in workers:
        worker.join()
    server = serve(folder=tmp_path)
    pending = set(pending_ids(server))
    for worker in workers:
        assert not pending & set(worker.acknowledged)
        assert pending >= set(worker.given) - set(worker.acknowledged) - set(worker.in_doubt)
    summary = client(server).xpending("t", "g")
    consumers = client(server).xinfo_consumers("t", "g")
    assert summary["pending"] == len(pending) == sum(consumer["pending"] for consumer in consumers)
    left = client(server).xreadgroup("g", "new", {"t": ">"})
    given = {entry_id for worker in workers for entry_id in worker.given}
    assert not given & {entry_id for entry_id, _ in left.get(b"t", [[]])[0]}


def test_two_servers_of_one_store_give_each_entry_to_one_consumer(serve: Serve, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    servers = [serve(folder=folder, store_folder=tmp_path / "store") for folder in folders]
    client(servers[0]).xgroup_create("t", "g", mkstream=True)
    workers = [Worker(server, f"c{number}") for number, server in enumerate(servers * 2)]
    for worker in workers:
        worker.start()
    for start in range(1, 1000, 20):
        write(servers[start // 20 % 2], start, 20)
    for worker in workers:
        worker.join()
    given = sorted(int(entry_id[:-2]) for worker in workers for entry_id in worker.given)
    assert given == list(range(1, len(given) + 1))
    assert len(given) == 1000
    acknowledged = {entry_id for worker in workers for entry_id in worker.acknowledged}
    for server in servers:
        assert len(pending_ids(server)) == len(given) - len(acknowledged)
        [group] = client(server).xinfo_groups("t")
        assert (group["entries-read"], group["lag"]) == (1000, 0)
