"""kill -9 of a server in the middle of a script: all that it has written is there, or nothing of it."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

import rlite_pubsub
from tests.server.peer import request
from tests.server.server_process import Serve

AT_ONCE = 20
_STEP = """
for place = 1, 10 do
  redis.call('rpush', 'l' .. place, ARGV[1])
  redis.call('hset', 'h', place, ARGV[1])
end
return redis.call('incr', 'steps')
"""
_ENDLESS = "redis.call('set', 'half', 1) redis.call('publish', 'begun', '') while true do end"


def test_a_script_that_was_killed_with_its_server_has_written_nothing(serve: Serve, folder: Path) -> None:
    server = serve("--busy-reply-threshold", "1")
    with server.connect() as peer, server.connect() as other:
        assert peer.do("SET", "before", "1") == b"OK"
        peer.send(request("EVAL", _ENDLESS, 0))
        while "BUSY" not in str(other.do("PING")):
            pass  # it has not begun
        server.end(signal.SIGKILL)
    with rlite_pubsub.Redis(folder) as client:
        assert client.keys("*") == [b"before"]


def test_scripts_are_whole_after_a_kill_and_acknowledged_ones_are_there(serve: Serve, folder: Path) -> None:
    server = serve()
    acknowledged = 0
    with server.connect() as peer:
        for number in range(5):
            peer.send(b"".join([request("EVAL", _STEP, 0, number * AT_ONCE + ahead) for ahead in range(AT_ONCE)]))
            if number < 4:
                peer.replies(AT_ONCE)
                acknowledged += AT_ONCE
        server.end(signal.SIGKILL)
        with contextlib.suppress(OSError):
            while True:
                peer.replies(1)
                acknowledged += 1
    with rlite_pubsub.Redis(folder) as client:
        steps = int(client.get("steps"))
        assert acknowledged <= steps
        for place in range(1, 11):
            assert client.lrange(f"l{place}", 0, -1) == [b"%d" % number for number in range(steps)]
        assert set(client.hvals("h")) == {b"%d" % (steps - 1)}
