"""A durable subscriber in a program without a server: what it misses comes first, and what it was not handed stays."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from other_process import OtherProcess
from patience import PATIENCE_S, until
from reading import messages
from redis.exceptions import ConnectionError
from server_process import ServerProcess

import rlite_pubsub
from rlite_pubsub.embedded import handing
from rlite_pubsub.embedded.errors import TakenOver

READER = """
import time
from rlite_pubsub.embedded import handing
handing.SETTLE_SECONDS = 0.0
client = rlite_pubsub.Redis(folder, client_name="durable:d")
pubsub = client.pubsub(ignore_subscribe_messages=True)
pubsub.subscribe("news")
def next_message():
    while True:
        message = pubsub.get_message(timeout=PATIENCE_S)
        if message is not None:
            return message["data"].decode()
say("ready")
"""


@pytest.fixture
def publisher(folder: Path) -> Iterator[rlite_pubsub.Redis]:
    with rlite_pubsub.Redis(folder) as publisher:
        yield publisher


@pytest.fixture
def settled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing, "SETTLE_SECONDS", 0.0)


def durable(folder: Path, name: str = "d", **options: Any) -> rlite_pubsub.Redis:
    return rlite_pubsub.Redis(folder, client_name=f"durable:{name}", **options)


@contextlib.contextmanager
def subscribed(folder: Path, *channels: str, name: str = "d", **options: Any) -> Iterator[Any]:
    with durable(folder, name, **options) as client, client.pubsub() as pubsub:
        pubsub.subscribe(*(channels or ("news",)))
        yield pubsub


def make(folder: Path, *channels: str, name: str = "d") -> None:
    """Let there be one, which is away."""
    with subscribed(folder, *channels, name=name) as pubsub:
        for _ in channels or ("news",):
            pubsub.get_message(timeout=PATIENCE_S)


@contextlib.contextmanager
def server_on(folder: Path, own_folder: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(own_folder, store_folder=folder)
    try:
        yield server
    finally:
        server.clean_up()


def info(client: Any, name: str = "d") -> dict[bytes, Any]:
    answer = client.execute_command("SUBSCRIBER.INFO", name)
    return answer if isinstance(answer, dict) else dict(zip(answer[::2], answer[1::2], strict=True))


def numbers(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last + 1)]


def pipelined(client: Any, first: int, last: int, channel: str = "news") -> None:
    """As one letter."""
    with client.pipeline(transaction=False) as pipe:
        for number in range(first, last + 1):
            pipe.publish(channel, number)
        pipe.execute()


def test_what_was_published_while_it_was_away_arrives_first_and_in_order(
    folder: Path, publisher: rlite_pubsub.Redis, protocol: int
) -> None:
    make(folder)
    for number in range(1, 500):
        assert publisher.publish("news", number) == 1
    pipelined(publisher, 500, 999)
    with subscribed(folder, protocol=protocol) as again:
        assert again.get_message(timeout=PATIENCE_S)["type"] == "subscribe"
        assert publisher.publish("news", 1000) == 1
        assert messages(again, 1000) == numbers(1, 1000)
        assert publisher.publish("news", 1001) == 1
        assert messages(again, 1) == [b"1001"]
        assert again.get_message(timeout=0.01) is None
        assert publisher.pubsub_numsub("news") == [(b"news", 1)]
    until(lambda: not info(publisher)[b"backlog_messages"], "an empty mailbox")
    assert info(publisher)[b"attached"] == 0


async def test_in_asyncio_what_it_missed_arrives_first_and_then_what_comes(folder: Path, protocol: int) -> None:
    async def read(pubsub: Any, count: int) -> list[bytes]:
        found: list[bytes] = []
        while len(found) < count:
            message = await pubsub.get_message(ignore_subscribe_messages=True, timeout=PATIENCE_S)
            found += [message["data"]] if message is not None else []
        return found

    url = f"rlite://{folder}?client_name=durable:d&protocol={protocol}"
    async with rlite_pubsub.asyncio.Redis(folder) as publisher:
        async with rlite_pubsub.asyncio.from_url(url) as client, client.pubsub() as pubsub:
            await pubsub.subscribe("news")
            await pubsub.get_message(timeout=PATIENCE_S)
        for number in range(1, 300):
            assert await publisher.publish("news", number) == 1
        async with rlite_pubsub.asyncio.from_url(url) as client:
            async with client.pubsub() as pubsub:
                await pubsub.subscribe("news")
                assert await read(pubsub, 150) == numbers(1, 150)
            async with client.pubsub() as pubsub:
                await pubsub.subscribe("news")
                assert await read(pubsub, 149) == numbers(151, 299)
                waiting = asyncio.create_task(read(pubsub, 1))
                await asyncio.sleep(0)
                await publisher.publish("news", "live")
                assert await waiting == [b"live"]


async def test_a_wait_that_is_cancelled_takes_no_message_with_it(folder: Path) -> None:
    async with (
        rlite_pubsub.asyncio.Redis(folder) as publisher,
        rlite_pubsub.asyncio.Redis(folder, client_name="durable:d") as client,
        client.pubsub(ignore_subscribe_messages=True) as pubsub,
    ):
        await pubsub.subscribe("news")
        found: list[bytes] = []
        for number in range(50):
            waiting = asyncio.create_task(pubsub.get_message(timeout=PATIENCE_S))
            await asyncio.sleep(0)
            await publisher.publish("news", number)
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                message = await waiting
                found += [message["data"]] if message is not None else []
        while len(found) < 50:
            message = await pubsub.get_message(timeout=PATIENCE_S)
            found += [message["data"]] if message is not None else []
        assert found == numbers(0, 49)


def test_a_url_names_it_and_attaching_by_command_does_too(folder: Path, publisher: rlite_pubsub.Redis) -> None:
    with rlite_pubsub.from_url(f"rlite://{folder}?client_name=durable:d") as client, client.pubsub() as pubsub:
        pubsub.subscribe("news")
        assert info(publisher)[b"attached"] == 1
    with rlite_pubsub.Redis(folder) as client, client.pubsub() as pubsub:
        pubsub.execute_command("SUBSCRIBER.ATTACH", "e", "TTL", 60, "MAXLEN", 10)
        assert pubsub.parse_response()
        pubsub.psubscribe("n*")
        pubsub.get_message(timeout=PATIENCE_S)
        assert publisher.publish("news", "x") == 2
        assert messages(pubsub, 1) == [b"x"]
    assert (info(publisher, "e")[b"ttl"], info(publisher, "e")[b"max_messages"]) == (60, 10)


def test_patterns_and_shards_come_in_each_form_that_matched(folder: Path, publisher: rlite_pubsub.Redis) -> None:
    with durable(folder) as client, client.pubsub() as pubsub:
        pubsub.subscribe("news")
        pubsub.psubscribe("n*")
        pubsub.ssubscribe("shard")
        for _ in range(3):
            pubsub.get_message(timeout=PATIENCE_S)
    pipelined(publisher, 1, 3)
    assert publisher.execute_command("SPUBLISH", "shard", "s") == 1
    with durable(folder) as client, client.pubsub(ignore_subscribe_messages=True) as pubsub:
        pubsub.subscribe("news")
        found = []
        while len(found) < 7:
            message = pubsub.get_message(timeout=PATIENCE_S)
            found += [(message["type"], message["data"])] if message is not None else []
    assert found == [
        *[(form, b"%d" % number) for number in (1, 2, 3) for form in ("message", "pmessage")],
        ("smessage", b"s"),
    ]


@pytest.mark.parametrize("publish", [pipelined, lambda *args: [pipelined(args[0], n, n) for n in range(1, 11)]])
def test_closed_in_the_middle_it_goes_on_with_the_next_message(
    folder: Path, publisher: rlite_pubsub.Redis, publish: Callable[..., Any]
) -> None:
    make(folder)
    publish(publisher, 1, 10)
    for first in (1, 4, 7):
        with subscribed(folder) as pubsub:
            assert messages(pubsub, 3) == numbers(first, first + 2)
        assert info(publisher)[b"backlog_messages"] == 8 - first
    with rlite_pubsub.Server(dir=str(folder)) as server, redis.Redis(
        port=server.port, client_name="durable:d"
    ) as remote, remote.pubsub() as pubsub:
        pubsub.subscribe("news")
        assert messages(pubsub, 1) == [b"10"]


def test_a_message_that_was_being_handled_when_the_program_was_killed_comes_again_and_none_before_it(
    folder: Path, publisher: rlite_pubsub.Redis
) -> None:
    make(folder)
    pipelined(publisher, 1, 5)
    pipelined(publisher, 6, 10)
    source = """
    for _ in range(7): last = next_message()
    say(last)
    time.sleep(PATIENCE_S)
    """
    with OtherProcess(folder, READER, source) as reader:
        assert [reader.hear(), reader.hear()] == ["ready", "7"]
        reader.kill()
    publisher.publish("news", 11)
    with subscribed(folder) as pubsub:
        assert messages(pubsub, 5) == numbers(7, 11)
    assert info(publisher)[b"attached"] == 0


def test_every_message_of_a_stream_arrives_though_its_program_is_killed_again_and_again(
    folder: Path, publisher: rlite_pubsub.Redis
) -> None:
    make(folder)
    source = """
    while True: say(next_message())
    """
    heard: list[int] = []
    for first in range(0, 3000, 300):
        with OtherProcess(folder, READER, source) as reader:
            assert reader.hear() == "ready"
            for number in range(first, first + 300):
                publisher.publish("news", number)
            for _ in range(200):
                heard.append(int(reader.hear()))
            reader.kill()
            heard += [int(line) for line in reader.rest()]
    with subscribed(folder) as pubsub:
        while not heard or heard[-1] != 2999:
            heard += map(int, messages(pubsub, 1))
    expected = 0
    for number in heard:
        assert number <= expected, f"{expected} is missing"
        expected = max(expected, number + 1)
    assert expected == 3000
    assert len(heard) < 3000 + 10 * 30  # what was not noted when it was killed comes again


def test_an_exception_on_its_way_through_the_end_of_a_with_leaves_the_message_undelivered(
    folder: Path, publisher: rlite_pubsub.Redis
) -> None:
    make(folder)
    pipelined(publisher, 1, 3)
    with pytest.raises(ZeroDivisionError), subscribed(folder) as pubsub:
        assert messages(pubsub, 2) == numbers(1, 2)
        raise ZeroDivisionError
    with subscribed(folder) as pubsub:
        assert messages(pubsub, 2) == numbers(2, 3)


@pytest.mark.parametrize(("end", "next_one"), [("", 3), ("1 / 0", 2), ("os._exit(0)", 2)], ids=["end", "error", "cut"])
def test_a_program_that_closes_nothing_has_taken_what_it_was_handed_if_it_ends_well(
    folder: Path, publisher: rlite_pubsub.Redis, end: str, next_one: int
) -> None:
    make(folder)
    pipelined(publisher, 1, 4)
    with OtherProcess(folder, READER, f"next_message(), next_message()\n{end}\n", quiet=True) as reader:
        assert reader.hear() == "ready"
        reader.end()
    with subscribed(folder) as pubsub:
        assert messages(pubsub, 1) == numbers(next_one, next_one)


def test_a_thread_that_handles_a_message_when_the_interpreter_ends_has_not_delivered_it(
    folder: Path, publisher: rlite_pubsub.Redis
) -> None:
    make(folder)
    pipelined(publisher, 1, 2)
    source = """
    import threading
    handling = threading.Event()
    def handle():
        next_message()
        handling.set()
        time.sleep(PATIENCE_S)
    threading.Thread(target=handle, daemon=True).start()
    handling.wait(PATIENCE_S)
    """
    with OtherProcess(folder, READER, source) as reader:
        assert reader.end() == 0
    with subscribed(folder) as pubsub:
        assert messages(pubsub, 2) == numbers(1, 2)


def test_a_newer_pubsub_of_this_process_takes_over_and_the_older_is_told(
    folder: Path, publisher: rlite_pubsub.Redis, settled_at_once: None
) -> None:
    with subscribed(folder) as older, subscribed(folder) as newer:
        with pytest.raises(TakenOver, match="taken over by a newer connection"):
            while True:
                older.get_message(timeout=PATIENCE_S)
        publisher.publish("news", 1)
        assert messages(newer, 1) == [b"1"]
    with subscribed(folder) as older:
        pipelined(publisher, 1, 5)
        assert messages(older, 2) == numbers(1, 2)
        with subscribed(folder) as newer:
            assert messages(newer, 4) == numbers(2, 5)  # 2 was in hand


def test_another_program_takes_over_and_is_taken_over_from(folder: Path, publisher: rlite_pubsub.Redis) -> None:
    source = """
    try:
        while True: say(next_message())
    except Exception as failure:
        say(type(failure).__name__)
    """
    with OtherProcess(folder, READER, source) as reader:
        assert reader.hear() == "ready"
        publisher.publish("news", 1)
        assert reader.hear() == "1"
        until(lambda: not info(publisher)[b"backlog_messages"], "its coming back")
        with subscribed(folder) as pubsub:
            assert reader.hear() == "TakenOver"
            publisher.publish("news", 2)
            assert messages(pubsub, 1) == [b"2"]
            until(lambda: pubsub.get_message() is None and not info(publisher)[b"backlog_messages"], "an empty mailbox")
            with OtherProcess(folder, READER, source) as newer:
                assert newer.hear() == "ready"
                with pytest.raises(TakenOver):
                    while True:
                        pubsub.get_message(timeout=PATIENCE_S)
                publisher.publish("news", 3)
                assert newer.hear() == "3"


def test_it_is_told_so_though_there_is_more_in_its_hands_than_it_has_read(
    folder: Path, publisher: rlite_pubsub.Redis, settled_at_once: None
) -> None:
    make(folder)
    pipelined(publisher, 1, 5000)
    with subscribed(folder) as pubsub:
        assert messages(pubsub, 1) == [b"1"]
        with OtherProcess(folder, READER, "say(next_message())") as newer:
            assert newer.hear() == "ready"
            with pytest.raises(TakenOver):
                messages(pubsub, 2)
            assert newer.hear() == "1"  # nobody has come back for more


def test_a_connection_to_a_server_takes_over_and_is_taken_over_from(
    folder: Path, tmp_path: Path, publisher: rlite_pubsub.Redis
) -> None:
    source = """
    for _ in range(2): say(next_message())
    try:
        say(next_message())
    except Exception as failure:
        say(type(failure).__name__)
    """
    with (
        server_on(folder, tmp_path) as server,
        OtherProcess(folder, READER, source) as reader,
        redis.Redis(port=server.port, client_name="durable:d", retry=None) as remote,
    ):
        assert reader.hear() == "ready"
        remote.publish("news", 1)
        publisher.publish("news", 2)
        assert [reader.hear(), reader.hear()] == ["1", "2"]
        until(lambda: not info(publisher)[b"backlog_messages"], "its coming back")
        with remote.pubsub() as pubsub:
            pubsub.subscribe("news")
            assert reader.hear() == "TakenOver"
            publisher.publish("news", 3)
            remote.publish("news", 4)
            assert messages(pubsub, 2) == numbers(3, 4)
            until(lambda: not info(remote)[b"backlog_messages"], "an empty mailbox")
            with subscribed(folder) as newer:
                with pytest.raises(ConnectionError):
                    pubsub.connection.read_response(timeout=PATIENCE_S)
                remote.publish("news", 5)
                assert messages(newer, 1) == [b"5"]


@pytest.mark.parametrize("command", ["SUBSCRIBER.DETACH", "SUBSCRIBER.DELETE"])
def test_one_that_is_detached_or_deleted_by_name_is_told(
    folder: Path, publisher: rlite_pubsub.Redis, command: str
) -> None:
    with subscribed(folder) as pubsub:
        assert publisher.execute_command(command, "d") == 1
        with pytest.raises(TakenOver, match=command):
            while True:
                pubsub.get_message(timeout=PATIENCE_S)


def test_detached_by_itself_it_goes_on_without_what_it_was_not_handed(
    folder: Path, publisher: rlite_pubsub.Redis
) -> None:
    make(folder)
    pipelined(publisher, 1, 5)
    with subscribed(folder) as pubsub:
        assert messages(pubsub, 2) == numbers(1, 2)
        pubsub.execute_command("SUBSCRIBER.DETACH")
        assert pubsub.parse_response() == 1
        assert publisher.publish("news", 6) == 1
        assert pubsub.get_message(timeout=0.01) is None
    with subscribed(folder) as pubsub:
        assert messages(pubsub, 4) == numbers(3, 6)


def test_beyond_its_limit_the_oldest_are_dropped_and_a_gap_says_so(
    folder: Path, publisher: rlite_pubsub.Redis, protocol: int
) -> None:
    make(folder)
    with rlite_pubsub.Redis(folder) as client, client.pubsub() as pubsub:
        pubsub.execute_command("SUBSCRIBER.ATTACH", "d", "MAXLEN", 10)
        pubsub.parse_response()
    for number in range(1, 31):
        assert publisher.publish("news", number) == 1
    with subscribed(folder, protocol=protocol) as pubsub:
        pubsub.get_message(timeout=PATIENCE_S)
        gap = pubsub.parse_response(block=False, timeout=PATIENCE_S)
        assert [gap[0], gap[1], gap[2]] == [b"gap", b"news", 20]
        assert messages(pubsub, 10) == numbers(21, 30)
    assert info(publisher)[b"dropped_messages"] == 20
    assert info(publisher)[b"lost_untold"] == 0


def test_a_limit_holds_for_one_that_is_attached_and_does_not_read(folder: Path, publisher: rlite_pubsub.Redis) -> None:
    with rlite_pubsub.Redis(folder) as client, client.pubsub() as pubsub:
        pubsub.execute_command("SUBSCRIBER.ATTACH", "d", "MAXBYTES", 1_000_000)
        pubsub.parse_response()
        pubsub.subscribe("news")
        payload = b"x" * 10_000
        for number in range(1000):
            publisher.publish("news", b"%d " % number + payload)
        found, lost = [], 0
        while not found or found[-1] != 999:
            message = pubsub.parse_response(block=False, timeout=PATIENCE_S)
            if message[0] == b"gap":
                lost += message[2]
            elif message[0] == b"message":
                found.append(int(message[2].partition(b" ")[0]))
    assert sorted(found) == found
    assert len(found) * len(payload) < 1_500_000
    assert len(found) + lost == 1000


def test_one_that_is_away_for_longer_than_its_ttl_expires_though_there_is_no_server(
    folder: Path, publisher: rlite_pubsub.Redis
) -> None:
    with rlite_pubsub.Redis(folder) as client, client.pubsub() as pubsub:
        pubsub.execute_command("SUBSCRIBER.ATTACH", "d", "TTL", 1)
        pubsub.parse_response()
        pubsub.subscribe("news")
        pubsub.get_message(timeout=PATIENCE_S)
    publisher.publish("news", 1)
    until(lambda: publisher.execute_command("PUBSUB", "NUMSUB", "news") == [b"news", 0], "its expiry")


def test_the_store_holds_nothing_of_what_has_been_delivered(folder: Path, publisher: rlite_pubsub.Redis) -> None:
    with subscribed(folder) as pubsub:
        for _ in range(5):
            pipelined(publisher, 1, 1000)
            assert messages(pubsub, 1000) == numbers(1, 1000)
        publisher.publish("news", "last")
        messages(pubsub, 1)
    publisher.execute_command("SUBSCRIBER.DELETE", "d")
    assert publisher._host is not None
    left = publisher._host.store.data.read(lambda txn: [key for key, _ in txn.cursor() if key[:1] in b"bmgdu"])
    assert left == []
