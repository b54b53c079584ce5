"""`rlite_pubsub.topics`: every entry once, in order, whatever happens to the connection."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import redis
from patience import PATIENCE_S
from ports import free_port
from server_process import ServerProcess

import rlite_pubsub
from rlite_pubsub import queues, topics
from rlite_pubsub.topics import Entry, Gap


def numbers(entries: list[Entry]) -> list[int]:
    return [int(entry["n"]) for entry in entries]


def taken(subscription: topics.Subscription, count: int) -> list[Entry]:
    found = []
    for _ in range(count):
        entry = subscription.get(30)
        assert entry is not None
        found.append(entry)
    return found


def test_what_is_there_comes_first_and_then_what_is_published(where: str) -> None:
    ids = [topics.publish(where, "orders", {"n": number}) for number in range(5)]
    with topics.subscribe(where, "orders", since=topics.BEGINNING) as subscription:
        first = taken(subscription, 5)
        assert [entry.id for entry in first] == ids
        topics.publish(where, "orders", {"n": 5})
        assert numbers(taken(subscription, 1)) == [5]
        assert subscription.get(0.01) is None


def test_since_an_id_a_time_or_nothing(where: str) -> None:
    begun = datetime.now(UTC) - timedelta(seconds=1)
    ids = [topics.publish(where, "orders", {"n": number}) for number in range(4)]
    every = [0, 1, 2, 3]
    for since, expected in [
        *((ids[1], [2, 3]), (begun, every), ({"orders": ids[2]}, [3]), (topics.LATEST, [3]), ("last", [3])),
        *(("24h", every), (timedelta(hours=1), every), (begun.isoformat(), every), ("beginning", every)),
    ]:
        with topics.subscribe(where, "orders", since=since) as subscription:
            assert numbers(taken(subscription, len(expected))) == expected
    with topics.subscribe(where, "orders") as subscription:
        assert subscription.get(0.2) is None
        topics.publish(where, "orders", {"n": 4})
        assert numbers(taken(subscription, 1)) == [4]


def test_what_has_no_fields_is_refused_in_words(tmp_path: Path) -> None:
    for fields, kind in (({}, redis.DataError), ([("a", 1)], TypeError), (5, TypeError), (None, TypeError)):
        with pytest.raises(kind, match="field"):
            topics.publish(tmp_path, "orders", fields)  # type: ignore[arg-type]


def test_names_come_back_as_the_kind_they_were_given_in(where: str) -> None:
    ids = {name: topics.publish(where, name, "hello") for name in (b"bytes", "text")}
    for since in ("-", {b"text": "-", "bytes": "-"}):
        with topics.subscribe(where, b"bytes", "text", since=since) as subscription:
            assert {entry.topic for entry in taken(subscription, 2)} == {b"bytes", "text"}
            assert subscription.positions == ids
    with queues.Queue(where, "q") as queue:
        found = queue.create_subscriber("worker")
        with queues.get_subscriber(where, found.id) as again:
            assert (again.queue, again.name) == ("q", "worker")


def test_several_topics_and_where_each_of_them_is(where: str) -> None:
    last = {name: topics.publish(where, name, "hello") for name in ("a", "b")}
    with topics.subscribe(where, "a", "b", since=topics.BEGINNING) as subscription:
        found = {entry.topic: entry for entry in taken(subscription, 2)}
        assert {name: entry["message"] for name, entry in found.items()} == {"a": b"hello", "b": b"hello"}
        assert subscription.positions == last
    topics.publish(where, "b", "again")
    with topics.subscribe(where, "a", "b", since=last) as subscription:
        assert taken(subscription, 1)[0].topic == "b"


def test_a_program_is_told_what_retention_has_taken(where: str) -> None:
    client = rlite_pubsub.Redis(where) if "://" not in where else redis.Redis.from_url(where)
    ids = [topics.publish(where, "orders", {"n": number}) for number in range(10)]
    client.xtrim("orders", maxlen=4, approximate=False)
    gaps: list[Gap] = []
    with topics.subscribe(where, "orders", since=topics.BEGINNING, on_gap=gaps.append) as subscription:
        assert numbers(taken(subscription, 4)) == [6, 7, 8, 9]
    assert gaps == [Gap("orders", ids[6], 6)]
    client.close()


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        topics.subscribe("redis://127.0.0.1:1", "orders", since=datetime(2026, 1, 1))  # noqa: DTZ001


def test_a_key_that_is_no_topic_is_an_error(where: str) -> None:
    client = rlite_pubsub.Redis(where) if "://" not in where else redis.Redis.from_url(where)
    client.set("orders", "x")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        topics.subscribe(where, "orders")
    client.close()


async def test_a_key_that_is_no_topic_is_an_error_in_an_event_loop(where: str) -> None:
    client = rlite_pubsub.asyncio.Redis(where) if "://" not in where else redis.asyncio.Redis.from_url(where)
    await client.set("orders", "x")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        await topics.aio.subscribe(where, "orders")
    await client.aclose()


def test_what_is_published_once_subscribe_has_returned_is_received(where: str) -> None:
    with topics.subscribe(where, "a", "b", "c") as subscription:
        for number, name in enumerate("cab"):
            topics.publish(where, name, {"n": number})
        assert sorted(numbers(taken(subscription, 3))) == [0, 1, 2]


async def test_what_is_published_once_subscribe_was_awaited_is_received(where: str) -> None:
    subscription = await topics.aio.subscribe(where, "a", "b")
    topics.publish(where, "b", {"n": 0})
    await topics.aio.publish(where, "a", {"n": 1})
    found = [await subscription.get(30) for _ in range(2)]
    assert sorted(int(entry["n"]) for entry in found if entry is not None) == [0, 1]
    await subscription.aclose()


async def test_a_loop_over_a_subscription_begins_with_it(where: str) -> None:
    await topics.aio.publish(where, "orders", {"n": 0})
    found = []
    async for entry in topics.aio.subscribe(where, "orders", since=topics.BEGINNING):
        found.append(int(entry["n"]))
        if len(found) == 2:
            break
        await topics.aio.publish(where, "orders", {"n": 1})
    assert found == [0, 1]


def test_what_is_published_before_the_first_read_survives_the_server(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    url = f"redis://127.0.0.1:{server.port}"
    try:
        topics.publish(url, "orders", {"n": 0})
        with topics.subscribe(url, "orders") as subscription:
            topics.publish(url, "orders", {"n": 1})
            server.process.kill()
            server.process.wait()
            server = ServerProcess(tmp_path, port=server.port)
            assert numbers(taken(subscription, 1)) == [1]
    finally:
        server.clean_up()


async def test_who_can_not_be_subscribed_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for nowhere in (f"redis://127.0.0.1:{free_port()}", str(tmp_path / "file")):
        with pytest.raises((OSError, redis.RedisError)):
            topics.subscribe(nowhere, "orders")
        with pytest.raises((OSError, redis.RedisError)):
            await topics.aio.subscribe(nowhere, "orders")


def test_closing_ends_a_reader_in_another_thread(where: str) -> None:
    subscription = topics.subscribe(where, "orders")
    found: list[Entry] = []
    reader = threading.Thread(target=lambda: found.extend(subscription))
    reader.start()
    subscription.close()
    reader.join(PATIENCE_S)
    assert not reader.is_alive() and not found


def test_it_goes_on_behind_its_last_entry_when_the_server_is_killed_and_started_again(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    url = f"redis://127.0.0.1:{server.port}"
    subscription = topics.subscribe(url, "orders", since=topics.BEGINNING)
    got: list[int] = []
    sent = 0
    try:
        for _ in range(3):
            client = redis.Redis(port=server.port)
            for _ in range(200):
                client.xadd("orders", {"n": sent})
                sent += 1
            client.close()
            while len(got) < sent - 50:
                got += numbers(taken(subscription, 1))
            server.process.kill()
            server.process.wait()
            server = ServerProcess(tmp_path, port=server.port)
        while len(got) < sent:
            got += numbers(taken(subscription, 1))
        assert got == list(range(sent))
        assert subscription.get(0.1) is None
    finally:
        subscription.close()
        server.process.kill()
        server.process.wait()


async def test_in_an_event_loop(where: str) -> None:
    for number in range(3):
        await topics.aio.publish(where, "orders", {"n": number})
    async with topics.aio.subscribe(where, "orders", since=topics.BEGINNING) as subscription:
        found = [await subscription.get(30) for _ in range(3)]
        assert [int(entry["n"]) for entry in found if entry is not None] == [0, 1, 2]

        async def first() -> Entry:
            async for entry in subscription:
                return entry
            raise AssertionError

        waiting = asyncio.create_task(first())
        await topics.aio.publish(where, "orders", {"n": 3})
        assert (await asyncio.wait_for(waiting, PATIENCE_S))["n"] == b"3"
        assert await subscription.get(0.01) is None


async def test_cancelling_a_wait_loses_nothing(where: str) -> None:
    async with topics.aio.subscribe(where, "orders", since=topics.BEGINNING) as subscription:
        got: list[int] = []
        for number in range(50):
            waiting = asyncio.create_task(subscription.get(30))
            await asyncio.sleep(0)
            if number % 2:
                waiting.cancel()
            await topics.aio.publish(where, "orders", {"n": number})
            try:
                entry = await waiting
            except asyncio.CancelledError:
                continue
            assert entry is not None
            got.append(int(entry["n"]))
        while (entry := await subscription.get(0.5)) is not None:
            got.append(int(entry["n"]))
        assert got == list(range(50))
