"""kill -9 of a server that changes collections: what was acknowledged is there, and nothing is half there."""

from __future__ import annotations

import contextlib
import random
import signal
from pathlib import Path

import pytest

import rlite_pubsub
from tests.server.peer import Peer, request
from tests.server.server_process import Serve

REPLIES = 8
STEPS_AT_ONCE = 30


def step(number: int) -> bytes:
    """One transaction: the same number into each collection, and an element out of the queue."""
    return b"".join(
        [
            request("MULTI"),
            request("HSET", "hash", f"f{number}", number),
            request("RPUSH", "list", number),
            request("SADD", "set", f"m{number}"),
            request("SADD", "numbers", number),
            request("ZADD", "scores", number % 10, f"m{number}"),
            request("LMOVE", "queue", "done", "LEFT", "RIGHT"),
            request("EXEC"),
        ]
    )


def acknowledged(peer: Peer) -> int:
    """How many transactions are still answered by a server that is gone."""
    count = 0
    with contextlib.suppress(OSError):
        while True:
            assert len(peer.replies(REPLIES)[-1]) == REPLIES - 2
            count += 1
    return count


@pytest.mark.parametrize("seed", range(3))
def test_what_was_acknowledged_is_in_every_collection(serve: Serve, folder: Path, seed: int) -> None:
    luck = random.Random(seed)
    length = 0
    for rounds in (1, 4, 12):  # small collections, and such as become large meanwhile
        server = serve()
        with server.connect() as peer:
            peer.do("RPUSH", "queue", *range(2 * rounds * STEPS_AT_ONCE))
            done = length
            for _ in range(rounds):
                peer.send(b"".join([step(done + ahead) for ahead in range(STEPS_AT_ONCE)]))
                peer.replies(STEPS_AT_ONCE * REPLIES)
                done += STEPS_AT_ONCE
            peer.send(b"".join([step(done + ahead) for ahead in range(STEPS_AT_ONCE)]))
            if luck.random() < 0.7:
                read = luck.randrange(1, STEPS_AT_ONCE)
                peer.replies(REPLIES * read)
                done += read
            server.end(signal.SIGKILL)
            done += acknowledged(peer)
        with rlite_pubsub.Redis(folder) as client:
            length = client.llen("list")
            assert done <= length
            assert client.lrange("list", 0, -1) == [b"%d" % number for number in range(length)]
            assert client.hgetall("hash") == {b"f%d" % number: b"%d" % number for number in range(length)}
            assert client.smembers("set") == {b"m%d" % number for number in range(length)}
            assert client.smembers("numbers") == {b"%d" % number for number in range(length)}
            assert client.llen("done") == length
            ranked = sorted((float(number % 10), b"m%d" % number) for number in range(length))
            assert client.zrange("scores", 0, -1, withscores=True) == [(name, score) for score, name in ranked]
            assert [client.zrank("scores", name) for _, name in ranked] == list(range(length))
