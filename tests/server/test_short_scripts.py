"""Scripts the plain way: what a pipeline of them is answered, and how it is counted, is that of as many single ones."""

from __future__ import annotations

import hashlib

from peer import Peer, request
from server_process import ServerProcess

SOURCE = "redis.call('set', KEYS[1], ARGV[1]) return redis.call('get', KEYS[1])"
SHA = hashlib.sha1(SOURCE.encode()).hexdigest()


def stats_of(peer: Peer, section: str, *names: str) -> dict[str, str]:
    """Without how long calls took."""
    lines = dict(line.split(":", 1) for line in peer.do("INFO", section).decode().splitlines() if ":" in line)
    return {
        name: ",".join(part for part in lines.get(name, "").split(",") if "usec" not in part) for name in names
    }


def test_a_pipeline_of_scripts_is_answered_and_counted_as_single_ones(server: ServerProcess) -> None:
    with server.connect() as peer:
        assert peer.do("SCRIPT", "LOAD", SOURCE) == SHA.encode()
        peer.send(
            b"".join([request("EVALSHA", SHA, 1, f"k{number}", number) for number in range(200)])
            + request("EVALSHA", "f" * 40, 0)
            + request("EVAL", "return redis.call('incr', 'k1', 1)", 0)
            + request("EVAL_RO", SOURCE, 1, "k", 1)
            + request("GET", "k199")
        )
        replies = peer.replies(204)
        assert replies[:200] == [b"%d" % number for number in range(200)]
        assert str(replies[200]) == "NOSCRIPT No matching script. Please use EVAL."
        assert "Wrong number of args" in str(replies[201])
        assert "Write commands are not allowed from read-only scripts" in str(replies[202])
        assert replies[203] == b"199"
        assert stats_of(peer, "commandstats", "cmdstat_evalsha", "cmdstat_eval", "cmdstat_eval_ro", "cmdstat_set") == {
            "cmdstat_evalsha": "calls=201,rejected_calls=0,failed_calls=1",
            "cmdstat_eval": "calls=1,rejected_calls=0,failed_calls=1",
            "cmdstat_eval_ro": "calls=1,rejected_calls=0,failed_calls=1",
            "cmdstat_set": "calls=200,rejected_calls=1,failed_calls=0",
        }
        assert stats_of(peer, "errorstats", "errorstat_NOSCRIPT", "errorstat_ERR") == {
            "errorstat_NOSCRIPT": "count=1",
            "errorstat_ERR": "count=2",
        }


def test_what_a_script_pushes_and_publishes_reaches_who_waits_for_it(server: ServerProcess) -> None:
    source = "redis.call('rpush', KEYS[1], ARGV[1]) return redis.call('publish', 'news', ARGV[1])"
    with server.connect() as peer, server.connect() as popper, server.connect() as subscriber:
        subscriber.do("SUBSCRIBE", "news")
        popper.send(request("BLPOP", "l", 0))
        peer.send(b"".join([request("EVAL", source, 1, "l", number) for number in range(3)]) + request("LLEN", "l"))
        assert peer.replies(3) == [1, 1, 1]
        assert popper.replies(1) == [[b"l", b"0"]]
        assert peer.replies(1) == [2]
        assert subscriber.replies(3) == [[b"message", b"news", b"%d" % number] for number in range(3)]
