"""A durable subscriber outlives its connection and its server; what came meanwhile comes first, in order."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from patience import PATIENCE_S, until
from peer import Peer, request
from server_process import Serve, ServerProcess

import rlite_pubsub
from rlite_pubsub.durable.mailbox import HUNG_MS, ON_ITS_WAY_BYTES

_LOOK = """
import json, sys
from rlite_pubsub.storage.store import Store
with Store.open(sys.argv[1]) as store:
    def kinds(txn):
        found = {}
        for key, _ in txn.cursor():
            found[chr(key[0])] = found.get(chr(key[0]), 0) + 1
        return found
    print(json.dumps([store.data.read(kinds), store.live.read(kinds), store.data.last_commit()]))
"""


def records(store_folder: Path) -> tuple[dict[str, int], dict[str, int], int]:
    """How many records of each kind data.mdb and live.mdb hold, and data.mdb's last transaction."""
    ended = subprocess.run([sys.executable, "-c", _LOOK, str(store_folder)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    data, live, commit = json.loads(ended.stdout)
    data.pop("\0")
    return data, live, commit


def durable(server: ServerProcess, name: str = "d", *, protocol: int = 2, **options: Any) -> Peer:
    peer = Peer(server.port, protocol=protocol, **options)
    assert peer.do("CLIENT", "SETNAME", f"durable:{name}") == b"OK"
    return peer


def subscribed(server: ServerProcess, *channels: str, name: str = "d", **options: Any) -> Peer:
    peer = durable(server, name, **options)
    peer.send(request("SUBSCRIBE", *channels))
    peer.replies(len(channels))
    return peer


def gone(server: ServerProcess, name: str = "d") -> None:
    """Wait until nobody is attached."""
    with server.connect() as asking:
        until(lambda: not info(asking, name)[b"attached"], "its going away")


def info(peer: Peer, name: str = "d") -> dict[bytes, Any]:
    flat = peer.do("SUBSCRIBER.INFO", name)
    assert isinstance(flat, list), flat
    return dict(zip(flat[::2], flat[1::2], strict=True))


def publish(server: ServerProcess, channel: str, *payloads: str) -> list[Any]:
    with server.connect() as publisher:
        publisher.send(b"".join([request("PUBLISH", channel, payload) for payload in payloads]))
        return publisher.replies(len(payloads))


def empty(server: ServerProcess, name: str = "d") -> None:
    with server.connect() as asking:
        until(lambda: not info(asking, name)[b"backlog_messages"], "an empty mailbox")


def all_of(peer: Peer, last: str) -> tuple[list[str], int]:
    """The messages, and how many it was told that it has lost, until this one comes."""
    found: list[str] = []
    lost = 0
    while not found or found[-1] != last:
        message = peer.reply()
        if message[0] == b"gap":
            lost += message[2]
        elif message[0] == b"message":
            found.append(message[2].split()[0].decode())
    return found, lost


def messages(pubsub: redis.client.PubSub, count: int) -> Iterator[tuple[str, bytes, bytes]]:
    for _ in range(count):
        message = None
        while message is None:
            message = pubsub.get_message(ignore_subscribe_messages=True, timeout=PATIENCE_S)
        yield message["type"], message["channel"], message["data"]


@pytest.mark.parametrize("protocol", [2, 3])
def test_what_was_published_while_it_was_away_arrives_first_and_in_order(server: ServerProcess, protocol: int) -> None:
    def client() -> redis.Redis:
        return redis.Redis(port=server.port, client_name="durable:d", protocol=protocol)

    publisher = redis.Redis(port=server.port)
    first = client().pubsub()
    first.subscribe("news")
    assert first.get_message(timeout=PATIENCE_S)["type"] == "subscribe"  # type: ignore[index]
    assert publisher.publish("news", "0") == 1
    assert list(messages(first, 1)) == [("message", b"news", b"0")]
    empty(server)
    first.close()
    gone(server)

    for number in range(1, 1000):
        assert publisher.publish("news", str(number)) == 1
    again = client().pubsub()
    again.subscribe("news")
    assert again.get_message(timeout=PATIENCE_S)["type"] == "subscribe"  # type: ignore[index]
    publisher.publish("news", "1000")

    assert [int(data) for _, _, data in messages(again, 1000)] == list(range(1, 1001))
    empty(server)
    again.close()


def test_messages_that_wait_survive_kill_9_of_the_server(serve: Serve) -> None:
    server = serve()
    subscribed(server, "news", "other").close()
    gone(server)
    assert publish(server, "news", *map(str, range(100))) == [1] * 100
    server.end(signal.SIGKILL)

    server = serve()
    assert publish(server, "other", "100") == [1]
    with durable(server) as peer:
        assert peer.do("SUBSCRIBE", "news") == [b"subscribe", b"news", 2]
        assert [int(message[2]) for message in peer.replies(101)] == list(range(101))
        publish(server, "news", "101")
        assert peer.reply() == [b"message", b"news", b"101"]


def test_attached_subscriber_of_a_killed_server_misses_nothing(serve: Serve) -> None:
    server = serve()
    with subscribed(server, "news") as peer:
        server.end(signal.SIGKILL)
        assert peer.is_closed()
    server = serve()
    assert publish(server, "news", "x") == [1]
    with subscribed(server, "news") as peer:
        assert peer.reply() == [b"message", b"news", b"x"]


_CLIENT = """
import signal, socket, sys
sock = socket.socket(fileno=int(sys.argv[1]))
sock.setblocking(True)
taken = 0
while taken < 200_000:
    data = sock.recv(1000)
    taken += len(data)
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
signal.pause()
"""


def test_nothing_is_lost_of_what_the_kernel_of_a_killed_client_had_not_acknowledged(
    server: ServerProcess, tmp_path: Path
) -> None:
    count = 30_000
    peer = subscribed(server, "news", receive_buffer_bytes=32 * 1024)
    peer.socket.settimeout(None)
    taken = tmp_path / "taken"
    with open(taken, "wb") as output:
        client = subprocess.Popen(
            [sys.executable, "-c", _CLIENT, str(peer.socket.fileno())],
            pass_fds=[peer.socket.fileno()],
            stdout=output,
        )
        publish(server, "news", *[f"{number:06}" + "." * 200 for number in range(count)])
        until(lambda: taken.stat().st_size >= 200_000, "the stream")
        client.kill()
        client.wait()
    peer.socket.settimeout(PATIENCE_S)
    seen = taken.read_bytes()
    rest = b""
    peer.socket.shutdown(socket.SHUT_WR)  # the cut: what is on its way to the peer's kernel now may or may not count
    try:
        while data := peer.socket.recv(1 << 20):
            rest += data
    except ConnectionResetError:
        pass
    peer.close()
    whole = (seen + rest).count(b"." * 200)
    gone(server)

    with subscribed(server, "news") as again:
        first = int(again.reply()[2][:6])
        assert 0 < first <= whole < count
        assert [int(message[2][:6]) for message in again.replies(count - first - 1)] == list(range(first + 1, count))
    empty(server)


_READER = """
import redis, sys
pubsub = redis.Redis(port=int(sys.argv[1]), client_name="durable:d").pubsub()
pubsub.subscribe("news")
for message in pubsub.listen():
    if message["type"] == "message":
        print(message["data"].decode()[:6], flush=True)
"""


def test_program_that_is_killed_in_the_middle_of_a_stream_misses_nothing(server: ServerProcess, tmp_path: Path) -> None:
    count = 20_000
    subscribed(server, "news").close()
    gone(server)
    publish(server, "news", *[f"{number:06}" + "." * 200 for number in range(count)])
    taken = tmp_path / "taken"
    for killed in range(1, 4):
        with open(taken, "ab") as output:
            reader = subprocess.Popen([sys.executable, "-c", _READER, str(server.port)], stdout=output)
            before = taken.stat().st_size
            until(lambda: taken.stat().st_size > before + 2000, f"stream {killed}")  # noqa: B023
            reader.kill()
            reader.wait()
        gone(server)
    with subscribed(server, "news") as again:
        rest: set[int] = set()
        while count - 1 not in rest:
            rest.add(int(again.reply()[2][:6]))
    read = {int(line) for line in taken.read_bytes().split(b"\n") if len(line) == 6}
    assert read | rest == set(range(count))


def test_cut_connection_is_sent_again_what_it_has_not_taken(server: ServerProcess) -> None:
    peer = subscribed(server, "news", receive_buffer_bytes=4096)
    publish(server, "news", *[f"{number:06}" + "." * 1000 for number in range(20_000)])
    peer.reset()
    gone(server)
    with subscribed(server, "news") as again:
        first = int(again.reply()[2][:6])
        assert first < 500  # the peer's kernel had room for some; what ours still had is not lost
        assert [int(message[2][:6]) for message in again.replies(19_999 - first)] == list(range(first + 1, 20_000))


def test_newer_connection_takes_over_and_the_older_is_closed(server: ServerProcess) -> None:
    older = subscribed(server, "news")
    with subscribed(server, "news") as newer:
        assert older.is_closed()
        assert publish(server, "news", "x") == [1]
        assert newer.reply() == [b"message", b"news", b"x"]
    assert "taken over by a newer connection" in server.log()


def test_connection_of_another_server_takes_over(serve: Serve) -> None:
    first, second = serve(), serve()
    older = subscribed(first, "news")
    with subscribed(second, "news") as newer:
        assert older.is_closed()
        assert publish(first, "news", "x", "y") == [1, 1]
        assert publish(second, "news", "z") == [1]
        assert [message[2] for message in newer.replies(3)] == [b"x", b"y", b"z"]


def test_attached_to_one_server_it_gets_what_another_publishes(serve: Serve) -> None:
    first, second = serve(), serve()
    with subscribed(first, "news") as peer:
        assert publish(second, "news", *map(str, range(2000))) == [1] * 2000
        assert [int(message[2]) for message in peer.replies(2000)] == list(range(2000))
    gone(first)
    assert publish(second, "news", "away") == [1]
    with subscribed(second, "news") as peer:
        assert peer.reply() == [b"message", b"news", b"away"]


@pytest.mark.parametrize("protocol", [2, 3])
def test_patterns_and_shards_are_kept_and_a_message_comes_in_each_form_that_matched(
    server: ServerProcess, protocol: int
) -> None:
    with durable(server, protocol=protocol) as peer:
        assert peer.do("SUBSCRIBE", "news") == [b"subscribe", b"news", 1]
        assert peer.do("PSUBSCRIBE", "n*", "x*") == [b"psubscribe", b"n*", 2]
        assert peer.reply() == [b"psubscribe", b"x*", 3]
        assert peer.do("SSUBSCRIBE", "shard") == [b"ssubscribe", b"shard", 1]
    gone(server)
    assert publish(server, "news", "1") == [2]
    assert publish(server, "xyz", "2") == [1]
    with server.connect() as publisher:
        assert publisher.do("SPUBLISH", "shard", "3") == 1
        assert publisher.do("PUBSUB", "NUMSUB", "news") == [b"news", 1]
        assert publisher.do("PUBSUB", "NUMPAT") == 2
        assert publisher.do("PUBSUB", "SHARDCHANNELS") == [b"shard"]
    with durable(server, protocol=protocol) as peer:
        assert peer.do("PSUBSCRIBE", "n*") == [b"psubscribe", b"n*", 3]
        assert peer.replies(4) == [
            [b"message", b"news", b"1"],
            [b"pmessage", b"n*", b"news", b"1"],
            [b"pmessage", b"x*", b"xyz", b"2"],
            [b"smessage", b"shard", b"3"],
        ]


def test_unsubscribing_removes_the_name_and_what_waits_under_it(server: ServerProcess) -> None:
    subscribed(server, "a", "b").close()
    gone(server)
    with durable(server) as peer:
        assert peer.do("SUBSCRIBE", "c") == [b"subscribe", b"c", 3]
        peer.send(request("UNSUBSCRIBE", "a", "b", "nothing"))
        assert peer.replies(3) == [
            [b"unsubscribe", b"a", 2],
            [b"unsubscribe", b"b", 1],
            [b"unsubscribe", b"nothing", 1],
        ]
    gone(server)
    assert publish(server, "a", "x") == [0]
    assert publish(server, "c", "y") == [1]
    publish(server, "c", "z")
    with durable(server) as peer:
        peer.send(request("UNSUBSCRIBE", "c") + request("SUBSCRIBE", "d"))
        assert peer.replies(2) == [[b"unsubscribe", b"c", 0], [b"subscribe", b"d", 2]]
        assert [message[2] for message in peer.replies(2)] == [b"y", b"z"]
        assert peer.do("UNSUBSCRIBE") == [b"unsubscribe", b"c", 1]
        assert peer.reply() == [b"unsubscribe", b"d", 0]
        until(lambda: publish(server, "c", "nobody") == [0], "nobody")


def test_what_waits_under_a_name_that_is_given_up_is_not_sent(server: ServerProcess) -> None:
    subscribed(server, "a", "b").close()
    gone(server)
    publish(server, "a", "of a")
    publish(server, "b", "of b")
    with durable(server) as peer:
        peer.send(request("SUBSCRIBE", "b") + request("UNSUBSCRIBE", "a"))
        assert peer.replies(3) == [[b"subscribe", b"b", 2], [b"unsubscribe", b"a", 1], [b"message", b"b", b"of b"]]
    empty(server)


@pytest.mark.parametrize("limit", [("MAXLEN", "10"), ("MAXBYTES", "600")])
def test_beyond_its_limit_the_oldest_are_dropped_and_a_gap_says_so(
    server: ServerProcess, limit: tuple[str, str]
) -> None:
    with server.connect() as peer:
        assert isinstance(peer.do("SUBSCRIBER.ATTACH", "d", *limit), list)
        assert peer.do("SUBSCRIBE", "news", "other") == [b"subscribe", b"news", 1]
        peer.reply()
    gone(server)
    publish(server, "other", *["o"] * 5)
    publish(server, "news", *[f"{number:02}" for number in range(100)])
    with subscribed(server, "news") as peer:
        lost = {}
        while (message := peer.reply())[0] == b"gap":
            lost[message[1]] = message[2]
            assert message[3] > 1_600_000_000_000
        numbers = [int(message[2])]
        while numbers[-1] != 99:
            numbers.append(int(peer.reply()[2]))
        assert lost[b"other"] == 5
        assert numbers == list(range(lost[b"news"], 100))
        assert limit[0] != "MAXLEN" or len(numbers) == 10
    empty(server)
    with server.connect() as asking:
        assert info(asking)[b"lost_untold"] == 0
        assert info(asking)[b"dropped_messages"] == 5 + lost[b"news"]
        assert f"dropped_messages:{5 + lost[b'news']}".encode() in asking.do("INFO", "subscribers")
    assert "loses its oldest messages" in server.log()
    with subscribed(server, "news") as peer:
        publish(server, "news", "next")
        assert peer.reply() == [b"message", b"news", b"next"]


def test_limit_drops_nothing_that_an_attached_subscriber_can_take(server: ServerProcess) -> None:
    with server.connect() as peer:
        peer.do("SUBSCRIBER.ATTACH", "d", "MAXLEN", 10)
        peer.do("SUBSCRIBE", "news")
        publish(server, "news", *map(str, range(500)))
        assert [int(message[2]) for message in peer.replies(500)] == list(range(500))


def test_limit_of_one_that_is_attached_and_does_not_read_is_kept_and_told(server: ServerProcess) -> None:
    with server.connect(receive_buffer_bytes=4096) as peer:
        peer.do("SUBSCRIBER.ATTACH", "d", "MAXLEN", 100)
        peer.do("SUBSCRIBE", "news")
        for _ in range(20):
            publish(server, "news", *["." * 1000] * 1000)
        with server.connect() as asking:
            until(lambda: info(asking)[b"dropped_messages"] > 0, "a drop")
        received = lost = 0
        while received + lost < 20_000:
            message = peer.reply()
            if message[0] == b"gap":
                lost += message[2]
            else:
                received += 1
        assert lost > 0
        publish(server, "news", "last")
        assert peer.reply() == [b"message", b"news", b"last"]


def test_one_that_is_away_for_longer_than_its_ttl_expires_and_is_told_what_it_has_lost(server: ServerProcess) -> None:
    with server.connect() as peer:
        peer.do("SUBSCRIBER.ATTACH", "d", "TTL", 2)
        peer.do("SUBSCRIBE", "news")
    gone(server)
    assert publish(server, "news", "1", "2") == [1, 1]
    with server.connect() as asking:
        until(lambda: info(asking)[b"expired"], "its expiry")
        assert info(asking)[b"names"] == info(asking)[b"backlog_messages"] == 0
    assert publish(server, "news", "3") == [0]
    with durable(server) as peer:
        assert peer.do("SUBSCRIBE", "again") == [b"subscribe", b"again", 1]
        assert peer.reply()[:3] == [b"gap", b"news", 2]
        publish(server, "again", "x")
        assert peer.reply() == [b"message", b"again", b"x"]
    assert "was away for more than 2 seconds" in server.log()
    with server.connect() as asking:
        until(lambda: isinstance(asking.do("SUBSCRIBER.INFO", "d"), redis.ResponseError) or _no_such(asking), "its end")


def _no_such(peer: Peer) -> bool:
    return "no such durable subscriber" in str(peer.do("SUBSCRIBER.INFO", "d"))


def test_one_that_is_attached_does_not_expire(server: ServerProcess) -> None:
    with server.connect() as peer, server.connect() as asking:
        peer.do("SUBSCRIBER.ATTACH", "d", "TTL", 1)
        peer.do("SUBSCRIBE", "news")
        made_ms = info(asking)[b"made_ms"]
        until(lambda: info(asking)[b"seen_ms"] - made_ms > 2500, "more than its TTL")
        assert publish(server, "news", "x") == [1]
        assert peer.reply() == [b"message", b"news", b"x"]


def test_store_is_at_its_floor_once_the_mailbox_is_empty_and_holds_nothing_of_it_once_it_is_deleted(
    server: ServerProcess,
) -> None:
    subscribed(server, "news", "c" * 300).close()
    gone(server)
    publish(server, "news", *["x" * 100] * 3000)
    publish(server, "c" * 300, "y")
    with subscribed(server, "news") as peer:
        peer.replies(3001)
        empty(server)
    data, _, _ = records(server.store_folder)
    assert data == {"d": 1, "c": 2, "n": 2}
    publish(server, "news", *["x" * 100] * 3000)
    with server.connect() as asking:
        assert asking.do("SUBSCRIBER.DELETE", "d") == 1
        assert asking.do("SUBSCRIBER.DELETE", "d") == 0
        assert asking.do("PUBLISH", "news", "x") == 0
    data, live, _ = records(server.store_folder)
    assert data == {}
    assert "a" not in live


def test_what_it_has_lost_is_deleted_with_it(server: ServerProcess) -> None:
    with server.connect() as peer:
        peer.do("SUBSCRIBER.ATTACH", "d", "MAXLEN", 1)
        peer.do("SUBSCRIBE", "news")
    gone(server)
    publish(server, "news", "1", "2", "3")
    assert records(server.store_folder)[0] == {"b": 1, "c": 1, "d": 1, "g": 1, "m": 1, "n": 1}
    with server.connect() as asking:
        assert info(asking)[b"lost_untold"] == 2
        assert asking.do("SUBSCRIBER.DELETE", "d") == 1
    assert records(server.store_folder)[0] == {}


def test_deleting_or_detaching_one_by_name_closes_its_connection_wherever_it_is(serve: Serve) -> None:
    first, second = serve(), serve()
    with second.connect() as asking:
        peer = subscribed(first, "news")
        assert asking.do("SUBSCRIBER.DETACH", "d") == 1
        assert peer.is_closed()
        assert publish(second, "news", "x") == [1]
        peer = subscribed(first, "news")
        assert peer.reply() == [b"message", b"news", b"x"]
        assert asking.do("SUBSCRIBER.DELETE", "d") == 1
        assert peer.is_closed()
        assert asking.do("SUBSCRIBER.DETACH", "d") == 0
        assert [entry[1] for entry in asking.do("SUBSCRIBER.LIST")] == [b"server", b"server"]


def test_detached_connection_goes_on_without_subscriptions(server: ServerProcess) -> None:
    with server.connect() as peer:
        assert peer.do("SUBSCRIBER.ATTACH", "d")[:4] == [b"kind", b"durable", b"name", b"d"]
        assert peer.do("PING") == b"PONG"  # nothing comes before it subscribes
        peer.do("SUBSCRIBE", "news")
        assert peer.do("SUBSCRIBER.DETACH") == 1
        assert peer.do("ECHO", "free") == b"free"
        assert peer.do("PUBLISH", "news", "x") == 1
        assert info(peer)[b"backlog_messages"] == 1
        assert peer.do("SUBSCRIBE", "own") == [b"subscribe", b"own", 1]
        assert b"already" not in str(peer.do("UNSUBSCRIBE")).encode()
        peer.do("SUBSCRIBER.ATTACH", "d")
        assert peer.do("SUBSCRIBE", "news") == [b"subscribe", b"news", 1]
        assert peer.reply() == [b"message", b"news", b"x"]


def test_attaching_is_refused_where_it_cannot_be_meant(server: ServerProcess) -> None:
    with server.connect(protocol=3) as peer:
        for wrong in (["d", "TTL"], ["d", "TTL", "1", "TTL", "2"], ["d", "SOON", "1"]):
            assert "syntax error" in str(peer.do("SUBSCRIBER.ATTACH", *wrong))
        assert "not an integer" in str(peer.do("SUBSCRIBER.ATTACH", "d", "TTL", "-1"))
        assert "needs a name" in str(peer.do("SUBSCRIBER.ATTACH", ""))
        peer.do("SUBSCRIBE", "own")
        assert "subscriptions of its own" in str(peer.do("SUBSCRIBER.ATTACH", "d"))
        peer.do("UNSUBSCRIBE", "own")
        assert peer.do("SUBSCRIBER.ATTACH", "d", "TTL", "7")[b"ttl"] == 7
        assert peer.do("SUBSCRIBER.ATTACH", "d", "MAXLEN", "8")[b"ttl"] == 7
        assert "another durable subscriber" in str(peer.do("SUBSCRIBER.ATTACH", "e"))
        assert "no such durable subscriber" in str(peer.do("SUBSCRIBER.INFO", "e"))
        assert b"SUBSCRIBER.LIST" in peer.do("SUBSCRIBER.HELP")


def test_connection_named_so_after_it_has_subscribed_stays_what_it_was(server: ServerProcess) -> None:
    with server.connect(protocol=3) as peer:
        peer.do("SUBSCRIBE", "news")
        peer.do("CLIENT", "SETNAME", "durable:d")
        peer.do("SUBSCRIBE", "more")
        assert [entry[b"kind"] for entry in peer.do("SUBSCRIBER.LIST")] == [b"server"]


def test_reset_detaches(server: ServerProcess) -> None:
    with subscribed(server, "news") as peer:
        assert peer.do("RESET") == b"RESET"
        gone(server)
        assert peer.do("PUBLISH", "news", "x") == 1


def test_ordinary_subscriber_beside_it_gets_each_message_once(server: ServerProcess) -> None:
    with subscribed(server, "news") as peer, server.connect() as ordinary:
        ordinary.do("SUBSCRIBE", "news")
        assert publish(server, "news", "x") == [2]
        assert peer.reply() == ordinary.reply() == [b"message", b"news", b"x"]


def test_subscribe_within_a_transaction_attaches_too(server: ServerProcess) -> None:
    with durable(server) as peer:
        peer.send(request("MULTI") + request("SUBSCRIBE", "news") + request("EXEC"))
        assert peer.replies(2) == [b"OK", b"QUEUED"]
        assert peer.reply() == [[b"subscribe", b"news", 1]]
        publish(server, "news", "x")
        assert peer.reply() == [b"message", b"news", b"x"]


def test_over_a_unix_socket_too(serve: Serve, tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    server = serve("--unixsocket", path)
    subscribed(server, "news").close()
    gone(server)
    publish(server, "news", "1")
    peer = Peer(path)
    peer.do("CLIENT", "SETNAME", "durable:d")
    peer.do("SUBSCRIBE", "news")
    assert peer.reply() == [b"message", b"news", b"1"]
    empty(server)
    publish(server, "news", "2")
    with subscribed(server, "other", name="e") as other:
        publish(server, "other", "after it")
        other.reply()
        empty(server, "e")  # so whatever had arrived has been removed
    with server.connect() as asking:
        assert info(asking)[b"backlog_messages"] == 1  # not read yet
    assert peer.reply() == [b"message", b"news", b"2"]
    empty(server)


def test_without_durable_subscribers_a_publish_writes_nothing_to_the_durable_half(server: ServerProcess) -> None:
    with server.connect() as ordinary:
        ordinary.do("SUBSCRIBE", "news")
        before = records(server.store_folder)[2]
        assert publish(server, "news", *["x"] * 100) == [1] * 100
        ordinary.replies(100)
        assert records(server.store_folder)[2] == before


def test_publisher_killed_after_the_commit_has_published(serve: Serve) -> None:
    server = serve()
    subscribed(server, "news").close()
    gone(server)
    other = serve(environment={"RLITE_FAILPOINT": "durable-committed"})
    with other.connect() as publisher:
        publisher.send(request("PUBLISH", "news", "x"))
        assert publisher.is_closed()
    with subscribed(server, "news") as peer:
        assert peer.reply() == [b"message", b"news", b"x"]


def test_durable_subscriber_that_the_full_store_has_no_room_for_loses_its_oldest_and_is_told(serve: Serve) -> None:
    server = serve("--store-quota", "1mb")
    subscribed(server, "news").close()
    gone(server)
    with server.connect() as publisher:
        replies = [publisher.do("PUBLISH", "news", f"{number} {'x' * 50_000}") for number in range(100)]
    assert set(replies) == {1}  # publishers are not refused
    with subscribed(server, "news") as peer:
        found, lost = all_of(peer, "99")
    assert len(found) + lost == 100
    assert found and lost
    empty(server)
    assert publish(server, "news", "again") == [1]


def test_program_without_a_server_publishes_to_it(server: ServerProcess) -> None:
    with subscribed(server, "news") as peer:
        with rlite_pubsub.Redis(server.store_folder) as program:
            assert program.publish("news", "attached") == 1
            assert peer.reply() == [b"message", b"news", b"attached"]
            peer.close()
            gone(server)
            assert program.publish("news", "away") == 1
    with subscribed(server, "news") as peer:
        assert peer.reply() == [b"message", b"news", b"away"]


def test_client_name_of_a_hello_names_it_too(server: ServerProcess) -> None:
    for payload in (None, b"x"):
        with server.connect() as peer:
            peer.do("HELLO", 3, "SETNAME", "durable:d")
            assert peer.do("SUBSCRIBE", "news") == [b"subscribe", b"news", 1]
            assert payload is None or peer.reply() == [b"message", b"news", payload]
        gone(server)
        publish(server, "news", "x")


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_messages_wait_whatever_appendfsync_says(serve: Serve, policy: str) -> None:
    server = serve("--appendfsync", policy)
    subscribed(server, "news").close()
    gone(server)
    assert publish(server, "news", *map(str, range(50))) == [1] * 50
    server.end(signal.SIGKILL)
    server = serve("--appendfsync", policy)
    with subscribed(server, "news") as peer:
        assert [int(message[2]) for message in peer.replies(50)] == list(range(50))
    assert server.end() == 0


def test_every_message_of_a_stream_arrives_though_its_connection_is_cut_again_and_again(server: ServerProcess) -> None:
    count, seen = 20_000, -1
    subscribed(server, "news").close()
    gone(server)
    with server.connect() as publisher:
        publisher.send(b"".join([request("PUBLISH", "news", f"{number:06}" + "." * 100) for number in range(count)]))
        for _ in range(20):
            peer = subscribed(server, "news", receive_buffer_bytes=8192)
            for message in peer.replies(200):
                number = int(message[2][:6])
                assert number <= seen + 1  # none is missing; what was on its way may come again
                seen = max(seen, number)
            while seen < count - 1:  # what our kernel has acknowledged is ours to read
                peer.socket.settimeout(0.2)
                try:
                    seen = max(seen, int(peer.reply()[2][:6]))
                except TimeoutError:
                    break
                if seen % 1000 == 0:
                    break
            peer.socket.shutdown(socket.SHUT_RDWR)
            peer.socket.settimeout(PATIENCE_S)
            try:
                while True:
                    seen = max(seen, int(peer.reply()[2][:6]))
            except ConnectionResetError:
                pass
            peer.close()
        publisher.replies(count)
    peer = subscribed(server, "news")
    while seen < count - 1:
        number = int(peer.reply()[2][:6])
        assert number <= seen + 1
        seen = max(seen, number)


@pytest.mark.parametrize("size_bytes", [300, 150_000])
def test_limit_of_outboxes_takes_nothing_from_it_and_does_not_shut_it_out(
    server: ServerProcess, size_bytes: int
) -> None:
    subscribed(server, "news").close()
    gone(server)
    sent = [f"{number:06}" for number in range(600_000 // size_bytes)]
    publish(server, "news", *[number.ljust(size_bytes, ".") for number in sent])
    with server.connect() as asking:
        assert asking.do("CONFIG", "SET", "client-output-buffer-limit", "pubsub 100kb 0 0") == b"OK"
    with subscribed(server, "news") as peer:
        assert [message[2][:6].decode() for message in peer.replies(len(sent))] == sent


def test_what_was_not_sent_as_its_connection_was_closed_at_a_limit_is_kept(server: ServerProcess) -> None:
    subscribed(server, "news").close()
    gone(server)
    publish(server, "news", "a", "b")
    with server.connect() as asking:
        assert asking.do("CONFIG", "SET", "client-output-buffer-limit", "pubsub 50kb 0 0") == b"OK"
        with durable(server, protocol=3) as refused:
            refused.send(request("SUBSCRIBE", "news") + request("ECHO", "x" * 200_000))
            assert refused.is_closed()
        assert asking.do("CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0") == b"OK"
    gone(server)
    with subscribed(server, "news") as peer:
        assert [message[2] for message in peer.replies(2)] == [b"a", b"b"]


# -- whose process does nothing any more


def test_the_mailbox_of_one_whose_server_hangs_is_bounded_and_each_message_comes_or_is_told_lost(
    serve: Serve, folder: Path
) -> None:
    count = 4000
    hung = serve("--durable-subscriber-max-bytes", "1000000")
    peer = subscribed(hung, "news")
    with rlite_pubsub.Redis(folder) as client:
        hung.process.send_signal(signal.SIGSTOP)
        try:
            client.publish("news", "0")
            begun = time.monotonic()
            until(lambda: time.monotonic() - begun > HUNG_MS / 1000, "its being taken for one that hangs")
            for number in range(1, count):
                client.publish("news", f"{number} {'x' * 5000}")
            backlog_bytes = client.execute_command("SUBSCRIBER.INFO", "d")[b"backlog_bytes"]
            assert backlog_bytes < 1_000_000 + ON_ITS_WAY_BYTES + 100_000
        finally:
            hung.process.send_signal(signal.SIGCONT)
        found, lost = all_of(peer, str(count - 1))
    assert found == sorted(found, key=int)
    assert len(found) + lost == count
    assert lost > 0


def test_what_was_said_before_its_server_hung_is_not_told_as_lost(serve: Serve, folder: Path) -> None:
    count = 4000
    hung = serve("--durable-subscriber-max-bytes", "1000000")
    peer = subscribed(hung, "news")
    with rlite_pubsub.Redis(folder) as client:
        for number in range(100):
            client.publish("news", f"{number} {'x' * 500}")
        said = [peer.reply()[2].split()[0] for _ in range(100)]  # and in the mailbox for a second more
        hung.process.send_signal(signal.SIGSTOP)
        try:
            begun = time.monotonic()
            until(lambda: time.monotonic() - begun > HUNG_MS / 1000, "its being taken for one that hangs")
            for number in range(100, count):
                client.publish("news", f"{number} {'x' * 5000}")
        finally:
            hung.process.send_signal(signal.SIGCONT)
        found, lost = all_of(peer, str(count - 1))
    assert len(said) + len(found) + lost == count
    assert lost > 0


def test_a_durable_mailbox_that_fills_the_store_gives_way_and_its_reader_is_told(folder: Path) -> None:
    count = 9000
    with rlite_pubsub.Redis(folder, store_quota=32 << 20) as client:
        with client.pubsub() as pubsub:
            client.config_set("durable-subscriber-max-bytes", 0)
            pubsub.execute_command("CLIENT", "SETNAME", "durable:d")
            pubsub.subscribe("news")
            while pubsub.get_message(timeout=0.1) is not None:
                pass
        for number in range(count):
            client.publish("news", f"{number} {'x' * 5000}")
        with client.pubsub() as pubsub:
            pubsub.execute_command("CLIENT", "SETNAME", "durable:d")
            pubsub.subscribe("news")
            found, lost = [], 0
            while not found or found[-1] != count - 1:
                message = pubsub.parse_response(block=True)
                if message[0] == b"gap":
                    lost += message[2]
                elif message[0] == b"message":
                    found.append(int(message[2].split()[0]))
    assert found == sorted(found)
    assert len(found) + lost == count
    assert found and lost


def test_a_transaction_that_publishes_waits_for_what_others_have_written_before_it_begins(
    serve: Serve, tmp_path: Path
) -> None:
    """Behind each commit of another process something has to be safe first; inside EXEC nobody waits for that."""
    store = tmp_path / "store"
    first = redis.Redis(port=serve("--retain", "kept 1000 entries", store_folder=store).port)
    second = redis.Redis(port=serve(folder=tmp_path / "other", store_folder=store).port)
    durable = redis.Redis(port=first.connection_pool.connection_kwargs["port"], client_name="durable:d")
    with durable.pubsub() as pubsub:
        pubsub.subscribe("news")
        assert pubsub.get_message(timeout=PATIENCE_S) is not None
        for number in range(30):
            second.set("key", number)
            channel = ("news", "kept")[number % 2]
            with first.pipeline(transaction=True) as pipeline:
                pipeline.publish(channel, number)
                pipeline.publish(channel, number)
                assert pipeline.execute() == [int(channel == "news")] * 2
        assert first.xlen("kept") == 30


def test_a_server_refuses_more_durable_subscribers_than_the_setting_says_and_says_what_to_do(serve: Serve) -> None:
    server = serve("--durable-subscriber-max-count", "2")
    with server.connect() as peer:
        for name in ("a", "b"):
            assert peer.do("SUBSCRIBER.ATTACH", name) is not None
            peer.do("SUBSCRIBER.DETACH")
        refused = peer.do("SUBSCRIBER.ATTACH", "c")
        assert isinstance(refused, Exception)
        for word in ("2 durable subscribers", "durable-subscriber-max-count", "SUBSCRIBER.DELETE"):
            assert word in str(refused)
        assert peer.do("SUBSCRIBER.DELETE", "a") == 1
        assert not isinstance(peer.do("SUBSCRIBER.ATTACH", "c"), Exception)
