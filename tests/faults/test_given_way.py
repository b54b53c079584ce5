"""A turn that makes way for somebody who needs the store commits what it has done so far. Others learn of that commit
as of any other: whoever tracks the keys, and whoever waits for them, whatever becomes of the rest of the turn."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import redis
from peer import request
from server_process import Serve

from tests.faults.program import Start
from tests.faults.test_whole_messages import HOLDS

GIVES_WAY = ("SUBSCRIBER.INFO", "nobody")
"""It reads the store beside the keys' transaction."""
SPINS = "local began = os.clock() while os.clock() - began < 1 do end"


def test_who_tracks_a_key_hears_that_it_was_changed_though_another_process_writes_at_the_turn_s_end(
    serve: Serve, start: Start, tmp_path: Path
) -> None:
    server = serve("--writer-patience", "60")
    other = serve(folder=tmp_path / "other", store_folder=server.store_folder)
    with other.connect(protocol=3) as tracker, server.connect() as peer:
        tracker.do("CLIENT", "TRACKING", "ON")
        for key in ("key", "last"):
            assert tracker.do("GET", key) is None
        assert peer.do("SET", "not:read", "value") == b"OK"
        holder = start(HOLDS, folder=server.store_folder)
        assert holder.hear() == "open"
        peer.send(request("SET", "key", "value") + request(*GIVES_WAY) + request("EVAL", SPINS, 0))
        with redis.Redis(port=other.port) as reader:
            while reader.get("key") is None:
                pass  # until it has given way
        holder.tell("data")
        assert holder.hear() == "holds"
        answer, _, _ = [peer.reply() for _ in range(3)]
        assert answer == b"OK"
        holder.tell("")
        assert holder.hear() == "let go"
        assert peer.do("SET", "last", "value") == b"OK"
        heard: list[bytes] = []
        while b"last" not in heard:
            heard += tracker.reply()[1]
        assert heard == [b"key", b"last"]


def test_who_tracks_a_key_hears_that_it_was_changed_though_the_process_dies_once_it_has_given_way(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve()
    other = serve(folder=tmp_path / "other", store_folder=server.store_folder)
    with other.connect(protocol=3) as tracker, server.connect() as peer, redis.Redis(port=other.port) as reader:
        tracker.do("CLIENT", "TRACKING", "ON")
        assert tracker.do("GET", "key") is None
        peer.send(request("SET", "key", "value") + request(*GIVES_WAY) + request("EVAL", SPINS, 0))
        while reader.get("key") is None:
            pass  # until it has given way
        server.end(signal.SIGKILL)
        assert tracker.reply() == [b"invalidate", [b"key"]]


def test_who_waits_for_a_key_elsewhere_is_woken_by_the_commit_of_a_turn_that_gives_way(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(environment={"RLITE_FAILPOINT": "change-committed"})
    other = serve(folder=tmp_path / "other", store_folder=server.store_folder)
    with other.connect() as waiting, server.connect() as peer:
        waiting.send(request("BLPOP", "list", 0))
        with redis.Redis(port=other.port) as asking:
            while not asking.info("clients")["blocked_clients"]:
                pass
        peer.send(request("RPUSH", "list", "value") + request(*GIVES_WAY))
        with pytest.raises(ConnectionError):  # it dies where it would have woken others
            peer.reply()
        assert waiting.reply() == [b"list", b"value"]


FIRST, SECOND = ("SET", "first", 1), ("SET", "second", 1)
SAYS = f"redis.call('SET', 'first', 1) redis.call('PUBLISH', 'news', 1) {SPINS} redis.call('SET', 'second', 1)"
WHOLE: dict[str, list[tuple[str | int, ...]]] = {
    "script": [("EVAL", SAYS, 0)],
    "transaction": [("MULTI",), FIRST, ("EVAL", SPINS, 0), SECOND, ("EXEC",)],
    "asking": [("MULTI",), FIRST, ("PUBSUB", "NUMSUB", "news"), ("EVAL", SPINS, 0), SECOND, ("EXEC",)],
}


@pytest.mark.parametrize("form", WHOLE)
def test_what_is_one_to_others_is_so_though_a_durable_subscriber_may_hear_of_it(
    serve: Serve, tmp_path: Path, form: str
) -> None:
    """Who receives a message, or an event of a key, stands in the same file as the keys."""
    server = serve()
    other = serve(folder=tmp_path / "other", store_folder=server.store_folder)
    with server.connect() as peer:
        assert peer.do("CONFIG", "SET", "notify-keyspace-events", "KEA") == b"OK"
        with server.connect() as durable:
            assert durable.do("CLIENT", "SETNAME", "durable:name") == b"OK"
            assert durable.do("SUBSCRIBE", "of another name") == [b"subscribe", b"of another name", 1]
        assert peer.do("PUBLISH", "of another name", "m") == 1
        peer.send(b"".join(request(*words) for words in WHOLE[form]))
        with redis.Redis(port=other.port) as reader:
            while not any(found := reader.mget("first", "second")):
                pass
        assert found == [b"1", b"1"]
