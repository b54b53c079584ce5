"""`rlite_pubsub.topics` on a sharded store: who follows or consumes a topic is led to the member that has it, and goes
on there when it moves. And what a cluster's client is opened with, `topics` and `queues` take, too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import redis
import redis.asyncio
from patience import PATIENCE_S

from compat_tests.test_sharded_moves import owner_of
from compat_tests.wholes import Ours, shard
from rlite_pubsub import queues, topics

TOPIC = "orders"


@pytest.fixture(scope="module")
def _whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    members = Ours(tmp_path_factory.mktemp("whole"))
    yield members
    members.stop()


@pytest.fixture
def whole(_whole: Ours) -> Iterator[Ours]:
    """One for all tests. Slots are wherever the test before has left them."""
    yield _whole
    for number, server in enumerate(_whole.servers):
        if _whole.is_dead(number):
            _whole.start(number)
        with server.client() as client:
            client.flushall()


def urls(whole: Ours) -> list[str]:
    return [f"redis://127.0.0.1:{port}" for port in whole.ports]


def move(whole: Ours) -> None:
    """To the next member."""
    shard("move", whole.addresses[0], whole.addresses[(owner_of(whole, TOPIC) + 1) % 3], TOPIC)


def test_a_subscription_finds_its_topic_and_follows_it_from_member_to_member(whole: Ours) -> None:
    for url in urls(whole):
        topics.publish(url, TOPIC, {"n": "0"})
    subscriptions = [topics.subscribe(url, TOPIC, since=topics.BEGINNING) for url in urls(whole)]
    try:
        for number in range(1, 5):
            move(whole)
            topics.publish(urls(whole)[number % 3], TOPIC, {"n": str(number)})
        for subscription in subscriptions:
            found = [subscription.get(PATIENCE_S) for _ in range(7)]
            assert [entry and entry["n"] for entry in found] == [b"0", b"0", b"0", b"1", b"2", b"3", b"4"]
            assert subscription.get(0.05) is None
    finally:
        for subscription in subscriptions:
            subscription.close()


def test_an_asynchronous_subscription_follows_it_too(whole: Ours) -> None:
    async def follow() -> list[bytes]:
        found = []
        async with topics.aio.subscribe(urls(whole)[1], TOPIC) as subscription:
            for number in range(4):
                await topics.aio.publish(urls(whole)[number % 3], TOPIC, {"n": str(number)})
                entry = await subscription.get(PATIENCE_S)
                assert entry is not None
                found.append(entry["n"])
                await asyncio.to_thread(move, whole)
            assert await subscription.get(0.05) is None
        return found

    assert asyncio.run(follow()) == [b"0", b"1", b"2", b"3"]


def test_a_consumer_goes_on_where_its_group_has_moved_to_and_is_given_nothing_twice(whole: Ours) -> None:
    with redis.RedisCluster(host="127.0.0.1", port=whole.ports[0]) as client:
        client.xgroup_create(TOPIC, "billing", "0", mkstream=True)
    with topics.consume(urls(whole)[2], TOPIC, "billing", "ada", credit=2) as consumption:
        held = []
        for number in range(8):
            topics.publish(urls(whole)[0], TOPIC, {"n": str(number)})
            entry = consumption.get(PATIENCE_S)
            assert entry is not None and entry["n"] == b"%d" % number
            held.append(entry)
            if number % 2:
                move(whole)
                assert [each.ack() for each in held] == [True, True], "what was pending there is pending here"
                held = []
    with redis.RedisCluster(host="127.0.0.1", port=whole.ports[1]) as client:
        assert client.xpending(TOPIC, "billing")["pending"] == 0


def test_topics_of_several_slots_are_refused_by_name(whole: Ours) -> None:
    with pytest.raises(redis.ResponseError, match="same slot"):
        topics.subscribe(urls(whole)[0], "a", "b", "c")
    with topics.subscribe(urls(whole)[0], "{t}a", "{t}b", since=topics.BEGINNING) as subscription:
        topics.publish(urls(whole)[1], "{t}b", "hello")
        entry = subscription.get(PATIENCE_S)
        assert entry is not None and entry.topic == "{t}b"


def test_a_cluster_s_client_opens_queues_and_topics(whole: Ours) -> None:
    with redis.RedisCluster(host="127.0.0.1", port=whole.ports[0], decode_responses=True) as client:
        for number in range(6):
            with queues.Queue(client, f"queue-{number}", codec="json") as queue:
                queue.push({"n": number})
                item = queue.create_subscriber("worker").pop()
                assert item is not None and item.value == {"n": number}
        assert queues.list_queues(client) == [f"queue-{number}" for number in range(6)]
        topics.publish(client, TOPIC, {"n": 1})
        with topics.subscribe(client, TOPIC, since=topics.BEGINNING) as subscription:
            entry = subscription.get(PATIENCE_S)
            assert entry is not None and entry["n"] == b"1"
        assert client.ping()


async def test_an_asynchronous_cluster_s_client_opens_them_too(whole: Ours) -> None:
    async with redis.asyncio.RedisCluster(host="127.0.0.1", port=whole.ports[2]) as client:
        for number in range(6):
            async with queues.aio.Queue(client, f"queue-{number}") as queue:
                await queue.push("first")
                item = await (await queue.create_subscriber("worker")).pop()
                assert item is not None and item.value == b"first"
        await topics.aio.publish(client, TOPIC, "hello")
        async with topics.aio.subscribe(client, TOPIC, since=topics.BEGINNING) as subscription:
            entry = await subscription.get(PATIENCE_S)
            assert entry is not None and entry["message"] == b"hello"


def test_a_queue_that_a_cluster_s_client_has_opened_outlives_the_member_that_it_was_opened_at(whole: Ours) -> None:
    owner = owner_of(whole, TOPIC)
    with redis.RedisCluster(host="127.0.0.1", port=whole.ports[owner]) as client:
        for node in client.get_nodes():
            if node.port == whole.ports[(owner + 1) % 3]:
                client.set_default_node(node)
        with queues.Queue(client, TOPIC) as queue:
            queue.push("first")
            whole.kill((owner + 1) % 3)
            whole.kill(owner)
            with pytest.raises(redis.ConnectionError):
                queue.push("lost")
            whole.start(owner)
            found = None
            for _ in range(5):  # nobody at one door: the next time at the next
                try:
                    found = queue.push("second")
                    break
                except redis.ConnectionError:
                    continue
            assert found is not None and len(queue) == 2


def test_a_member_says_that_it_is_one(whole: Ours) -> None:
    with whole.servers[0].client(decode_responses=True) as client:
        assert client.config_get("cluster-enabled") == {"cluster-enabled": "yes"}
        assert client.info("cluster") == {"cluster_enabled": 1}
        assert client.info("server")["redis_mode"] == "cluster"
