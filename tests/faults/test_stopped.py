"""Law 9: nobody waits for the stopped. Another process is stopped in the middle of a write transaction: kill -STOP.

What needs no commit goes on. What needs one waits, in order, and goes on when that process does, or dies; or it is
told, after `writer-patience`, whom it has waited for.
"""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis
from patience import PATIENCE_S, until
from peer import request
from server_process import Serve, ServerProcess
from stopped_writer import StoppedWriter

import rlite_pubsub
import rlite_pubsub.asyncio

SHORT = ("--writer-patience", "1")
LONG = ("--writer-patience", "200")
"""Longer than a test lasts: nobody is to be told."""
LIMIT = "pubsub 8mb 0 0"
BUSY = r"BUSY command not executed: process {} \(python.*\), which is T \(stopped\), has been writing to "


@pytest.fixture
def ask() -> Iterator[Any]:
    """Asks in another thread: its answer comes later, if it comes."""
    with ThreadPoolExecutor(20) as threads:
        yield threads.submit


def in_line(server: ServerProcess) -> int:
    with redis.Redis(port=server.port) as client:
        return int(client.info("subscribers")["writer_waiting_clients"])


def wait_in_line(server: ServerProcess, count: int) -> None:
    until(lambda: in_line(server) == count, f"{count} in line")


def test_what_needs_no_commit_goes_on(serve: Serve) -> None:
    server = serve(*LONG)
    client = redis.Redis(port=server.port)
    client.set("key", "value")
    client.set("short", "lived", px=1)
    subscriber = server.connect()
    subscriber.do("SUBSCRIBE", "news")
    with StoppedWriter(server.store_folder), StoppedWriter(server.store_folder, "live"):
        for number in range(20):
            assert client.ping()
            assert client.get("key") == b"value"
            assert client.get("short") is None  # it can't be removed, and is not shown
            assert client.publish("news", str(number)) == 1
            assert subscriber.reply() == [b"message", b"news", b"%d" % number]


def test_writes_wait_in_order_and_go_on_with_the_holder(serve: Serve, ask: Any) -> None:
    server = serve(*LONG)
    clients = [redis.Redis(port=server.port) for _ in range(5)]
    for client in clients:
        client.ping()
    with StoppedWriter(server.store_folder) as writer:
        replies: list[Future[int]] = []
        for number, client in enumerate(clients):
            replies.append(ask(client.rpush, "list", number))
            wait_in_line(server, number + 1)
        assert not any(reply.done() for reply in replies)
        writer.go_on()
        assert [reply.result(PATIENCE_S) for reply in replies] == [1, 2, 3, 4, 5]
    assert clients[0].lrange("list", 0, -1) == [b"%d" % number for number in range(5)]


def test_a_pipeline_waits_as_a_whole_and_in_its_order(serve: Serve) -> None:
    server = serve(*LONG)
    peer = server.connect()
    with StoppedWriter(server.store_folder) as writer:
        peer.send(request("PING"))
        peer.send(request("XADD", "topic", "1-1", "field", "value"))
        peer.send(request("XLEN", "topic"))
        peer.send(request("MULTI"))
        peer.send(request("GET", "key"))
        peer.send(request("INCR", "key"))
        peer.send(request("EXEC"))
        peer.send(request("GET", "key"))
        assert peer.reply() == b"PONG"
        wait_in_line(server, 1)
        writer.go_on()
        assert [peer.reply() for _ in range(7)] == [b"1-1", 1, b"OK", b"QUEUED", b"QUEUED", [None, 1], b"1"]


def test_what_is_blotted_out_of_a_request_is_there_when_it_goes_on(serve: Serve) -> None:
    server = serve(*LONG)
    with server.connect() as peer, server.connect() as user:
        with StoppedWriter(server.store_folder) as writer:
            peer.send(request("ACL", "SETUSER", "bob", "on", ">secret", "+ping"))
            wait_in_line(server, 1)
            writer.go_on()
            assert peer.reply() == b"OK"
        assert user.do("AUTH", "bob", "secret") == b"OK"
        assert user.do("PING") == b"PONG"


def test_all_go_on_at_once_when_the_holder_is_killed(serve: Serve, ask: Any) -> None:
    server = serve(*LONG)
    clients = [redis.Redis(port=server.port) for _ in range(10)]
    with StoppedWriter(server.store_folder) as writer:
        replies = [ask(client.incr, "count") for client in clients]
        wait_in_line(server, 10)
        writer.kill()
        assert sorted(reply.result(PATIENCE_S) for reply in replies) == list(range(1, 11))


