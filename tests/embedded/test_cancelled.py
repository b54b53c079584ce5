"""Whatever is cancelled, interrupted or over its time: a connection is whole or closed, every reply belongs to its
command, and what was popped is delivered or is where it was."""

from __future__ import annotations

import asyncio
import random
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import redis
from other_process import OtherProcess
from patience import PATIENCE_S, until
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry
from stopped_writer import StoppedWriter

import rlite_pubsub
from rlite_pubsub.asyncio import Redis
from rlite_pubsub.embedded.polled import PolledConnection

PRODUCED = 400
"""Of each kind, by another process that is often in the middle of a write."""
PRODUCER = f"""
client = rlite_pubsub.Redis(folder)
busy = "redis.call('INCR', 'n') local x = 0 for i = 1, 60000 do x = x + i end return x"
for number in range({PRODUCED}):
    client.rpush("list", f"list {{number}}")
    client.rpush("other list", f"other list {{number}}")
    client.zadd("scored", {{f"scored {{number}}": number}})
    client.set("text", f"text {{number}}")
    client.xadd("log", {{"n": f"log {{number}}"}})
    if number % 3 == 0:
        client.eval(busy, 0)
say("done")
sys.stdin.readline()
"""
LISTS = ("list", "other list")


async def settled(wanted: Awaitable[Any], task_is_ready: Callable[[], None]) -> Any:
    """The end of a read that begins to wait, becomes ready, and is cancelled before it goes on."""
    task = asyncio.ensure_future(wanted)
    for _ in range(3):
        await asyncio.sleep(0)
    task_is_ready()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("fill", "read", "rest"),
    [
        ("rpush k a b", "blpop k 0", ("lrange k 0 -1", [b"a", b"b"])),
        ("rpush k a b", "brpop k 0", ("lrange k 0 -1", [b"a", b"b"])),
        ("rpush k a b c", "blmpop 0 1 k LEFT COUNT 2", ("lrange k 0 -1", [b"a", b"b", b"c"])),
        ("rpush k a b c", "blmpop 0 1 k RIGHT COUNT 2", ("lrange k 0 -1", [b"a", b"b", b"c"])),
        ("zadd k 1.5 a 2 b", "bzpopmin k 0", ("zscore k a", 1.5)),
        ("zadd k 1.5 a inf b", "bzpopmax k 0", ("zscore k b", float("inf"))),
        ("zadd k 1.5 a 2 b", "bzmpop 0 1 k MIN COUNT 2", ("zcard k", 2)),
    ],
)
async def test_what_a_cancelled_wait_was_served_goes_back(
    folder: Path, protocol: int, fill: str, read: str, rest: tuple[str, Any]
) -> None:
    async with Redis(folder, protocol=protocol) as waiting:
        with rlite_pubsub.Redis(folder) as other:
            await waiting.ping()
            await settled(waiting.execute_command(*read.split()), lambda: other.execute_command(*fill.split()))
            assert other.execute_command(*rest[0].split()) == rest[1]
            assert await waiting.ping() is True


async def test_what_goes_back_is_served_to_the_next_in_line(folder: Path) -> None:
    async with Redis(folder) as waiting:
        with rlite_pubsub.Redis(folder) as other:
            first = asyncio.ensure_future(waiting.blpop("k", 0))
            await asyncio.sleep(0.01)
            second = asyncio.ensure_future(waiting.blpop("k", PATIENCE_S))
            await asyncio.sleep(0.01)
            other.rpush("k", "a")
            first.cancel()
            assert await second == (b"k", b"a")


async def test_a_key_that_was_emptied_has_its_time_of_expiry_again(folder: Path) -> None:
    async with Redis(folder) as waiting:
        with rlite_pubsub.Redis(folder) as other:

            def fill() -> None:
                with other.pipeline(transaction=True) as pipe:
                    pipe.rpush("k", "a").expire("k", 1000).execute()

            await settled(waiting.blpop("k", 0), fill)
            assert other.lrange("k", 0, -1) == [b"a"]
            assert 900 < other.ttl("k") <= 1000


