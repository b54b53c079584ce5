"""Publishing and subscribing, as redis-py's sync client sees it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import redis
from patience import PATIENCE_S, until
from redis.client import PubSub

from compat_tests.servers import FakeServer, SocketServer


def pubsub_of(client: redis.Redis, **options: Any) -> PubSub:
    return client.pubsub(**options)


def receive(pubsub: PubSub, count: int) -> list[tuple[Any, ...]]:
    """So many messages, confirmations included, as (type, pattern, channel, data)."""
    received = []
    while len(received) < count:
        message = pubsub.get_message(timeout=PATIENCE_S)
        assert message is not None, f"only {received} came"
        received.append((message["type"], message["pattern"], message["channel"], message["data"]))
    return received


def test_channel_delivers_in_order(any_server: SocketServer | FakeServer, protocol: int) -> None:
    client = any_server.client(protocol=protocol)
    with client.pubsub() as pubsub:
        pubsub.subscribe("a", "b")
        assert receive(pubsub, 2) == [("subscribe", None, b"a", 1), ("subscribe", None, b"b", 2)]
        for at in range(100):
            assert client.publish("ab"[at % 2], str(at)) == 1
        expected = [("message", None, b"ab"[at % 2 : at % 2 + 1], b"%d" % at) for at in range(100)]
        assert receive(pubsub, 100) == expected


def test_every_subscriber_gets_a_copy(any_server: SocketServer | FakeServer, protocol: int) -> None:
    client = any_server.client(protocol=protocol)
    subscribers = [any_server.client(protocol=protocol).pubsub() for _ in range(5)]
    for pubsub in subscribers:
        pubsub.subscribe("a")
        receive(pubsub, 1)
    assert client.publish("a", "x") == 5
    subscribers[0].unsubscribe("a")
    assert receive(subscribers[0], 2) == [("message", None, b"a", b"x"), ("unsubscribe", None, b"a", 0)]
    assert client.publish("a", "y") == 4
    for pubsub in subscribers[1:]:
        assert receive(pubsub, 2) == [("message", None, b"a", b"x"), ("message", None, b"a", b"y")]
        pubsub.close()


def test_channel_comes_before_patterns(any_server: SocketServer | FakeServer, protocol: int) -> None:
    client = any_server.client(protocol=protocol)
    with client.pubsub() as pubsub:
        pubsub.psubscribe("n*")
        pubsub.subscribe("news")
        assert receive(pubsub, 2) == [("psubscribe", None, b"n*", 1), ("subscribe", None, b"news", 2)]
        assert client.publish("news", "x") == 2
        assert receive(pubsub, 2) == [("message", None, b"news", b"x"), ("pmessage", b"n*", b"news", b"x")]


@pytest.mark.parametrize(
    ("pattern", "channel", "matches"),
    [
        ("*", "", False),
        ("h?llo", "hello", True),
        ("h?llo", "hllo", False),
        ("h*llo", "hllo", True),
        ("h[ae]llo", "hillo", False),
        ("h[^e]llo", "hallo", True),
        ("h[a-c]llo", "hbllo", True),
        ("h[c-a]llo", "hbllo", True),
        (r"h\*llo", "h*llo", True),
        (r"h\*llo", "hello", False),
        ("h[", "h[", False),
        ("h[a", "ha", True),
        ("\\", "\\", True),
        ("**", "anything", True),
        ("", "", True),
    ],
)
def test_pattern_matches_as_in_redis(server: SocketServer, pattern: str, channel: str, matches: bool) -> None:
    client = server.client()
    with client.pubsub() as pubsub:
        pubsub.psubscribe(pattern)
        receive(pubsub, 1)
        assert client.publish(channel, "x") == matches


def test_names_and_payloads_are_binary(any_server: SocketServer | FakeServer, protocol: int) -> None:
    client = any_server.client(protocol=protocol)
    names = [bytes(range(256)), b"", b"\r\n", b"\0", b"\xff\xfe"]
    with client.pubsub() as pubsub:
        pubsub.subscribe(*names)
        assert sorted(told[2] for told in receive(pubsub, len(names))) == sorted(names)
        for name in names:
            assert client.publish(name, name) == 1
        assert receive(pubsub, len(names)) == [("message", None, name, name) for name in names]


@pytest.mark.parametrize("size", [511, 512, 513, 70_000])
def test_long_names_are_names_like_any_other(server: SocketServer, protocol: int, size: int) -> None:
    client = server.client(protocol=protocol)
    name, other, pattern = b"n" * size, b"n" * (size - 1) + b"m", b"n" * (size - 1) + b"*"
    with client.pubsub() as pubsub:
        pubsub.subscribe(name)
        pubsub.psubscribe(pattern)
        pubsub.ssubscribe(name)
        receive(pubsub, 3)
        assert client.pubsub_channels() == [name]
        assert client.publish(name, "x") == 2
        assert client.publish(other, "y") == 1
        assert client.spublish(name, "z") == 1
        assert receive(pubsub, 3) == [
            ("message", None, name, b"x"),
            ("pmessage", pattern, name, b"x"),
            ("pmessage", pattern, other, b"y"),
        ]
        assert receive(pubsub, 1) == [("smessage", None, name, b"z")]


@pytest.mark.parametrize("size", [0, 1, 16 * 1024, 64 * 1024 + 1, 1 << 20, 20 << 20])
def test_payload_arrives_whole(server: SocketServer, protocol: int, size: int) -> None:
    client = server.client(protocol=protocol)
    payload = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    with client.pubsub() as pubsub:
        pubsub.subscribe("a")
        receive(pubsub, 1)
        assert client.publish("a", payload) == 1
        assert client.publish("a", b"behind") == 1
        assert receive(pubsub, 2) == [("message", None, b"a", payload), ("message", None, b"a", b"behind")]


def test_shards_are_a_world_of_their_own(server: SocketServer, protocol: int) -> None:
    client = server.client(protocol=protocol)
    with client.pubsub() as pubsub:
        pubsub.ssubscribe("a")
        pubsub.subscribe("b")
        pubsub.psubscribe("*")
        told = receive(pubsub, 3)
        assert told == [("ssubscribe", None, b"a", 1), ("subscribe", None, b"b", 1), ("psubscribe", None, b"*", 2)]
        assert client.spublish("a", "shard") == 1
        assert client.spublish("b", "nobody") == 0
        assert client.publish("a", "pattern") == 1
        assert client.pubsub_shardchannels() == [b"a"]
        assert client.pubsub_shardnumsub("a", "b") == [(b"a", 1), (b"b", 0)]
        assert receive(pubsub, 2) == [("smessage", None, b"a", b"shard"), ("pmessage", b"*", b"a", b"pattern")]
        pubsub.sunsubscribe()
        assert receive(pubsub, 1) == [("sunsubscribe", None, b"a", 0)]


def test_what_is_held_is_told(any_server: SocketServer | FakeServer, protocol: int) -> None:
    client = any_server.client(protocol=protocol)
    first, second = any_server.client().pubsub(), any_server.client().pubsub()
    first.subscribe("a1", "a2", "b")
    first.psubscribe("a*", "b*")
    second.subscribe("a1")
    second.psubscribe("a*")
    receive(first, 5)
    receive(second, 2)
    assert sorted(client.pubsub_channels()) == [b"a1", b"a2", b"b"]
    assert sorted(client.pubsub_channels("a?")) == [b"a1", b"a2"]
    assert client.pubsub_numsub("a1", "a2", "c") == [(b"a1", 2), (b"a2", 1), (b"c", 0)]
    assert client.pubsub_numpat() == 2
    first.close()
    if any_server.name != "fakeredis":  # which forgets later
        until(lambda: client.pubsub_numpat() == 1)
        assert client.pubsub_channels() == [b"a1"]
    second.close()


def test_unsubscribing_from_everything_tells_of_each(any_server: SocketServer | FakeServer, protocol: int) -> None:
    client = any_server.client(protocol=protocol)
    with client.pubsub() as pubsub:
        pubsub.subscribe("a", "b", "c")
        receive(pubsub, 3)
        pubsub.unsubscribe()
        told = receive(pubsub, 3)
        assert sorted(one[2] for one in told) == [b"a", b"b", b"c"]
        assert [one[3] for one in told] == [2, 1, 0]
        assert client.publish("a", "x") == 0


def test_client_is_gone_and_its_names_with_it(server: SocketServer) -> None:
    client = server.client()
    for _ in range(3):
        with server.client() as other:
            pubsub = other.pubsub()
            pubsub.subscribe("a")
            pubsub.psubscribe("a*")
            pubsub.ssubscribe("a")
            receive(pubsub, 3)
            pubsub.close()
    until(lambda: (client.pubsub_channels(), client.pubsub_numpat(), client.pubsub_shardchannels()) == ([], 0, []))


# -- redis-py's own ways


def test_thread_runs_handlers(server: SocketServer, protocol: int) -> None:
    client = server.client(protocol=protocol)
    got: list[bytes] = []
    came = threading.Event()

    def handle(message: dict[str, Any]) -> None:
        got.append(message["data"])
        came.set()

    pubsub = client.pubsub()
    pubsub.subscribe(a=handle)
    pubsub.psubscribe(**{"b*": handle})
    thread = pubsub.run_in_thread(sleep_time=0.01, daemon=True)
    until(lambda: client.publish("a", "1") == 1)
    assert came.wait(PATIENCE_S)
    until(lambda: client.publish("bb", "2") == 1)
    until(lambda: len(got) == 2)
    thread.stop()
    thread.join(PATIENCE_S)
    assert got == [b"1", b"2"]


def test_listening_ends_when_nothing_is_held(any_server: SocketServer | FakeServer, protocol: int) -> None:
    client = any_server.client(protocol=protocol)
    pubsub = client.pubsub(ignore_subscribe_messages=True)
    pubsub.subscribe("a")
    assert pubsub.get_message(timeout=PATIENCE_S) is None
    client.publish("a", "x")
    heard = []
    for message in pubsub.listen():
        heard.append(message["data"])
        pubsub.unsubscribe()
        break
    assert heard == [b"x"]
    pubsub.close()


def test_nothing_comes_when_nothing_is_said(any_server: SocketServer | FakeServer, protocol: int) -> None:
    pubsub = any_server.client(protocol=protocol).pubsub(ignore_subscribe_messages=True)
    pubsub.subscribe("a")
    for _ in range(3):
        assert pubsub.get_message(timeout=0.01) is None
    pubsub.close()


def test_ping_of_a_subscriber_is_answered(server: SocketServer, protocol: int) -> None:
    pubsub = server.client(protocol=protocol).pubsub()
    pubsub.subscribe("a")
    receive(pubsub, 1)
    pubsub.ping("hello")
    assert receive(pubsub, 1) == [("pong", None, None, b"hello")]
    pubsub.close()


def test_health_checks_are_answered_and_unseen(server: SocketServer, protocol: int) -> None:
    client = server.client(protocol=protocol, health_check_interval=0.001)
    pubsub = client.pubsub(ignore_subscribe_messages=True)
    pubsub.subscribe("a")
    assert pubsub.get_message(timeout=0.05) is None
    for at in range(5):
        pubsub.check_health()
        client.publish("a", at)
        until(lambda: (pubsub.get_message(timeout=0.05) or {}).get("data") == b"%d" % at)  # noqa: B023
    pubsub.close()


def test_killed_subscriber_comes_back_and_holds_its_names(server: SocketServer, protocol: int) -> None:
    client = server.client(protocol=protocol)
    pubsub = client.pubsub()
    pubsub.subscribe("a")
    pubsub.psubscribe("b*")
    receive(pubsub, 2)
    (told,) = [one for one in client.client_list(_type="pubsub")]
    assert client.client_kill_filter(_id=told["id"]) == 1
    until(lambda: client.pubsub_numpat() == 0)
    until(lambda: _comes_back(pubsub))

    def is_back() -> bool:
        pubsub.get_message(timeout=0.01)
        return client.publish("a", "x") == 1 and client.publish("bb", "y") == 1

    until(is_back)
    pubsub.close()


def _comes_back(pubsub: PubSub) -> bool:
    try:
        message = pubsub.get_message(timeout=0.05)
    except redis.ConnectionError:
        return False
    return message is not None and message["type"] in ("subscribe", "psubscribe")