def test_who_waits_too_long_is_told_for_whom_and_nothing_is_done(serve: Serve) -> None:
    server = serve(*SHORT)
    client = redis.Redis(port=server.port)
    client.set("key", "1")
    with StoppedWriter(server.store_folder) as writer:
        with pytest.raises(redis.ResponseError, match=BUSY.format(writer.pid) + r".*data.mdb for \d"):
            client.incr("key")
        transaction = client.pipeline()
        transaction.incr("key").get("key")
        with pytest.raises(redis.ResponseError, match=BUSY.format(writer.pid)):
            transaction.execute()
        with pytest.raises(redis.ResponseError, match=BUSY.format(writer.pid)):
            client.xadd("topic", {"field": "value"})
        until(lambda: f"process {writer.pid} " in server.log(), "a line in the log")
        told = client.info("subscribers")
        assert told["writer_of_data"]["pid"] == writer.pid
        assert told["writer_of_data"]["state"] == "T (stopped)"
        assert told["writer_refusals"] == 3
        writer.go_on()
        assert client.get("key") == b"1"
        assert client.incr("key") == 2
        assert not client.exists("topic")
        until(lambda: "data.mdb can be written again" in server.log(), "another")


def test_the_whole_of_a_pipeline_is_told_at_once(serve: Serve) -> None:
    """It has waited together."""
    server = serve(*SHORT)
    peer = server.connect()
    with StoppedWriter(server.store_folder):
        for number in range(50):
            peer.send(request("SET", f"key{number}", "value"))
            peer.send(request("PING"))
        for _ in range(50):
            reply = peer.reply()
            assert isinstance(reply, Exception) and str(reply).startswith("BUSY "), reply
            assert peer.reply() == b"PONG"


def test_a_subscription_waits_and_goes_on(serve: Serve) -> None:
    server = serve(*LONG)
    peer = server.connect()
    with StoppedWriter(server.store_folder, "live") as writer:
        peer.send(request("SUBSCRIBE", "news"))
        wait_in_line(server, 1)
        writer.go_on()
        assert peer.reply() == [b"subscribe", b"news", 1]
    assert server.connect().do("PUBLISH", "news", "hello") == 1
    assert peer.reply() == [b"message", b"news", b"hello"]


def test_a_subscription_that_waits_too_long_is_refused_and_not_there(serve: Serve) -> None:
    server = serve(*SHORT)
    peer = server.connect()
    with StoppedWriter(server.store_folder, "live") as writer:
        reply = peer.do("SUBSCRIBE", "news")
        assert isinstance(reply, Exception) and f"process {writer.pid} " in str(reply)
        assert peer.do("SET", "key", "value") == b"OK"  # it is no subscriber
        assert server.connect().do("PUBLISH", "news", "hello") == 0


def test_messages_to_another_process_wait_in_order(serve: Serve) -> None:
    here, there = serve(*LONG), serve(*LONG)
    subscriber = there.connect()
    subscriber.do("SUBSCRIBE", "news")
    publishers = [here.connect() for _ in range(3)]
    with StoppedWriter(here.store_folder, "live") as writer:
        for number, publisher in enumerate(publishers):
            for second in range(2):
                publisher.send(request("PUBLISH", "news", f"{number}.{second}"))
            wait_in_line(here, number + 1)
        assert here.connect().do("PING") == b"PONG"
        writer.go_on()
        for publisher in publishers:
            assert [publisher.reply(), publisher.reply()] == [1, 1]
    expected = [b"%d.%d" % (number, second) for number in range(3) for second in range(2)]
    assert [subscriber.reply()[2] for _ in expected] == expected


def test_a_message_to_another_process_that_waits_too_long_reaches_nobody(serve: Serve) -> None:
    here, there = serve(*SHORT), serve(*SHORT)
    peers = [server.connect() for server in (here, there)]
    for peer in peers:
        peer.do("SUBSCRIBE", "news")
    publisher = here.connect()
    with StoppedWriter(here.store_folder, "live"):
        reply = publisher.do("PUBLISH", "news", "lost")
        assert isinstance(reply, Exception) and str(reply).startswith("BUSY "), reply
    assert publisher.do("PUBLISH", "news", "hello") == 2
    for peer in peers:
        assert peer.reply() == [b"message", b"news", b"hello"]