async def test_what_an_earlier_part_of_a_cancelled_pipeline_has_popped_goes_back(folder: Path) -> None:
    async with Redis(folder) as waiting:
        with rlite_pubsub.Redis(folder) as other:
            other.rpush("k", "a", "b", "c")
            other.sadd("s", "m")
            other.set("text", "value", px=1_000_000)
            pipe = waiting.pipeline(transaction=False)
            pipe.lpop("k", 2)
            pipe.spop("s")
            pipe.getdel("text")
            pipe.blpop("none", 0)
            await settled(pipe.execute(), lambda: None)
            assert other.lrange("k", 0, -1) == [b"a", b"b", b"c"]
            assert other.smembers("s") == {b"m"}
            assert (other.get("text"), other.ttl("text") > 900) == (b"value", True)


@pytest.mark.parametrize("ack", [(), ("ACK",)])
async def test_what_a_cancelled_wait_has_popped_of_a_queue_is_popped_again(folder: Path, ack: tuple[str, ...]) -> None:
    async with Redis(folder) as waiting:
        with rlite_pubsub.Redis(folder) as other:
            other.execute_command("QUEUE.CREATE", "q")
            other.execute_command("QUEUE.SUBSCRIBER", "q", "s")
            wanted = waiting.execute_command("QUEUE.POP", "q", "s", "BLOCK", 0, *ack)
            await settled(wanted, lambda: other.execute_command("QUEUE.PUSH", "q", "a"))
            _, (_, value), deliveries = other.execute_command("QUEUE.POP", "q", "s", "ACK")
            assert (value, deliveries) == (b"a", 1)


async def test_what_was_delivered_does_not_come_back(folder: Path) -> None:
    with rlite_pubsub.Redis(folder) as other:
        other.rpush("k", "a", "b", "c", "d")
        async with Redis(folder) as client:
            assert await client.blpop("k", 1) == (b"k", b"a")
            assert await client.lpop("k") == b"b"
        with rlite_pubsub.Redis(folder) as client:
            assert client.blpop("k", 1) == (b"k", b"c")
            with client.pipeline(transaction=False) as pipe:
                assert pipe.lpop("k").execute() == [b"d"]
        assert other.llen("k") == 0


SCRIPT = "return redis.call('LPOP', KEYS[1])"


@pytest.mark.parametrize("popped", [("LPOP", "list"), ("EVAL", SCRIPT, 1, "list"), ()], ids=["lpop", "script", "multi"])
async def test_a_command_that_is_cancelled_behind_a_writer_leaves_no_reply_to_the_next(
    folder: Path, popped: tuple[Any, ...]
) -> None:
    async with Redis(folder) as client:
        await client.rpush("list", "a")
        await client.set("text", "value")
        with StoppedWriter(folder) as writer:
            if popped:
                task = asyncio.ensure_future(client.execute_command(*popped))
            else:
                task = asyncio.ensure_future(client.pipeline().lpop("list").execute())
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            after = asyncio.ensure_future(client.set("other", "thing"))
            writer.go_on()
            assert await after is True
        assert await client.get("text") == b"value"
        assert await client.lrange("list", 0, -1) == [b"a"]


async def test_what_goes_back_waits_for_a_writer_as_any_request(folder: Path) -> None:
    async with Redis(folder) as client:
        with rlite_pubsub.Redis(folder) as other, StoppedWriter(folder) as writer:
            writer.go_on()
            task = asyncio.ensure_future(client.blpop("list", 0))
            await asyncio.sleep(0.01)
            other.rpush("list", "a")
            writer.stop()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert other.llen("list") == 0
            await client.aclose()
            writer.go_on()
            until(lambda: other.llen("list") == 1, "what was popped")


async def _read(client: Redis, kind: str, chance: random.Random) -> list[str]:
    """One read of some kind; what it was given."""
    if kind == "list":
        popped = await client.blpop([kind], 0)
        return [popped[1].decode()]
    if kind == "other list":
        if chance.random() < 0.5:
            popped = await client.blmpop(0, 1, kind, direction="RIGHT", count=2)
            return [one.decode() for one in popped[1]]
        one = await client.lpop(kind)
        return [] if one is None else [one.decode()]
    if kind == "scored":
        popped = await client.bzpopmin([kind], 0)
        return [popped[1].decode()]
    if kind == "log":
        reply = await client.xreadgroup("group", "consumer", {"log": ">"}, count=1, block=0)
        reply = list(reply.items()) if isinstance(reply, dict) else reply
        entries = reply[0][1] if isinstance(reply[0][1][0], tuple) else reply[0][1][0]
        return [fields[b"n"].decode() for _, fields in entries]
    if kind == "number":
        assert (await client.incr("number")) > 0
        return []
    value = await client.get("text")
    return [] if value is None else [value.decode()]


