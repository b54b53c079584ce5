"""A busy server, whose turns share commits: what clients see, and what a kill -9 leaves."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest
import redis
from patience import until
from redis.backoff import NoBackoff
from redis.retry import Retry

import rlite_pubsub
from rlite_pubsub.storage.boot import boot_id
from rlite_pubsub.storage.journal.journal import journal_path, owed
from rlite_pubsub.storage.store import Store
from tests.server.server_process import Serve

CLIENTS = 4
ENOUGH = 200


class Busy:
    """Clients that count, each in keys of its own, until the server is gone."""

    def __init__(self, port: int) -> None:
        self.counted = [0] * CLIENTS
        clients = [redis.Redis(port=port, retry=Retry(NoBackoff(), 0)) for _ in range(CLIENTS)]
        self._threads = [threading.Thread(target=self._count, args=each) for each in enumerate(clients)]
        for thread in self._threads:
            thread.start()

    def count_to(self, total: int) -> None:
        until(lambda: sum(self.counted) > total, "some work")

    def _count(self, at: int, client: redis.Redis) -> None:
        try:
            while True:
                with client.pipeline(transaction=True) as pipe:
                    pipe.incr(f"count{at}").rpush(f"list{at}", "x").hincrby("hash", str(at), 1)
                    pipe.zincrby("scores", 1, f"member{at}").xadd(f"topic{at}", {"n": "x"})
                    pipe.execute()
                self.counted[at] += 1
        except redis.ConnectionError:
            return

    def end(self) -> None:
        for thread in self._threads:
            thread.join()


def check(client: redis.Redis, counted: list[int]) -> None:
    """What was acknowledged is there; at most one transaction more; and no transaction is half there."""
    for at, count in enumerate(counted):
        found = int(client.get(f"count{at}") or 0)
        assert count <= found <= count + 1
        assert client.llen(f"list{at}") == found == int(client.hget("hash", str(at)) or 0)
        assert client.zscore("scores", f"member{at}") == found == client.xlen(f"topic{at}")
        counted[at] = found


def test_a_kill_loses_nothing_and_halves_nothing(serve: Serve, folder: Path) -> None:
    totals = [0] * CLIENTS
    for _ in range(6):
        server = serve()
        busy = Busy(server.port)
        busy.count_to(ENOUGH)
        server.end(signal.SIGKILL)
        busy.end()
        totals = [total + more for total, more in zip(totals, busy.counted, strict=True)]
        with rlite_pubsub.Redis(folder) as client:  # brings home what is in the journal
            check(client, totals)


def test_an_orderly_end_leaves_nothing_in_the_journal(serve: Serve, folder: Path) -> None:
    server = serve()
    client = redis.Redis(port=server.port)
    for number in range(ENOUGH):
        client.set("key", number)
    server.end(signal.SIGTERM)
    with Store.open(folder) as store:
        assert owed(journal_path(store.data.path), boot_id(), store.data.last_commit()) is None
    with rlite_pubsub.Redis(folder) as reader:
        assert reader.get("key") == b"%d" % (ENOUGH - 1)


def test_watch_notices_a_change_that_shares_its_commit() -> None:
    with rlite_pubsub.Server() as server:
        one, other = redis.Redis(port=server.port), redis.Redis(port=server.port)
        for number in range(ENOUGH):
            one.set("key", number)
            with one.pipeline() as pipe:
                pipe.watch("key")
                pipe.get("key")
                other.set("key", f"other {number}")
                pipe.multi()
                pipe.set("key", "mine")
                with pytest.raises(redis.WatchError):
                    pipe.execute()


def test_a_program_on_the_same_store_sees_each_acknowledged_write(serve: Serve, folder: Path) -> None:
    server = serve()
    client = redis.Redis(port=server.port)
    for number in range(ENOUGH):
        client.set("key", number)
    with rlite_pubsub.Redis(folder) as program:  # comes while the last ones share a commit
        assert program.get("key") == b"%d" % (ENOUGH - 1)
        for number in range(ENOUGH):
            client.set("key", number)
            assert program.get("key") == b"%d" % number
            program.set("other", number)
            assert client.get("other") == b"%d" % number


def test_a_thread_of_the_same_process_sees_each_acknowledged_write(tmp_path: Path) -> None:
    with rlite_pubsub.Server(dir=str(tmp_path / "store")) as server, rlite_pubsub.Redis(tmp_path / "store") as program:
        client = redis.Redis(port=server.port)
        for number in range(ENOUGH):
            client.set("key", number)
            client.set("key", f"{number}!")
            assert program.get("key") == b"%d!" % number


def test_turns_share_commits_again_once_a_program_has_left(serve: Serve, folder: Path) -> None:
    server = serve()
    journal = folder / "data.journal"
    busy = Busy(server.port)

    def is_used() -> bool:
        before = journal.read_bytes()
        busy.count_to(sum(busy.counted) + ENOUGH)
        return journal.read_bytes() != before

    until(is_used, "turns that share commits")
    with rlite_pubsub.Redis(folder) as program:
        program.get("key")
        busy.count_to(sum(busy.counted) + ENOUGH)  # the last one that shared is over
        assert not is_used()
        program.set("key", "of the program")
        assert not is_used()
    until(is_used, "turns that share commits again")
    server.end(signal.SIGKILL)
    busy.end()
    with rlite_pubsub.Redis(folder) as client:
        check(client, busy.counted)
        assert client.get("key") == b"of the program"
