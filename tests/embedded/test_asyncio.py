"""The asyncio client: the same promises, in an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import redis
from patience import PATIENCE_S
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

import rlite_pubsub
from rlite_pubsub.asyncio import Redis


@pytest.fixture
async def aclient(folder: Path, protocol: int) -> AsyncIterator[Redis]:
    async with Redis(folder, protocol=protocol) as aclient:
        yield aclient


async def messages(pubsub: Any, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        message = await pubsub.get_message(timeout=PATIENCE_S)
        assert message is not None, f"only {len(found)} of {count} messages came"
        if message["type"].endswith("message"):
            found.append(message["data"])
    return found


async def test_a_message_reaches_a_waiting_task(aclient: Redis) -> None:
    async with aclient.pubsub() as pubsub:
        await pubsub.subscribe("news")
        assert (await pubsub.get_message(timeout=PATIENCE_S))["type"] == "subscribe"
        waiting = asyncio.create_task(pubsub.get_message(timeout=PATIENCE_S))
        while not pubsub.connection._reader.session.is_awaited:
            await asyncio.sleep(0)
        assert await aclient.publish("news", "hello") == 1
        assert await waiting == {"type": "message", "pattern": None, "channel": b"news", "data": b"hello"}


async def test_nothing_to_read_is_none_in_time(aclient: Redis) -> None:
    async with aclient.pubsub() as pubsub:
        await pubsub.subscribe("news")
        await pubsub.get_message(timeout=PATIENCE_S)
        assert await pubsub.get_message(timeout=0.01) is None
        assert await pubsub.get_message(timeout=0) is None


async def test_a_cancelled_wait_loses_nothing(aclient: Redis) -> None:
    async with aclient.pubsub() as pubsub:
        await pubsub.subscribe("news")
        await pubsub.get_message(timeout=PATIENCE_S)
        for number in range(200):
            waiting = asyncio.create_task(pubsub.get_message(timeout=PATIENCE_S))
            for _ in range(number % 7):
                await asyncio.sleep(0)
            await aclient.publish("news", number)
            for _ in range(number % 3):
                await asyncio.sleep(0)
            if not waiting.done():
                waiting.cancel()
            try:
                message = await waiting
            except asyncio.CancelledError:
                message = await pubsub.get_message(timeout=PATIENCE_S)
            assert message["data"] == b"%d" % number


async def test_a_publisher_that_never_rests_lets_readers_run(aclient: Redis) -> None:
    async with aclient.pubsub() as pubsub:
        await pubsub.subscribe("news")
        found: list[bytes] = []

        async def read() -> None:
            async for message in pubsub.listen():
                if message["type"] == "message":
                    found.append(message["data"])

        reader = asyncio.create_task(read())
        for number in range(5000):
            await aclient.publish("news", number)
        assert found, "the reader had no turn while the publisher ran"
        while len(found) < 5000:
            await asyncio.sleep(0)
        reader.cancel()
        assert found == [b"%d" % number for number in range(5000)]


async def test_many_pubsubs_of_one_loop_get_their_own(aclient: Redis) -> None:
    pubsubs = [aclient.pubsub() for _ in range(100)]
    for number, pubsub in enumerate(pubsubs):
        await pubsub.subscribe(f"channel {number}", "all")
    waiting = [asyncio.create_task(messages(pubsub, 2)) for pubsub in pubsubs]
    for number in range(100):
        assert await aclient.publish(f"channel {number}", number) == 1
    assert await aclient.publish("all", "all") == 100
    assert await asyncio.gather(*waiting) == [[b"%d" % number, b"all"] for number in range(100)]
    for pubsub in pubsubs:
        await pubsub.aclose()


@pytest.mark.usefixtures("no_second_look")
@pytest.mark.timeout(PATIENCE_S * 0.75)  # a loop that is not woken is by the end of its patience
async def test_a_thread_and_a_loop_reach_each_other(aclient: Redis, folder: Path) -> None:
    async with aclient.pubsub() as pubsub:
        await pubsub.subscribe("to loop")

        def other() -> bytes:
            with rlite_pubsub.Redis(folder) as client, client.pubsub() as theirs:
                theirs.subscribe("to thread")
                theirs.get_message(timeout=PATIENCE_S)
                client.publish("to loop", "ready")
                message = theirs.get_message(timeout=PATIENCE_S)
                return bytes(message["data"])

        working = asyncio.create_task(asyncio.to_thread(other))
        assert await messages(pubsub, 1) == [b"ready"]
        assert await aclient.publish("to thread", "hello") == 1
        assert await working == b"hello"


@pytest.mark.usefixtures("no_second_look")
@pytest.mark.timeout(PATIENCE_S * 0.75)  # a loop that is not woken is by the end of its patience
def test_loops_in_several_threads_share_the_store(folder: Path, protocol: int) -> None:
    loops, count = 3, 300
    all_subscribed = threading.Barrier(loops)
    found: list[list[bytes]] = []

    async def run(who: int) -> None:
        async with Redis(folder, protocol=protocol) as client, client.pubsub() as pubsub:
            await pubsub.subscribe("news")
            await pubsub.get_message(timeout=PATIENCE_S)
            await asyncio.to_thread(all_subscribed.wait, PATIENCE_S)
            reading = asyncio.create_task(messages(pubsub, loops * count))
            for number in range(count):
                await client.publish("news", f"{who} {number}")
            found.append(await reading)
            await asyncio.to_thread(all_subscribed.wait, PATIENCE_S)

    threads = [threading.Thread(target=lambda who=who: asyncio.run(run(who))) for who in range(loops)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S * 3)
    assert len(found) == loops
    for received in found:
        for who in range(loops):
            assert [one for one in received if one.startswith(b"%d " % who)] == [
                b"%d %d" % (who, number) for number in range(count)
            ]


def test_one_loop_after_another_can_use_the_store(folder: Path) -> None:
    async def run() -> None:
        client = Redis(folder)
        async with client.pubsub() as pubsub:
            await pubsub.subscribe("news")
            await client.publish("news", "x")
            assert await messages(pubsub, 1) == [b"x"]
        await client.aclose()

    for _ in range(3):
        asyncio.run(run())


async def test_pipelines_and_errors_are_redis_pys(aclient: Redis) -> None:
    async with aclient.pipeline() as pipe:
        assert await pipe.publish("news", 1).echo("x").execute() == [0, b"x"]
    async with aclient.pipeline(transaction=False) as pipe:
        assert await pipe.publish("news", 1).ping().execute() == [0, True]
    with pytest.raises(redis.ResponseError, match="unknown command 'NOSUCH'"):
        await aclient.execute_command("NOSUCH")
    with pytest.raises(redis.DataError):
        await aclient.publish("news", None)  # type: ignore[arg-type]


async def test_a_paused_publish_waits_and_the_loop_goes_on(folder: Path) -> None:
    aclient = Redis(folder, retry=Retry(NoBackoff(), 0))
    await aclient.execute_command("CLIENT", "PAUSE", 50, "WRITE")
    publishing = asyncio.create_task(aclient.publish("news", "late"))
    turns = 0
    while not publishing.done():
        turns += 1
        await asyncio.sleep(0)
    assert await publishing == 0
    assert turns > 5
    await aclient.aclose()


async def test_monitor_sees_a_publish(aclient: Redis) -> None:
    async with aclient.monitor() as monitor:
        await aclient.publish("news", "x")
        commands = [(await monitor.next_command())["command"]]
        while not commands[-1].startswith("PUBLISH"):
            commands.append((await monitor.next_command())["command"])
        assert commands[-1] == "PUBLISH news x"


async def test_a_file_in_the_place_of_the_folder_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    client = Redis(tmp_path / "store")
    with pytest.raises(rlite_pubsub.StoreUnavailable, match="is not a folder"):
        await client.publish("news", "x")
    with pytest.raises(rlite_pubsub.StoreUnavailable, match="is not a folder"):
        await client.ping()
    await client.aclose()


async def test_a_killed_pubsub_subscribes_again(aclient: Redis) -> None:
    async with aclient.pubsub() as pubsub:
        await pubsub.subscribe("news")
        await pubsub.get_message(timeout=PATIENCE_S)
        assert await aclient.execute_command("CLIENT", "KILL", "TYPE", "pubsub") == 1
        assert (await pubsub.get_message(timeout=PATIENCE_S))["type"] == "subscribe"
        await aclient.publish("news", "again")
        assert await messages(pubsub, 1) == [b"again"]
