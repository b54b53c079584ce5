"""Queues for programs with an event loop."""

from __future__ import annotations

import asyncio

import pytest

from rlite_pubsub.queues import NoSuchQueue, NoSuchSubscriber, SubscriberAsleep, aio


async def test_a_queue_is_filled_and_read_beside_other_work(where: str) -> None:
    async with aio.Queue(where, "jobs", codec="json") as jobs:
        worker = await jobs.create_subscriber("worker")
        waiting = asyncio.create_task(worker.pop(None))
        await asyncio.sleep(0)
        ids = await jobs.push({"to": "ada"}, {"to": "alan"}, 3)
        item = await waiting
        assert item is not None and (item.id, item.value) == (ids[0], {"to": "ada"})
        peeked = await worker.peek()
        assert peeked is not None and peeked.value == {"to": "alan"}
        assert [item.value for item in await worker.pop_many(5)] == [{"to": "alan"}, 3]
        assert await worker.pop() is None and await worker.pop(0.01) is None
        assert await jobs.size() == 3
        (status,) = await jobs.list()
        assert (status.name, status.behind, status.is_asleep) == ("worker", 0, False)
        assert await worker.sleep() is True
        with pytest.raises(SubscriberAsleep):
            await worker.pop()
        assert await worker.wakeup() is True
        assert await worker.delete() is True
        with pytest.raises(NoSuchSubscriber):
            await worker.pop()


async def test_all_items_come_in_their_order_to_whoever_iterates(where: str) -> None:
    async with aio.Queue(where, "jobs", codec="text") as jobs:
        worker = await jobs.create_subscriber("worker", start="end")

        async def push() -> None:
            for number in range(20):
                await jobs.push(str(number))

        pushing = asyncio.create_task(push())
        found = []
        async for item in worker:
            found.append(item.value)
            if len(found) == 20:
                break
        await pushing
        assert found == [str(number) for number in range(20)]


async def test_a_queue_that_is_not_there_is_not_made_if_that_is_said(where: str) -> None:
    with pytest.raises(NoSuchQueue):
        await aio.Queue(where, "jobs", create=False).open()


async def test_queues_and_subscribers_are_found_by_name_and_by_id(where: str) -> None:
    with pytest.raises(NoSuchQueue):
        await aio.get_queue(where, "jobs")
    async with await aio.create_queue(where, "jobs", codec="json") as jobs, await aio.create_queue(where, "mail"):
        assert await aio.list_queues(where) == ["jobs", "mail"]
        worker = await jobs.create_subscriber("a:b/ü")
        await jobs.push(1, 2)
    async with await aio.get_queue(where, subscriber=worker.id, codec="json") as again:
        assert (again.name, await again.size()) == ("jobs", 2)
    async with await aio.get_subscriber(where, worker.id, codec="json") as found:
        item = await found.pop()
        assert item is not None and item.value == 1 and found.id == worker.id
    async with await aio.get_queue(where, "jobs") as jobs:
        (status,) = await jobs.list()
        assert (status.name, status.behind) == ("a:b/ü", 1)


async def test_what_names_no_queue_or_subscriber_is_refused(where: str) -> None:
    async with await aio.create_queue(where, "orders"):
        with pytest.raises(NoSuchSubscriber):
            await aio.get_subscriber(where, "orders:nobody")
        with pytest.raises(NoSuchQueue):
            await aio.get_queue(where, subscriber="nothing:nobody")
        with pytest.raises(ValueError, match="not a subscriber's id"):
            await aio.get_queue(where, subscriber="orders")
        with pytest.raises(TypeError, match="subscriber="):
            await aio.get_queue(where)
