"""redis-py's asyncio client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
import redis
from patience import PATIENCE_S, until_async
from redis.asyncio.client import PubSub

from compat_tests.servers import FakeServer, SocketServer


async def receive(pubsub: PubSub, count: int) -> list[tuple[Any, ...]]:
    received = []
    while len(received) < count:
        message = await pubsub.get_message(timeout=PATIENCE_S)
        assert message is not None, f"only {received} came"
        received.append((message["type"], message["pattern"], message["channel"], message["data"]))
    return received


async def test_messages_come_in_order(any_server: SocketServer | FakeServer, protocol: int) -> None:
    async with any_server.async_client(protocol=protocol) as client, client.pubsub() as pubsub:
        await pubsub.subscribe("a")
        await pubsub.psubscribe("a*")
        assert await receive(pubsub, 2) == [("subscribe", None, b"a", 1), ("psubscribe", None, b"a*", 2)]
        for at in range(20):
            assert await client.publish("a", at) == 2
        received = await receive(pubsub, 40)
        assert received[::2] == [("message", None, b"a", b"%d" % at) for at in range(20)]
        assert received[1::2] == [("pmessage", b"a*", b"a", b"%d" % at) for at in range(20)]


async def test_many_subscribers_get_all(server: SocketServer, protocol: int) -> None:
    async with server.async_client(protocol=protocol) as client:
        subscribers = [client.pubsub(ignore_subscribe_messages=True) for _ in range(20)]
        for pubsub in subscribers:
            await pubsub.subscribe("a")
        await until_async(lambda: _is(client.pubsub_numsub("a"), [(b"a", 20)]))
        payloads = [b"%d" % at * 1000 for at in range(50)]
        async with client.pipeline(transaction=False) as pipe:
            for payload in payloads:
                pipe.publish("a", payload)
            assert await pipe.execute() == [20] * 50

        async def all_of(pubsub: PubSub) -> list[bytes]:
            heard: list[bytes] = []
            async for message in pubsub.listen():
                heard.append(message["data"])
                if len(heard) == len(payloads):
                    return heard
            return heard

        assert await asyncio.gather(*map(all_of, subscribers)) == [payloads] * 20
        for pubsub in subscribers:
            await pubsub.aclose()


async def _is(answer: Awaitable[Any], expected: object) -> bool:
    return bool(await answer == expected)


async def test_handlers_run(server: SocketServer, protocol: int) -> None:
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def handle(message: dict[str, Any]) -> None:
        await heard.put(message["data"])

    async with server.async_client(protocol=protocol) as client, client.pubsub() as pubsub:
        await pubsub.subscribe(a=handle)
        running = asyncio.create_task(pubsub.run())
        await until_async(lambda: client.publish("a", "x"))
        assert await asyncio.wait_for(heard.get(), PATIENCE_S) == b"x"
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_transaction_and_shards(server: SocketServer, protocol: int) -> None:
    async with server.async_client(protocol=protocol) as client, client.pubsub() as pubsub:
        await pubsub.execute_command("SSUBSCRIBE", "a")
        assert await receive(pubsub, 1) == [("ssubscribe", None, b"a", 1)]
        async with client.pipeline() as pipe:
            pipe.spublish("a", "x").publish("a", "y")
            assert await pipe.execute() == [1, 0]
        assert await receive(pubsub, 1) == [("smessage", None, b"a", b"x")]


async def test_killed_subscriber_resubscribes(server: SocketServer, protocol: int) -> None:
    async with server.async_client(protocol=protocol) as client, client.pubsub() as pubsub:
        await pubsub.subscribe("a")
        await pubsub.psubscribe("b*")
        await receive(pubsub, 2)
        assert await client.client_kill_filter(_type="pubsub") == 1
        await until_async(lambda: _is(client.pubsub_numpat(), 0))
        heard: list[bytes] = []

        async def hears() -> bool:
            await client.publish("a", "x")
            try:
                message = await pubsub.get_message(timeout=0.05)
            except redis.ConnectionError:
                return False
            if message is not None and message["type"] == "message":
                heard.append(message["data"])
            return bool(heard)

        await until_async(hears)
        assert heard[0] == b"x"
        assert await client.pubsub_numpat() == 1


async def test_cancelled_reader_loses_nothing(server: SocketServer, protocol: int) -> None:
    async with server.async_client(protocol=protocol) as client, client.pubsub() as pubsub:
        await pubsub.subscribe("a")
        await receive(pubsub, 1)
        for at in range(10):
            assert await pubsub.get_message(timeout=0.001) is None
            await client.publish("a", at)
            assert await receive(pubsub, 1) == [("message", None, b"a", b"%d" % at)]


async def test_many_publish_at_once(server: SocketServer, protocol: int) -> None:
    async with server.async_client(protocol=protocol) as client:
        assert await asyncio.gather(*[client.publish("nobody", at) for at in range(80)]) == [0] * 80
