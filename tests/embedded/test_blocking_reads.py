"""Reads that wait, in programs without a server: redis-py's calls as they are, sync and asyncio."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis
from other_process import OtherProcess
from patience import PATIENCE_S, until, until_async
from redis.backoff import NoBackoff
from redis.retry import Retry

import rlite_pubsub
from rlite_pubsub.embedded.host import Host
from rlite_pubsub.storage.names import receivers

FOREVER_MS = 1000 * int(PATIENCE_S)


WAITS = """
client = rlite_pubsub.Redis(folder)
say("ready")
say(client.xread({"k": "0"}, block=30000)[0][1][0][0].decode())
"""


def ids(reply: Any) -> list[bytes]:
    """Of the entries of the one key that was served, in either protocol's shape."""
    if isinstance(reply, dict):
        ((entries,),) = reply.values()
        return [entry[0] for entry in entries]
    return [entry[0] for entry in reply[0][1]]


def until_blocked(client: redis.Redis, count: int) -> None:
    """The clients of this process that wait."""
    until(lambda: client.info("clients")["blocked_clients"] == count, f"the waiting of {count} clients")


async def until_blocked_async(client: Any, count: int) -> None:
    async def are_blocked() -> bool:
        return bool((await client.info("clients"))["blocked_clients"] == count)

    await until_async(are_blocked, f"the waiting of {count} clients")


@pytest.mark.usefixtures("no_second_look")
def test_a_thread_that_waits_is_served_by_another(client: rlite_pubsub.Redis, pool: ThreadPoolExecutor) -> None:
    waiting = pool.submit(client.xread, {"k": "$"}, None, FOREVER_MS)
    until_blocked(client, 1)
    new = client.xadd("k", {"f": "v"})
    assert ids(waiting.result(PATIENCE_S)) == [new]


def test_a_wait_ends_by_itself_with_nothing(client: rlite_pubsub.Redis) -> None:
    assert not client.xread({"k": "$"}, block=20)
    client.xgroup_create("k", "g", mkstream=True)
    assert not client.xreadgroup("g", "c", {"k": ">"}, block=20)


def test_threads_that_share_a_group_get_each_entry_once(client: rlite_pubsub.Redis, pool: ThreadPoolExecutor) -> None:
    client.xgroup_create("k", "g", mkstream=True)

    def work(number: int) -> list[bytes]:
        got: list[bytes] = []
        while new := client.xreadgroup("g", f"c{number}", {"k": ">"}, count=1, block=1000):
            got += ids(new)
        return got

    workers = [pool.submit(work, number) for number in range(8)]
    until_blocked(client, 8)
    added = [client.xadd("k", {"f": number}) for number in range(200)]
    assert sorted(sum([worker.result(PATIENCE_S) for worker in workers], [])) == sorted(added)


def test_a_socket_timeout_ends_a_wait_as_at_a_socket(client: rlite_pubsub.Redis, folder: Path) -> None:
    with rlite_pubsub.Redis(folder, socket_timeout=0.05, retry=Retry(NoBackoff(), 0)) as hurried:
        with pytest.raises(redis.TimeoutError):
            hurried.xread({"k": "$"}, block=FOREVER_MS)
        until_blocked(client, 0)


def test_client_unblock_ends_a_wait(client: rlite_pubsub.Redis, pool: ThreadPoolExecutor) -> None:
    with client.client() as single:
        number = single.client_id()
        waiting = pool.submit(single.xread, {"k": "$"}, None, FOREVER_MS)
        until_blocked(client, 1)
        assert client.client_unblock(number, error=True)
        with pytest.raises(redis.ResponseError, match="UNBLOCKED client unblocked via CLIENT UNBLOCK"):
            waiting.result(PATIENCE_S)


def test_what_a_pipeline_has_behind_a_wait_is_answered_behind_it(
    client: rlite_pubsub.Redis, pool: ThreadPoolExecutor
) -> None:
    with client.pipeline(transaction=False) as pipe:
        waiting: Future[Any] = pool.submit(pipe.xread({"k": "$"}, block=FOREVER_MS).xlen("k").execute)
        until_blocked(client, 1)
        new = client.xadd("k", {"f": "v"})
        served, length = waiting.result(PATIENCE_S)
    assert (ids(served), length) == ([new], 1)


