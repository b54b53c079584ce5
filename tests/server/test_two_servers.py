"""Two servers on one store are one pub/sub space."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from patience import PATIENCE_S

from rlite_pubsub import Server


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[redis.Redis, redis.Redis]]:
    """Clients of two servers that share a folder (in one process they would share a Store, but not a subscriber)."""
    with Server(dir=str(tmp_path / "store")) as first, Server(dir=str(tmp_path / "store")) as second:
        yield redis.Redis(port=first.port), redis.Redis(port=second.port)


def drained(pubsub: redis.client.PubSub, count: int) -> list[tuple[str, bytes, bytes]]:
    """That many messages, without the confirmations."""
    found: list[tuple[str, bytes, bytes]] = []
    while len(found) < count:
        message = pubsub.get_message(timeout=PATIENCE_S)
        assert message is not None, f"only {found} came"
        if message["type"].endswith("message"):
            found.append((message["type"], message["channel"], message["data"]))
    return found


def subscribed(client: redis.Redis, subscribe: Callable[[redis.client.PubSub], None]) -> redis.client.PubSub:
    pubsub = client.pubsub()
    subscribe(pubsub)
    assert pubsub.get_message(timeout=PATIENCE_S) is not None
    return pubsub


def test_message_reaches_the_subscribers_of_both_and_the_count_tells_of_both(
    pair: tuple[redis.Redis, redis.Redis],
) -> None:
    first, second = pair
    of_first = subscribed(first, lambda pubsub: pubsub.subscribe("news"))
    of_second = subscribed(second, lambda pubsub: pubsub.psubscribe("n*"))

    assert first.publish("news", "one") == 2
    assert second.publish("news", "two") == 2

    assert drained(of_first, 2) == [("message", b"news", b"one"), ("message", b"news", b"two")]
    assert drained(of_second, 2) == [("pmessage", b"news", b"one"), ("pmessage", b"news", b"two")]


def test_pipeline_to_the_other_server_arrives_whole_and_in_order(pair: tuple[redis.Redis, redis.Redis]) -> None:
    first, second = pair
    pubsub = subscribed(first, lambda pubsub: pubsub.subscribe("news"))
    pipeline = second.pipeline(transaction=False)
    for number in range(5000):
        pipeline.publish("news", b"x" * (number % 50) + b":%d" % number)

    assert set(pipeline.execute()) == {1}

    assert [int(data.split(b":")[1]) for _, _, data in drained(pubsub, 5000)] == list(range(5000))


def test_pubsub_counts_over_both(pair: tuple[redis.Redis, redis.Redis]) -> None:
    first, second = pair
    held = [
        subscribed(first, lambda pubsub: pubsub.subscribe("a")),
        subscribed(second, lambda pubsub: pubsub.subscribe("a")),
        subscribed(second, lambda pubsub: pubsub.subscribe("b")),
        subscribed(first, lambda pubsub: pubsub.psubscribe("p*")),
        subscribed(second, lambda pubsub: pubsub.psubscribe("p*")),
    ]

    assert sorted(first.pubsub_channels()) == sorted(second.pubsub_channels()) == [b"a", b"b"]
    assert first.pubsub_numsub("a", "b", "c") == [(b"a", 2), (b"b", 1), (b"c", 0)]
    assert first.pubsub_numpat() == second.pubsub_numpat() == 1
    del held


def test_subscriber_that_has_gone_is_not_counted_by_the_other_server(pair: tuple[redis.Redis, redis.Redis]) -> None:
    first, second = pair
    pubsub = subscribed(first, lambda pubsub: pubsub.subscribe("news"))
    assert second.publish("news", "x") == 1

    pubsub.unsubscribe("news")
    assert drained(pubsub, 1) == [("message", b"news", b"x")]
    pubsub.get_message(timeout=PATIENCE_S)

    assert second.publish("news", "y") == 0
