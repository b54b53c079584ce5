"""`rlite_pubsub.topics.aio.consume`: what `topics.consume` promises, in an event loop, and that it may be cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis
import redis.asyncio
from patience import PATIENCE_S
from server_process import Serve

from rlite_pubsub import topics
from rlite_pubsub.topics.aio_route import client_of


@pytest.fixture
async def client(where: str) -> AsyncIterator[redis.asyncio.Redis]:
    async with client_of(where) as client:
        await client.xgroup_create("orders", "billing", mkstream=True)
        yield client


def consume(where: str, credit: int = 2, **options: Any) -> topics.aio.Consuming:
    return topics.aio.consume(where, "orders", "billing", "worker", credit=credit, **options)


async def publish(where: str, count: int) -> list[str]:
    return [await topics.aio.publish(where, "orders", {"n": number}) for number in range(count)]


async def taken(consumption: topics.aio.Consumption, count: int) -> list[topics.aio.Consumed]:
    found = []
    for _ in range(count):
        entry = await consumption.get(PATIENCE_S)
        assert entry is not None
        found.append(entry)
    return found


async def test_no_more_come_than_there_is_credit_for_and_an_ack_makes_room(
    where: str, client: redis.asyncio.Redis
) -> None:
    ids = await publish(where, 3)
    async with consume(where) as consumption:
        first, second = await taken(consumption, 2)
        assert ([first.id, second.id], first.topic, first["n"]) == (ids[:2], "orders", b"0")
        assert await consumption.get(0.05) is None
        assert (await first.ack(), await first.ack()) == (True, False)
        assert [entry.id for entry in await taken(consumption, 1)] == ids[2:]
    assert (await client.xpending("orders", "billing"))["pending"] == 2


async def test_what_was_not_acknowledged_comes_first_the_next_time(where: str, client: redis.asyncio.Redis) -> None:
    ids = await publish(where, 3)
    consumption = await consume(where)
    await (await taken(consumption, 2))[1].ack()
    assert [entry.id for entry in await taken(consumption, 1)] == ids[2:]
    await consumption.aclose()
    await client.xdel("orders", ids[0])
    async with consume(where, decode_responses=True) as consumption:
        assert [entry.id for entry in await taken(consumption, 1)] == ids[2:]
        assert (await client.xpending("orders", "billing"))["pending"] == 1


async def test_all_of_a_backlog_comes_in_order_with_acks_from_other_tasks(
    where: str, client: redis.asyncio.Redis
) -> None:
    ids = await publish(where, 200)
    found, acks = [], []
    async with consume(where, credit=10) as consumption:
        async for entry in consumption:
            found.append(entry.id)
            acks.append(asyncio.create_task(entry.ack()))
            if len(found) == len(ids):
                break
        assert all(await asyncio.gather(*acks)) and found == ids
    assert (await client.xpending("orders", "billing"))["pending"] == 0


async def test_a_get_that_is_cancelled_at_any_moment_has_taken_nothing(where: str, client: redis.asyncio.Redis) -> None:
    ids = await publish(where, 100)
    found: list[str] = []
    was_cancelled = 0
    async with consume(where, credit=7) as consumption:
        while len(found) < len(ids):
            getting = asyncio.create_task(consumption.get(PATIENCE_S))
            for _ in range(was_cancelled % 5):
                await asyncio.sleep(0)
            if not getting.done() and getting.cancel():
                was_cancelled += 1
            done, _ = await asyncio.wait((getting,))
            if getting.cancelled():
                getting = asyncio.create_task(consumption.get(PATIENCE_S))
            entry = await getting
            assert entry is not None
            found.append(entry.id)
            assert await entry.ack()
            if len(found) % 10 == 0:  # and one that is cancelled while it connects
                for each in await client.client_list():
                    if each["cmd"] == "topic.consume":
                        await client.client_kill_filter(_id=each["id"])
    assert found == ids and was_cancelled


async def test_an_ack_that_is_cancelled_may_be_said_again(where: str, client: redis.asyncio.Redis) -> None:
    ids = await publish(where, 2)
    async with consume(where, credit=1) as consumption:
        (entry,) = await taken(consumption, 1)
        acknowledging = asyncio.create_task(entry.ack())
        await asyncio.sleep(0)
        acknowledging.cancel()
        await asyncio.wait((acknowledging,))
        await entry.ack()
        assert [entry.id for entry in await taken(consumption, 1)] == ids[1:]


async def test_it_raises_what_is_wrong_when_it_begins_and_when_the_group_goes(
    where: str, client: redis.asyncio.Redis
) -> None:
    with pytest.raises(redis.ResponseError, match="NOGROUP"):
        await topics.aio.consume(where, "orders", "none", "worker")
    with pytest.raises(ValueError, match="credit="):
        consume(where, credit=0)
    async with consume(where) as consumption:
        await client.xgroup_destroy("orders", "billing")
        with pytest.raises(redis.ResponseError, match="NOGROUP"):
            await consumption.get(PATIENCE_S)


async def test_it_ends_when_another_task_closes_it(where: str, client: redis.asyncio.Redis) -> None:
    consumption = await consume(where)
    asyncio.get_running_loop().call_later(0.05, lambda: closing.append(asyncio.create_task(consumption.aclose())))
    closing: list[asyncio.Task[None]] = []
    assert [entry async for entry in consumption] == []
    await closing[0]


async def test_it_goes_on_at_the_next_server_and_gives_nothing_twice(serve: Serve) -> None:
    server = serve()
    where = f"redis://127.0.0.1:{server.port}"
    async with client_of(where) as client:
        await client.xgroup_create("orders", "billing", mkstream=True)
        ids = await publish(where, 4)
        async with consume(where, credit=2) as consumption:
            entries = await taken(consumption, 2)
            await client.client_kill_filter(_type="normal", skipme=True)
            await entries[0].ack()
            assert [entry.id for entry in await taken(consumption, 1)] == ids[2:3]
            assert await entries[1].ack()
            assert [entry.id for entry in await taken(consumption, 1)] == ids[3:]
