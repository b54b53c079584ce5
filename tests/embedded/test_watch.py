"""WATCH over processes: who writes what it has made of a watched key has seen what everybody else has written."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis
from other_process import OtherProcess
from server_process import Serve

import rlite_pubsub

COUNTS = """
import redis
client = redis.Redis(port=int(port)) if port else rlite_pubsub.Redis(folder)
client.get("count")
say("ready")
sys.stdin.readline()
for _ in range(ROUNDS):
    def increment(pipe):
        count = int(pipe.get("count") or 0)
        pipe.multi()
        pipe.set("count", count + 1)
    client.transaction(increment, "count")
say("done")
client.close()
"""
ROUNDS = 300

STANDS_BEFORE_WRITING = """
import redis
from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment

begin, gates = LmdbEnvironment.begin, []

def begin_behind_the_gate(self, turn, *, write):
    if write and gates:
        say(gates.pop())
        sys.stdin.readline()
    return begin(self, turn, write=write)

LmdbEnvironment.begin = begin_behind_the_gate
client = rlite_pubsub.Redis(folder)
with client.pipeline() as pipe:
    pipe.watch("book")
    pipe.hgetall("book")
    pipe.multi()
    pipe.hset("book", "of the first", 1)
    gates.append("at the gate")
    try:
        say("done", pipe.execute())
    except redis.WatchError:
        say("spoilt")
client.close()
"""


def counting(folder: Path, port: int = 0) -> OtherProcess:
    """Of the store, or by a server's port."""
    return OtherProcess(folder, f"port = {port}; ROUNDS = {ROUNDS}\n", COUNTS)


def test_no_increment_of_servers_and_programs_is_lost(serve: Serve, folder: Path) -> None:
    server, second = serve(), serve()
    with (
        counting(folder) as one,
        counting(folder) as two,
        counting(folder, server.port) as three,
        counting(folder, second.port) as four,
        redis.Redis(port=server.port) as client,
    ):
        processes = one, two, three, four
        assert [process.hear() for process in processes] == ["ready"] * 4
        for process in processes:
            process.tell("go")
        assert [process.hear() for process in processes] == ["done"] * 4
        assert client.get("count") == b"%d" % (4 * ROUNDS)


@pytest.mark.parametrize("by_server", [True, False], ids=["server", "program"])
@pytest.mark.parametrize("key", ["book", "another"])
def test_what_others_write_before_exec_can_write_spoils_it_if_it_is_watched(
    serve: Serve, folder: Path, by_server: bool, key: str
) -> None:
    server = serve()
    other: redis.Redis = redis.Redis(port=server.port) if by_server else rlite_pubsub.Redis(folder)
    with other, OtherProcess(folder, STANDS_BEFORE_WRITING) as first:
        assert first.hear() == "at the gate"
        other.hset(key, "of the second", 1)
        first.tell("go on")
        assert first.hear() == ("spoilt" if key == "book" else "done [1]")
        assert other.hexists("book", "of the first") == (key != "book")
