"""appendfsync always: no reply before the disk has what it acknowledges; one sync for many; nobody else waits."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import redis
from patience import PATIENCE_S, until
from ports import free_port
from server_process import ServerProcess

from rlite_pubsub.engine.turn import end_turn
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.pubsub.session import Session
from rlite_pubsub.server.safekeeping import Safekeeping
from rlite_pubsub.storage.checkpoints.syncing import Syncing
from rlite_pubsub.storage.errors import StoreUnwritable


class SlowDisk:
    """Syncs when it is told to."""

    def __init__(self) -> None:
        self.safety = self
        self.begun = queue.Queue[None]()
        self.outcomes = queue.Queue[Exception | None]()
        self.syncs = 0
        self.is_quick = False
        self.is_brief = False

    def last_commit(self) -> int:
        return 1

    def used_bytes(self) -> int:
        return 0

    def call_when_grown(self, grown: Callable[[], None]) -> None:
        """It does not grow."""

    def begin_sync(self) -> None:
        """It has nothing to pin."""

    def finish_sync(self, pinned: None) -> None:
        self.syncs += 1
        self.begun.put(None)
        outcome = self.outcomes.get(timeout=PATIENCE_S)
        if outcome is not None:
            raise outcome

    def sync_at_once(self) -> bool:
        return self.is_quick

    def finish(self, failure: Exception | None = None) -> None:
        """Let the sync under way end."""
        self.begun.get(timeout=PATIENCE_S)
        self.outcomes.put(failure)


class Loop:
    """Calls what other threads want to have called when it is told to."""

    def __init__(self) -> None:
        self._calls = queue.Queue[tuple[Callable[..., None], tuple[Any, ...]]]()
        self.turns_wanted = 0

    def call_soon_threadsafe(self, callback: Callable[..., None], *args: Any) -> None:
        self._calls.put((callback, args))

    def run_one(self) -> None:
        callback, args = self._calls.get(timeout=PATIENCE_S)
        callback(*args)

    def soon(self) -> None:
        self.turns_wanted += 1


class Client(Session):
    """Its peer hears what is flushed."""

    def __init__(self, hub: Hub) -> None:
        super().__init__(1, hub)
        self.heard = b""

    def flush(self) -> None:
        self.dirty = False
        self.heard += b"".join(self.said)
        self.said.clear()


class Server:
    def __init__(self) -> None:
        self.disk, self.loop, self.hub = SlowDisk(), Loop(), Hub(lambda counts: None)
        self.keeping = Safekeeping(Syncing(self.disk), self.hub, self.loop, self.loop)  # type: ignore[arg-type]

    def turn(self, *replies: tuple[Client, bytes]) -> None:
        """A turn in which these were answered, by commands that wrote."""
        for client, reply in replies:
            client.send(reply)
        if replies:
            self.keeping.withhold(list(replies))  # type: ignore[arg-type]
        end_turn(self.hub.agenda)

    def synced(self, failure: Exception | None = None) -> None:
        self.disk.finish(failure)
        self.loop.run_one()
        end_turn(self.hub.agenda)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    for _ in range(3):
        server.disk.outcomes.put(None)
    server.keeping.stop()


def test_a_reply_leaves_when_its_sync_has_ended_and_not_before(server: Server) -> None:
    writer = Client(server.hub)
    server.turn((writer, b"+OK\r\n"))
    server.turn()
    assert writer.heard == b""
    server.synced()
    assert writer.heard == b"+OK\r\n"
    assert server.loop.turns_wanted == 1


def test_a_quick_disk_is_waited_for_at_the_turn_s_end(server: Server) -> None:
    writer = Client(server.hub)
    server.disk.is_quick = True
    server.turn((writer, b"+OK\r\n"))
    assert writer.heard == b"+OK\r\n"
    assert (server.disk.syncs, server.loop.turns_wanted) == (0, 0)


def test_a_quick_disk_lets_no_reply_go_before_an_earlier_one(server: Server) -> None:
    writer = Client(server.hub)
    server.turn((writer, b"+1\r\n"))
    server.disk.begun.get(timeout=PATIENCE_S)
    server.disk.is_quick = True
    server.turn((writer, b"+2\r\n"))
    assert writer.heard == b""
    server.disk.outcomes.put(None)
    server.loop.run_one()
    server.synced()
    assert writer.heard == b"+1\r\n+2\r\n"


def test_who_does_not_write_does_not_wait(server: Server) -> None:
    writer, subscriber = Client(server.hub), Client(server.hub)
    server.turn((writer, b"+OK\r\n"))
    subscriber.send(b"message")
    server.turn()
    assert subscriber.heard == b"message"
    assert writer.heard == b""


def test_all_that_was_committed_during_a_sync_shares_the_next(server: Server) -> None:
    writers = [Client(server.hub) for _ in range(50)]
    server.turn((writers[0], b"+0\r\n"))
    server.disk.begun.get(timeout=PATIENCE_S)  # it has begun: what follows is not in it
    for number, writer in enumerate(writers[1:], 1):
        server.turn((writer, b"+%d\r\n" % number))
    server.disk.outcomes.put(None)
    server.loop.run_one()
    end_turn(server.hub.agenda)
    assert [writer.heard for writer in writers] == [b"+0\r\n"] + [b""] * 49
    server.synced()
    assert [writer.heard for writer in writers] == [b"+%d\r\n" % number for number in range(50)]
    assert server.disk.syncs == 2


def test_a_session_s_later_replies_stay_behind_its_earlier_ones(server: Server) -> None:
    writer = Client(server.hub)
    server.turn((writer, b"+1\r\n"))
    server.disk.begun.get(timeout=PATIENCE_S)
    server.turn((writer, b"+2\r\n"))
    writer.send(b"+read\r\n")
    server.turn()
    server.disk.outcomes.put(None)
    server.loop.run_one()
    end_turn(server.hub.agenda)
    assert writer.heard == b""
    server.synced()
    assert writer.heard == b"+1\r\n+2\r\n+read\r\n"


def test_where_the_disk_fails_the_reply_is_an_error(server: Server) -> None:
    writer = Client(server.hub)
    server.turn((writer, b"+OK\r\n"))
    server.synced(StoreUnwritable(Path("data.mdb"), "Input/output error"))
    assert writer.heard.startswith(b"-MISCONF ") and writer.heard.endswith(b"\r\n")


def test_stopping_waits_for_the_disk_and_answers(server: Server) -> None:
    writer = Client(server.hub)
    server.turn((writer, b"+OK\r\n"))
    for _ in range(3):
        server.disk.outcomes.put(None)
    server.keeping.stop()
    end_turn(server.hub.agenda)
    assert writer.heard == b"+OK\r\n"


def test_fifty_clients_write_under_always_and_all_is_there_after_kill_9(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, "--appendfsync", "always")
    acknowledged: list[bytes] = []
    failures: list[Exception] = []

    def write(number: int) -> None:
        client = redis.Redis(port=server.port, retry=None)
        try:
            for count in range(1000):
                key = b"%d:%d" % (number, count)
                client.set(key, key)
                acknowledged.append(key)
        except redis.ConnectionError:
            pass
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    until(lambda: len(acknowledged) > 2000, "2,000 replies")
    server.process.kill()
    server.process.wait()
    for thread in threads:
        thread.join()
    assert not failures
    again = ServerProcess(tmp_path, "--appendfsync", "always")
    try:
        found = redis.Redis(port=again.port).mget(acknowledged)
        assert found == acknowledged
    finally:
        again.process.kill()
        again.process.wait()


def test_each_tenth_entry_of_a_topic_that_says_so_is_answered_behind_a_sync(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, "--appendfsync", "no", "--http-port", str(http_port := free_port()))
    try:
        client = redis.Redis(port=server.port)
        client.execute_command("TOPIC.CREATE", "t", "SYNC-EVERY", "10")
        for _ in range(200):
            client.xadd("t", {"n": 1})
        with urlopen(f"http://127.0.0.1:{http_port}/metrics", timeout=PATIENCE_S) as answer:
            lines = answer.read().decode().splitlines()
        counts = [float(line.split()[1]) for line in lines if line.startswith("rlite_sync_seconds_count")]
        assert sum(counts) >= 20
    finally:
        server.clean_up()