@pytest.mark.parametrize("seed", range(2))
async def test_reads_cancelled_at_any_moment_lose_nothing_while_another_process_writes(
    folder: Path, protocol: int, seed: int
) -> None:
    chance = random.Random(seed)
    got: dict[str, list[str]] = {"list": [], "other list": [], "scored": [], "text": [], "log": []}
    cancelled = 0
    done = threading.Event()
    async with Redis(folder, protocol=protocol) as client:
        await client.xgroup_create("log", "group", mkstream=True)
        with OtherProcess(folder, PRODUCER) as producer:

            async def read_on() -> None:
                nonlocal cancelled
                while not done.is_set():
                    kind = chance.choice([*got, "number"])
                    try:
                        found = await asyncio.wait_for(_read(client, kind, chance), chance.random() * 0.004)
                    except TimeoutError:
                        cancelled += 1
                        continue
                    assert all(one.startswith(kind + " ") for one in found), (kind, found)
                    got.get(kind, []).extend(found)

            def hear() -> None:
                try:
                    assert producer.hear() == "done"
                finally:
                    done.set()

            hearing = threading.Thread(target=hear)
            hearing.start()
            await asyncio.gather(*(read_on() for _ in range(5)))
            hearing.join()
        left = {name: [one.decode() for one in await client.lrange(name, 0, -1)] for name in LISTS}
        left["scored"] = [one.decode() for one in await client.zrange("scored", 0, -1)]
        pending = (await client.xpending("log", "group"))["pending"]
        unread = await client.xreadgroup("group", "consumer", {"log": ">"})
    assert cancelled > 50
    for kind, rest in left.items():
        assert sorted(got[kind] + rest) == sorted(f"{kind} {number}" for number in range(PRODUCED)), kind
    assert len(got["log"]) == len(set(got["log"])) <= pending <= PRODUCED
    if protocol == 2:
        assert pending + sum(len(entries) for _, entries in unread) == PRODUCED


async def test_a_socket_timeout_shorter_than_the_wait_loses_nothing(folder: Path, protocol: int) -> None:
    got: list[int] = []
    async with Redis(folder, protocol=protocol, socket_timeout=0.001, retry=AsyncRetry(NoBackoff(), 0)) as client:
        with rlite_pubsub.Redis(folder) as other:
            task = asyncio.current_task()
            assert task is not None
            for number in range(300):
                asyncio.get_running_loop().call_later(0.001 * (number % 5) / 4, other.rpush, "k", number)
                try:
                    popped = await client.blpop("k", 5)
                except redis.TimeoutError:
                    continue
                got.append(int(popped[1]))
            await asyncio.sleep(0.01)
            assert sorted(got + [int(one) for one in other.lrange("k", 0, -1)]) == list(range(300))


def test_a_socket_timeout_of_a_thread_loses_nothing(folder: Path, protocol: int) -> None:
    got: list[int] = []
    options: dict[str, Any] = {"protocol": protocol, "socket_timeout": 0.002, "retry": Retry(NoBackoff(), 0)}
    with rlite_pubsub.Redis(folder, **options) as client, rlite_pubsub.Redis(folder) as other:

        def push() -> None:
            for number in range(500):
                other.rpush("k", number)
                time.sleep(0.0005 * (number % 5))

        pushing = threading.Thread(target=push)
        pushing.start()
        while pushing.is_alive():
            try:
                popped = client.blpop("k", 5)
            except redis.TimeoutError:
                continue
            got.append(int(popped[1]))
        pushing.join()
        assert sorted(got + [int(one) for one in other.lrange("k", 0, -1)]) == list(range(500))


class Interruption(BaseException):
    """As KeyboardInterrupt is."""


