"""Topics through redis-py's asyncio client: workers, readers that wait, and what is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from patience import PATIENCE_S, until_async

from compat_tests.servers import SocketServer
from compat_tests.test_streams import BLOCK_MS, ENTRIES, entries_of


@pytest_asyncio.fixture
async def client(server: SocketServer, protocol: int) -> AsyncIterator[Any]:
    async with server.async_client(protocol=protocol, decode_responses=True) as client:
        yield client


async def _blocked(client: Any, count: int) -> bool:
    return bool((await client.info("clients"))["blocked_clients"] == count)


async def test_workers_of_a_group_share_the_entries(client: Any) -> None:
    await client.xgroup_create("jobs", "workers", id="0", mkstream=True)
    done: list[str] = []

    async def work(name: str) -> None:
        while len(done) < ENTRIES:
            reply = await client.xreadgroup("workers", name, {"jobs": ">"}, count=5, block=200)
            for entry_id, fields in entries_of(reply):
                done.append(fields["number"])
                await client.xack("jobs", "workers", entry_id)

    async def produce() -> None:
        for number in range(ENTRIES):
            await client.xadd("jobs", {"number": number})

    await asyncio.wait_for(asyncio.gather(work("a"), work("b"), work("c"), produce()), PATIENCE_S)
    assert sorted(map(int, done)) == list(range(ENTRIES))
    assert (await client.xpending("jobs", "workers"))["pending"] == 0


async def test_many_blocked_readers_get_the_same(client: Any) -> None:
    readers = [asyncio.create_task(client.xread({"log": "$"}, block=BLOCK_MS)) for _ in range(20)]
    await until_async(lambda: _blocked(client, 20))
    entry_id = await client.xadd("log", {"a": 1})
    for reply in await asyncio.gather(*readers):
        assert entries_of(reply) == [(entry_id, {"a": "1"})]


async def test_cancelled_reader_takes_nothing_with_it(client: Any) -> None:
    await client.xgroup_create("log", "g", mkstream=True)
    reader = asyncio.create_task(client.xreadgroup("g", "c", {"log": ">"}, block=BLOCK_MS))
    await until_async(lambda: _blocked(client, 1))
    reader.cancel()
    await asyncio.wait([reader])
    await until_async(lambda: _blocked(client, 0))
    entry_id = await client.xadd("log", {"a": 1})
    assert entries_of(await client.xreadgroup("g", "d", {"log": ">"})) == [(entry_id, {"a": "1"})]


async def test_scan_iter_and_pipelines(client: Any) -> None:
    async with client.pipeline(transaction=True) as pipe:
        for number in range(50):
            pipe.xadd(f"log:{number}", {"number": number}, id="1-1")
        assert await pipe.execute() == ["1-1"] * 50
    assert sorted([key async for key in client.scan_iter(match="log:*", count=7)]) == sorted(await client.keys("*"))
