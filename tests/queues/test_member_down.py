"""A queue that is spread over several members, one of which is down: bounded, what is there is answered, and the
missing member is named."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from patience import until
from server_process import ServerProcess

from rlite_pubsub import queues
from rlite_pubsub.topics.course import PATIENCE_S


def shard(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "rlite_pubsub", "shard", *words], check=True, capture_output=True)


class Spread:
    """Two members: the first has the queue `here`, whose middle segment the second has, and that has `there`."""

    def __init__(self, folder: Path) -> None:
        self.first, self.second = (ServerProcess(folder / name) for name in ("first", "second"))
        self.url = f"redis://127.0.0.1:{self.first.port}"
        self.missing = f"127.0.0.1:{self.second.port}"
        at = f"127.0.0.1:{self.first.port}"
        shard("create", at, self.missing)
        with redis.Redis(port=self.first.port) as client:
            self.here, self.there = (self._name(client, server.port) for server in (self.first, self.second))
            with queues.Queue(self.url, self.here) as queue, queues.Queue(self.url, self.there) as other:
                queue.create_subscriber("w")
                other.create_subscriber("w")
                segments = []
                for number in range(0, 15, 5):
                    queue.push(*map(str, range(number, number + 5)))
                    if number < 10:
                        segments.append(client.execute_command("QUEUE.CUT", self.here).decode())
            shard("move", at, self.missing, segments[1])

    def _name(self, client: Any, port: int) -> str:
        rows = client.execute_command("CLUSTER", "SLOTS")

        def owner(name: str) -> int:
            slot = client.execute_command("CLUSTER", "KEYSLOT", name)
            return next(int(node[1]) for first, last, node, *_ in rows if first <= slot <= last)

        return next(name for name in (f"q{number}" for number in range(1000)) if owner(name) == port)

    def close(self) -> None:
        for server in (self.first, self.second):
            if server.process.poll() is None:
                server.process.send_signal(signal.SIGCONT)
                server.process.kill()
                server.process.wait()


@pytest.fixture
def spread(tmp_path: Path) -> Iterator[Spread]:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    found = Spread(tmp_path)
    yield found
    found.close()


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGSTOP], ids=["down", "silent"])
def test_what_is_there_is_popped_and_then_the_missing_member_is_named_in_time(spread: Spread, by: int) -> None:
    assert queues.list_queues(spread.url) == sorted([spread.here, spread.there])
    with queues.get_subscriber(spread.url, f"{spread.here}:w") as worker:
        spread.second.process.send_signal(by)
        begun = time.monotonic()
        assert [int(item.value) for item in worker.pop_many(20)] == list(range(5))
        for ask in (lambda: worker.pop_many(20), worker.pop, worker.peek, lambda: worker.pop(ack=True)):
            with pytest.raises(redis.exceptions.ClusterDownError, match=spread.missing):
                ask()
        assert time.monotonic() - begun < PATIENCE_S, "nobody who does not want to wait waits for what may come back"
        spread.second.process.send_signal(signal.SIGCONT)
        if by == signal.SIGKILL:
            return
        got: list[int] = []

        def has_all() -> bool:
            got.extend(int(item.value) for item in worker.pop_many(20, timeout=5))
            return len(got) == 10

        until(has_all, "the rest")
        assert got == list(range(5, 15)), "its place is where it was"


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGSTOP], ids=["down", "silent"])
def test_queues_are_listed_without_the_missing_member_which_is_named(spread: Spread, by: int) -> None:
    spread.second.process.send_signal(by)
    found = queues.list_queues(spread.url)
    assert (found, found.missing) == ([spread.here], (spread.missing,))
    found = asyncio.run(queues.aio.list_queues(spread.url))
    assert (found, found.missing) == ([spread.here], (spread.missing,))
    spread.first.process.kill()
    spread.first.process.wait()
    with pytest.raises(redis.ConnectionError):
        queues.list_queues(spread.url)