@pytest.mark.usefixtures("no_second_look")
def test_another_process_serves_and_is_served(
    client: rlite_pubsub.Redis, folder: Path, pool: ThreadPoolExecutor
) -> None:
    for _ in range(3):
        client.delete("k")
        waiting = pool.submit(client.xread, {"k": "$"}, None, FOREVER_MS)
        until_blocked(client, 1)
        with OtherProcess(folder, 'say(rlite_pubsub.Redis(folder).xadd("k", {"f": "v"}).decode())') as writer:
            assert ids(waiting.result(PATIENCE_S)) == [writer.hear().encode()]
    client.delete("k")
    with OtherProcess(folder, WAITS) as reader:
        assert reader.hear() == "ready"
        assert client.xadd("k", {"f": "v"}) == reader.hear().encode()
        assert reader.end() == 0


def test_a_server_serves_programs_and_programs_serve_its_clients(
    client: rlite_pubsub.Redis, folder: Path, pool: ThreadPoolExecutor
) -> None:
    with rlite_pubsub.Server(dir=str(folder)) as server, redis.Redis(port=server.port) as remote:
        waiting = pool.submit(client.xread, {"k": "$"}, None, FOREVER_MS)
        until_blocked(client, 1)
        new = remote.xadd("k", {"f": "v"})
        assert ids(waiting.result(PATIENCE_S)) == [new]
        waiting = pool.submit(remote.xread, {"k": "$"}, None, FOREVER_MS)
        until_blocked(remote, 1)
        assert [client.xadd("k", {"f": "v"})] == ids(waiting.result(PATIENCE_S))


def test_an_entry_of_a_writer_killed_between_its_commit_and_the_bell_is_found(
    client: rlite_pubsub.Redis, folder: Path, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = pool.submit(client.xread, {"k": "$"}, None, FOREVER_MS)
    until_blocked(client, 1)
    monkeypatch.setenv("RLITE_FAILPOINT", "change-committed")
    with OtherProcess(folder, 'rlite_pubsub.Redis(folder).xadd("k", {"f": "v"}, "1-1")') as writer:
        assert writer.end() == -9
    assert ids(waiting.result(PATIENCE_S)) == [b"1-1"]


def test_a_program_killed_while_it_waits_leaves_nothing(client: rlite_pubsub.Redis, folder: Path) -> None:
    client.ping()
    host = Host.open(folder)
    with OtherProcess(folder, WAITS) as reader:
        assert reader.hear() == "ready"
        until(lambda: host.store.live.read(lambda txn: receivers.receivers(txn, receivers.WAITS)), "its waiting")
        reader.kill()
    host.close()
    client.xadd("k", {"f": "v"})
    assert os.listdir(folder / "subscribers") == []


@pytest.mark.usefixtures("no_second_look")
async def test_tasks_wait_beside_each_other(folder: Path, protocol: int) -> None:
    async with rlite_pubsub.asyncio.Redis(folder, protocol=protocol) as client:
        waiting = [asyncio.create_task(client.xread({"k": "$"}, block=FOREVER_MS)) for _ in range(10)]
        await until_blocked_async(client, 10)
        new = await client.xadd("k", {"f": "v"})
        assert [ids(reply) for reply in await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE_S)] == [[new]] * 10
        assert not await client.xread({"k": "$"}, block=20)


@pytest.mark.usefixtures("no_second_look")
async def test_a_task_is_served_by_another_process(folder: Path) -> None:
    async with rlite_pubsub.asyncio.Redis(folder) as client:
        waiting = asyncio.create_task(client.xread({"k": "$"}, block=FOREVER_MS))
        await until_blocked_async(client, 1)
        with OtherProcess(folder, 'say(rlite_pubsub.Redis(folder).xadd("k", {"f": "v"}).decode())') as writer:
            assert ids(await asyncio.wait_for(waiting, PATIENCE_S)) == [writer.hear().encode()]


async def test_a_task_that_is_cancelled_waits_for_nothing_any_more(folder: Path) -> None:
    async with rlite_pubsub.asyncio.Redis(folder) as client:
        waiting = asyncio.create_task(client.xread({"k": "$"}, block=FOREVER_MS))
        await until_blocked_async(client, 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await until_blocked_async(client, 0)