def test_who_is_blocked_is_served_when_the_holder_goes_on(serve: Serve) -> None:
    """What is there for it has come from another process, and can't be taken yet."""
    server = serve(*LONG)
    peer = server.connect()
    peer.send(request("BLPOP", "list", "0"))
    until(lambda: redis.Redis(port=server.port).info("clients")["blocked_clients"] == 1, "who is blocked")
    with rlite_pubsub.Redis(str(server.store_folder)) as program, StoppedWriter(server.store_folder, "live") as stopped:
        stopped.go_on()
        program.rpush("list", "value")
        assert peer.reply() == [b"list", b"value"]


def test_a_server_does_not_start_on_a_store_that_cannot_be_written_and_says_why(serve: Serve, tmp_path: Path) -> None:
    server = serve()
    server.end()
    with StoppedWriter(server.store_folder, "live") as writer:
        second = serve(*SHORT, wait=False)
        assert second.exit_code() == 1
        assert f"process {writer.pid} " in second.log() + second.output()


def test_a_server_ends_while_another_process_holds_the_store(serve: Serve) -> None:
    server = serve(*LONG)
    peer = server.connect()
    with StoppedWriter(server.store_folder), StoppedWriter(server.store_folder, "live"):
        peer.send(request("SET", "key", "value"))
        wait_in_line(server, 1)
        assert server.end() == 0


def test_doctor_names_the_holder(serve: Serve) -> None:
    server = serve()
    with StoppedWriter(server.store_folder) as writer:
        command = [sys.executable, "-m", "rlite_pubsub", "doctor", "-s", str(server.store_folder)]
        said = subprocess.run(command, capture_output=True, text=True)
        assert said.returncode == 1
        assert f"process {writer.pid} (python" in said.stdout and "T (stopped)" in said.stdout


def test_a_program_waits_and_goes_on_and_its_other_threads_read(folder: Path, ask: Any) -> None:
    with rlite_pubsub.Redis(str(folder)) as program, rlite_pubsub.Redis(str(folder)) as reader:
        program.config_set("writer-patience", 200)
        program.set("key", "1")
        with StoppedWriter(folder) as writer:
            reply = ask(program.incr, "key")
            until(lambda: reader.info("subscribers")["writer_waiting_clients"] == 1, "who waits")
            assert reader.get("key") == b"1"
            writer.go_on()
            assert reply.result(PATIENCE_S) == 2


@pytest.mark.parametrize("work", ["command", "pipeline"])
def test_a_program_is_told_once_whatever_it_allows_a_server(folder: Path, work: str) -> None:
    """redis-py would give up before, and send it again, to the end of a new line."""
    with rlite_pubsub.Redis(str(folder), socket_timeout=0.1) as program:
        program.config_set("writer-patience", 1)
        with StoppedWriter(folder) as writer, pytest.raises(redis.ResponseError, match=BUSY.format(writer.pid)):
            if work == "command":
                program.rpush("list", "one")
            else:
                program.pipeline(transaction=False).rpush("list", "one").execute()
        assert program.llen("list") == 0


async def test_a_program_in_asyncio_is_told_once_whatever_it_allows_a_server(folder: Path) -> None:
    async with rlite_pubsub.asyncio.Redis(str(folder), socket_timeout=0.1) as program:
        await program.config_set("writer-patience", 1)
        with StoppedWriter(folder) as writer:
            with pytest.raises(redis.ResponseError, match=BUSY.format(writer.pid)):
                await program.rpush("list", "one")
        assert await program.llen("list") == 0


def test_a_program_is_told_after_the_same_time(folder: Path) -> None:
    with rlite_pubsub.Redis(str(folder)) as program:
        program.config_set("writer-patience", 1)
        program.set("key", "1")
        with StoppedWriter(folder) as writer:
            with pytest.raises(redis.ResponseError, match=BUSY.format(writer.pid)):
                program.incr("key")
            assert program.get("key") == b"1"


WRITER = """
import sys
import rlite_pubsub
import rlite_pubsub.asyncio
with rlite_pubsub.Redis(sys.argv[1]) as program:
    print("open", flush=True)
    while True:
        program.incr("count")
        program.xadd("topic", {"field": "value"}, maxlen=100)
        program.publish("news", "hello")
"""
TRIES = 10


