"""Groups as work queues in programs without a server: what is due is done by whoever waits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from other_process import OtherProcess
from patience import PATIENCE_S, until
from test_blocking_reads import FOREVER_MS, ids, until_blocked

import rlite_pubsub
from rlite_pubsub.embedded.host import Host
from rlite_pubsub.storage.names import receivers

pytestmark = pytest.mark.usefixtures("no_second_look")


@pytest.fixture
def client(folder: Path, protocol: int) -> Iterator[rlite_pubsub.Redis]:
    """One that does not ask again by itself."""
    with rlite_pubsub.Redis(folder, protocol=protocol, socket_timeout=None) as client:
        yield client


def lying(client: rlite_pubsub.Redis) -> bytes:
    """An entry that somebody has taken and not acknowledged."""
    client.xgroup_create("t", "g", mkstream=True)
    entry_id: bytes = client.xadd("t", {"f": "v"})  # type: ignore[assignment]
    client.xreadgroup("g", "somebody", {"t": ">"})
    return entry_id


def do(client: rlite_pubsub.Redis, *words: Any) -> Any:
    return client.execute_command(*words)


def test_thread_that_waits_is_given_what_is_requeued_with_a_delay(
    client: rlite_pubsub.Redis, pool: ThreadPoolExecutor
) -> None:
    entry_id = lying(client)
    waiting = pool.submit(client.xreadgroup, "g", "heir", {"t": ">"}, None, FOREVER_MS)
    until_blocked(client, 1)
    assert do(client, "TOPIC.REQUEUE", "t", "g", entry_id, "DELAY", "50") == 1
    assert ids(waiting.result(PATIENCE_S)) == [entry_id]


def test_thread_that_waits_is_given_what_another_leaves_lying(
    client: rlite_pubsub.Redis, pool: ThreadPoolExecutor
) -> None:
    entry_id = lying(client)
    waiting = pool.submit(client.xreadgroup, "g", "heir", {"t": ">"}, None, FOREVER_MS)
    until_blocked(client, 1)
    do(client, "TOPIC.GROUP", "t", "g", "TIMEOUT", "50")
    assert ids(waiting.result(PATIENCE_S)) == [entry_id]


def test_thread_that_waits_is_given_a_deferred_entry(client: rlite_pubsub.Redis, pool: ThreadPoolExecutor) -> None:
    waiting = pool.submit(client.xread, {"t": "$"}, None, FOREVER_MS)
    until_blocked(client, 1)
    seconds, microseconds = client.time()  # type: ignore[misc]
    do(client, "TOPIC.DEFER", "t", int(seconds) * 1000 + int(microseconds) // 1000 + 50, "f", "v")
    assert len(ids(waiting.result(PATIENCE_S))) == 1


WAITS = """
from rlite_pubsub.embedded import host
host.BOUND_SECONDS = 3600.0
client = rlite_pubsub.Redis(folder, socket_timeout=None)
say("ready")
say(bool(client.xreadgroup("g", "heir", {"t": ">"}, block=600000)))
"""


def until_others_wait(folder: Path) -> None:
    host = Host.open(folder)
    until(lambda: host.store.live.read(lambda txn: receivers.receivers(txn, receivers.WAITS)), "the waiting of others")
    host.close()


def test_process_that_waits_is_given_what_one_that_is_gone_left_lying(
    client: rlite_pubsub.Redis, folder: Path, pool: ThreadPoolExecutor
) -> None:
    lying(client)
    with OtherProcess(folder, WAITS) as other:
        assert other.hear() == "ready"
        until_others_wait(folder)
        do(client, "TOPIC.GROUP", "t", "g", "TIMEOUT", "50")
        client.close()
        assert pool.submit(other.hear).result(PATIENCE_S) == "True"


def test_task_that_waits_is_given_what_is_requeued_with_a_delay(client: rlite_pubsub.Redis, folder: Path) -> None:
    entry_id = lying(client)

    async def wait() -> Any:
        async with rlite_pubsub.asyncio.Redis(folder, socket_timeout=None) as other:
            waiting = asyncio.ensure_future(other.xreadgroup("g", "heir", {"t": ">"}, block=FOREVER_MS))
            await asyncio.to_thread(until_blocked, client, 1)
            do(client, "TOPIC.REQUEUE", "t", "g", entry_id, "DELAY", "50")
            return await waiting

    assert ids(asyncio.run(wait())) == [entry_id]
