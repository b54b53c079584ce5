"""What needs no worker: aiocache, broadcaster, redis-om, kombu alone."""

import asyncio
import os

from place import URL

assert URL
os.environ["REDIS_OM_URL"] = URL

from aiocache import Cache, cached  # noqa: E402
from aiocache.lock import RedLock  # noqa: E402
from aiocache.serializers import PickleSerializer  # noqa: E402
from broadcaster import Broadcast  # noqa: E402
from kombu import Connection, Exchange, Queue  # noqa: E402
from redis_om import HashModel  # noqa: E402

PORT = int(URL.rsplit(":", 1)[1])


async def caches() -> None:
    cache = Cache(Cache.REDIS, endpoint="127.0.0.1", port=PORT, namespace="test", serializer=PickleSerializer())
    await cache.set("a", {"b": 1}, ttl=60)
    assert await cache.get("a") == {"b": 1}
    assert await cache.multi_get(["a", "z"]) == [{"b": 1}, None]
    assert await cache.increment("n", 2) == 2
    assert await cache.delete("a") == 1 and not await cache.exists("a")
    calls = []

    @cached(cache=Cache.REDIS, endpoint="127.0.0.1", port=PORT, namespace="f", ttl=60)
    async def square(number: int) -> int:
        calls.append(number)
        return number * number

    assert [await square(3), await square(3)] == [9, 9] and calls == [3]
    async with RedLock(cache, "lock", lease=5):
        await cache.set("within", 1)
    await cache.clear(namespace="test")
    await cache.close()


async def broadcast(url: str) -> None:
    async with Broadcast(url) as broadcast, broadcast.subscribe(channel="other"):
        # Its listener may miss a first subscription, and waits for a second one then.
        async with broadcast.subscribe(channel="room") as one, broadcast.subscribe(channel="room") as two:
            await broadcast.publish(channel="room", message="hello")
            async with asyncio.timeout(60):
                assert [(await subscriber.get()).message for subscriber in (one, two)] == ["hello", "hello"]


class Customer(HashModel, index=True):
    name: str
    age: int


def models() -> None:
    customer = Customer(name="Ada", age=36)
    customer.save()
    customer.expire(60)
    assert Customer.get(customer.pk).name == "Ada"
    customer.update(age=37)
    assert Customer.get(customer.pk).age == 37
    assert customer.pk in set(Customer.all_pks())
    assert Customer.delete(customer.pk) == 1


def queues() -> None:
    with Connection(URL + "/0") as connection:
        simple = connection.SimpleQueue("simple")
        for number in range(3):
            simple.put({"n": number})
        got = [simple.get(timeout=60) for _ in range(3)]
        assert [message.payload["n"] for message in got] == [0, 1, 2]
        got[0].ack(), got[1].requeue(), got[2].reject()
        assert simple.get(timeout=60).payload == {"n": 1}
        simple.close()
        seen = []
        fanout = Exchange("news", type="fanout")
        topic = Exchange("logs", type="topic")
        bound = [Queue("one", fanout), Queue("two", fanout), Queue("errors", topic, routing_key="*.error")]
        with connection.Consumer(bound, callbacks=[lambda body, message: (seen.append(body), message.ack())]):
            try:
                connection.drain_events(timeout=0.2)  # the subscription to the fanout is made
            except TimeoutError:
                pass
            producer = connection.Producer()
            producer.publish("to both", exchange=fanout, routing_key="")
            producer.publish("an error", exchange=topic, routing_key="app.error")
            producer.publish("no error", exchange=topic, routing_key="app.info")
            producer.publish("urgent", exchange=topic, routing_key="app.error", priority=9)
            while len(seen) < 3 or "urgent" not in seen:
                connection.drain_events(timeout=60)
        assert set(seen) == {"to both", "an error", "urgent"}


asyncio.run(caches())
print("aiocache", flush=True)
asyncio.run(broadcast(URL))
print("broadcaster", flush=True)
asyncio.run(broadcast(URL.replace("redis://", "redis-stream://")))
print("broadcaster over streams", flush=True)
models()
print("redis-om", flush=True)
queues()
print("done", flush=True)