def test_wherever_a_writing_program_is_stopped_the_server_answers(serve: Serve) -> None:
    """A program that writes all the time is stopped, goes on and is stopped again, and is killed in the end."""
    server = serve("--writer-patience", "0")
    client = redis.Redis(port=server.port)
    subscriber = client.pubsub()
    subscriber.subscribe("news")
    assert subscriber.get_message(timeout=PATIENCE_S)
    command = [sys.executable, "-c", WRITER, str(server.store_folder)]
    ours, refused = 0, 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None and program.stdout.readline() == "open\n"
            for _ in range(TRIES):
                time.sleep(random.uniform(0.01, 0.05))
                program.send_signal(signal.SIGSTOP)
                for _ in range(20):
                    assert client.ping()
                    client.get("count")
                    try:
                        client.incr("ours")
                        ours += 1
                    except redis.ResponseError as error:
                        assert str(error).startswith("BUSY "), error
                        assert f"process {program.pid} " in str(error)
                        refused += 1
                program.send_signal(signal.SIGCONT)
            program.send_signal(signal.SIGSTOP)
        finally:
            program.kill()
    assert ours + refused == 20 * TRIES
    until(lambda: _can_write(client), "a write")
    assert int(client.get("ours") or 0) == ours


def _can_write(client: redis.Redis) -> bool:
    try:
        client.set("key", "value")
    except redis.ResponseError:
        return False
    return True


async def test_a_program_s_event_loop_goes_on(folder: Path) -> None:
    async with rlite_pubsub.asyncio.Redis(str(folder)) as program, program.pubsub() as pubsub:
        await program.config_set("writer-patience", 200)
        await program.set("key", "1")
        with rlite_pubsub.Redis(str(folder)) as other:  # of the same process
            await pubsub.subscribe("news")
            with StoppedWriter(folder) as writer:
                replies = [asyncio.create_task(program.incr("key")) for _ in range(3)]
                while other.info("subscribers")["writer_waiting_clients"] < 3:
                    await asyncio.sleep(0.005)
                assert await program.get("key") == b"1"
                assert await program.publish("news", "hello") == 1
                writer.go_on()
                assert sorted(await asyncio.gather(*replies)) == [2, 3, 4]


async def test_a_program_s_message_to_another_process_waits_beside_its_loop(serve: Serve) -> None:
    server = serve()
    subscriber = server.connect()
    subscriber.do("SUBSCRIBE", "news")
    async with rlite_pubsub.asyncio.Redis(str(server.store_folder)) as program:
        await program.config_set("writer-patience", 200)
        assert await program.publish("news", "first") == 1
        with StoppedWriter(server.store_folder, "live") as writer:
            reply = asyncio.create_task(program.publish("news", "second"))
            while (await program.info("subscribers"))["writer_waiting_clients"] < 1:
                await asyncio.sleep(0.005)
            writer.go_on()
            assert await reply == 1
    assert [subscriber.reply()[2] for _ in range(2)] == [b"first", b"second"]


@pytest.mark.parametrize("policy", ["disconnect", "drop-oldest"])
def test_publishers_elsewhere_go_on_while_a_server_with_spilled_sessions_is_stopped(serve: Serve, policy: str) -> None:
    flags = ("--client-output-buffer-limit", LIMIT, "--slow-subscriber-policy", policy)
    stopped, other = serve(*flags), serve(*flags)
    slow = stopped.connect(receive_buffer_bytes=4096)
    slow.do("SUBSCRIBE", "news")
    publisher, asker = redis.Redis(port=other.port), redis.Redis(port=stopped.port)
    while not asker.info("subscribers")["spilled_sessions"]:
        publisher.publish("news", bytes(10_000))
    stopped.process.send_signal(signal.SIGSTOP)
    try:
        for _ in range(8000):
            publisher.publish("news", bytes(10_000))
        assert (other.store_folder / "live.mdb").stat().st_size < 32 << 20  # and not 80 MB
    finally:
        stopped.process.send_signal(signal.SIGCONT)
    assert asker.ping()


def test_what_a_server_does_by_itself_is_put_off_while_another_process_writes_and_no_commit_has_failed(
    serve: Serve,
) -> None:
    server = serve(*SHORT, "--enable-debug-command", "yes")
    with redis.Redis(port=server.port) as client:
        client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        client.set("short", "lived", px=1)
        with StoppedWriter(server.store_folder) as writer:
            client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "1")
            until(lambda: "writer_of_data" in client.info("everything"), "its expiry has met the writer")
            writer.go_on()
            until(lambda: client.info("stats")["expired_keys"] == 1, "it has expired")
    assert "Can't commit" not in server.log()