@pytest.fixture
def alarm() -> Iterator[Callable[[float, Callable[[], bool]], None]]:
    """Raises an Interruption in the main thread, so many seconds later, if it may then; 0: not at all."""
    allowed: list[Callable[[], bool]] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        if allowed and allowed[0]():
            raise Interruption

    def set_alarm(seconds: float, may: Callable[[], bool] = bool) -> None:
        allowed[:] = [may]
        signal.setitimer(signal.ITIMER_REAL, seconds)

    before = signal.signal(signal.SIGALRM, interrupt)
    yield set_alarm
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("seed", range(2))
def test_a_signal_handler_that_raises_in_a_read_loses_nothing(
    folder: Path, alarm: Callable[..., None], seed: int
) -> None:
    """In a read: until redis-py has the reply. What the program does with it is its own."""
    chance = random.Random(seed)
    got: list[int] = []
    interruptions = 0
    with rlite_pubsub.Redis(folder) as client, OtherProcess(
        folder,
        """
        import time
        client = rlite_pubsub.Redis(folder)
        for number in range(1500):
            client.rpush("k", number)
            time.sleep(0.001)  # so that it is waited for
            if number % 50 == 0:
                client.eval("redis.call('INCR', 'n') for i = 1, 60000 do end", 0)
        say("done")
        sys.stdin.readline()
        """,
    ) as producer:
        client.rpush("other", 1, 2)  # what is imported at its first use must not be interrupted
        assert client.lpop("other") and client.blpop("other", 1)
        with pytest.raises(redis.ResponseError):
            client.execute_command("LPOP")
        done = threading.Event()
        hearing = threading.Thread(target=lambda: (producer.hear(), done.set()))
        hearing.start()
        while not done.is_set():
            client.ping()  # redis-py does not survive an interruption while it connects
            [connection] = client.connection_pool._available_connections
            line = connection._sock
            try:
                try:
                    alarm(chance.uniform(0.0001, 0.004), lambda line=line: line.is_answering)
                    popped = client.lpop("k") if chance.random() < 0.5 else client.blpop("k", 0)
                finally:
                    alarm(0)
            except Interruption:
                interruptions += 1
                continue
            except (redis.ResponseError, SystemError):  # refused; or Python's, of an interrupted first import
                continue
            if popped is not None:
                got.append(int(popped[1] if isinstance(popped, tuple) else popped))
        hearing.join()
        left = [int(one) for one in client.lrange("k", 0, -1)]
    assert interruptions
    assert sorted(got + left) == list(range(1500))


def test_a_connection_with_an_unanswered_request_is_not_used_again(folder: Path) -> None:
    with rlite_pubsub.Redis(folder) as client, StoppedWriter(folder) as writer:
        connection = client.connection_pool.get_connection()
        connection.send_command("INCR", "n")  # and its program is interrupted before it reads the reply
        client.connection_pool.release(connection)
        writer.go_on()
        assert client.get("nothing") is None
        assert client.ping() is True


def test_what_was_popped_for_a_thread_that_has_not_read_it_goes_back_at_exit(folder: Path) -> None:
    program = """
    import threading
    client = rlite_pubsub.Redis(folder)
    connection = client.connection_pool.get_connection()
    connection.send_command("BLPOP", "k", 0)
    rlite_pubsub.Redis(folder).rpush("k", "a")
    say("popped")
    """
    with OtherProcess(folder, program) as other:
        assert other.hear() == "popped"
        assert other.end() == 0
    with rlite_pubsub.Redis(folder) as client:
        assert client.lrange("k", 0, -1) == [b"a"]


def test_what_a_polled_connection_was_served_and_has_not_read_goes_back(folder: Path) -> None:
    connection = PolledConnection(folder)
    with rlite_pubsub.Redis(folder) as other:
        connection.connect()
        connection.send_command("BRPOP", "k", 0)
        other.rpush("k", "a")
        assert other.llen("k") == 0
        connection.disconnect()
        assert other.lrange("k", 0, -1) == [b"a"]


def test_what_can_not_go_back_is_named_in_the_log(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with rlite_pubsub.Redis(folder) as client, rlite_pubsub.Redis(folder) as other:
        connection = client.connection_pool.get_connection()
        connection.send_command("BLPOP", "k", 0)
        other.rpush("k", "a")
        other.set("k", "another thing")
        connection.disconnect()
        client.connection_pool.release(connection)
        assert other.get("k") == b"another thing"
    assert "can't be put back to k: WRONGTYPE" in caplog.text
