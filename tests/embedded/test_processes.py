"""Several processes on one store, servers among them, with nothing between them."""

from __future__ import annotations

import asyncio
import random
import signal
import threading
import time
from pathlib import Path

import pytest
import redis
from other_process import OtherProcess
from patience import PATIENCE_S, until
from reading import confirmations, messages

import rlite_pubsub
from rlite_pubsub.pubsub.post import AWAKE_NS, RING_AGAIN_NS

READER = """
client = rlite_pubsub.Redis(folder)
pubsub = client.pubsub()
pubsub.subscribe("news")
pubsub.psubscribe("n?ws")
pubsub.get_message(timeout=PATIENCE_S), pubsub.get_message(timeout=PATIENCE_S)
say("ready")
while True:
    message = pubsub.get_message(timeout=PATIENCE_S)
    say(message["type"], message["data"].decode())
    if message["type"] == "pmessage" and message["data"] == b"last":
        break
pubsub.close()
client.close()
"""


def test_a_message_reaches_another_process(client: rlite_pubsub.Redis, folder: Path) -> None:
    with OtherProcess(folder, READER) as reader:
        assert reader.hear() == "ready"
        assert client.publish("news", "hello") == 2
        assert [reader.hear(), reader.hear()] == ["message hello", "pmessage hello"]
        assert client.pubsub_channels() == [b"news"]
        assert client.pubsub_numsub("news") == [(b"news", 1)]
        assert client.pubsub_numpat() == 1
        client.publish("news", "last")
        assert reader.end() == 0
    assert client.publish("news", "x") == 0


def test_a_pipeline_and_a_transaction_reach_another_process_in_order(client: rlite_pubsub.Redis, folder: Path) -> None:
    with OtherProcess(folder, READER) as reader:
        assert reader.hear() == "ready"
        with client.pipeline(transaction=False) as pipe:
            assert pipe.publish("news", 1).publish("news", 2).execute() == [2, 2]
        with client.pipeline() as pipe:
            assert pipe.publish("news", 3).publish("news", 4).execute() == [2, 2]
        heard = [reader.hear() for _ in range(8)]
        assert client.info("commandstats")["cmdstat_publish"]["calls"] == 4
        assert heard == [f"{kind} {number}" for number in range(1, 5) for kind in ("message", "pmessage")]


def test_a_pipeline_is_one_commit_and_one_ring_for_each_other_process(client: rlite_pubsub.Redis, folder: Path) -> None:
    with OtherProcess(folder, READER) as reader:
        assert reader.hear() == "ready"
        client.publish("news", "first")
        assert client._host is not None
        post = client._host.membership.post
        rung, sent = post.rung, post.sent
        with client.pipeline(transaction=False) as pipe:
            for number in range(100):
                pipe.publish("news", number)
            assert pipe.execute() == [2] * 100
        assert post.sent == sent + 100
        assert post.rung - rung <= 1  # none where the reader is busy with what it was rung for


def test_a_reader_that_has_not_emptied_its_mailbox_is_not_rung_for_each_message(
    client: rlite_pubsub.Redis, folder: Path
) -> None:
    with OtherProcess(folder, READER) as reader:
        assert reader.hear() == "ready"
        client.publish("news", "first")
        assert (reader.hear(), reader.hear()) == ("message first", "pmessage first")
        assert client._host is not None
        post = client._host.membership.post
        reader.send_signal(signal.SIGSTOP)
        rung, started = post.rung, time.monotonic()
        for number in range(1000):
            client.publish("news", number)
        passed_ns = (time.monotonic() - started) * 1e9
        assert post.rung - rung <= 2 + passed_ns / RING_AGAIN_NS
        reader.send_signal(signal.SIGCONT)
        heard = [reader.hear() for _ in range(2000)]
        assert heard == [f"{kind} {number}" for number in range(1000) for kind in ("message", "pmessage")]


def test_a_reader_in_this_process_and_one_in_another_get_the_same(client: rlite_pubsub.Redis, folder: Path) -> None:
    with client.pubsub() as pubsub, OtherProcess(folder, READER) as reader:
        pubsub.subscribe("news")
        assert reader.hear() == "ready"
        for number in range(100):
            assert client.publish("news", number) == 3
        assert messages(pubsub, 100) == [b"%d" % number for number in range(100)]
        assert [reader.hear() for _ in range(200)][-2:] == ["message 99", "pmessage 99"]


def test_what_another_process_publishes_is_polled_waited_for_and_awaited(
    client: rlite_pubsub.Redis, folder: Path
) -> None:
    source = """
    client = rlite_pubsub.Redis(folder)
    for number in range(1000):
        client.publish("news", number)
    client.close()
    """
    expected = [b"%d" % number for number in range(1000)]

    async def awaited() -> list[bytes]:
        async with rlite_pubsub.asyncio.Redis(folder) as aclient, aclient.pubsub() as apubsub:
            await apubsub.subscribe("news")
            await apubsub.get_message(timeout=PATIENCE_S)
            publisher = OtherProcess(folder, source)
            found = []
            with publisher:
                while len(found) < 1000:
                    found.append((await apubsub.get_message(timeout=PATIENCE_S))["data"])
            return found

    with client.pubsub() as waiting, client.pubsub() as polling:
        waiting.subscribe("news")
        polling.subscribe("news")
        assert asyncio.run(awaited()) == expected
        assert messages(waiting, 1000) == expected
        polled: list[bytes] = []

        def has_polled_all() -> bool:
            while (message := polling.get_message()) is not None:
                if message["type"] == "message":
                    polled.append(message["data"])
            return len(polled) >= 1000

        until(has_polled_all, "all messages")
        assert polled == expected


@pytest.mark.parametrize("embedded_publishes", [True, False], ids=["embedded publishes", "server publishes"])
def test_a_server_on_the_same_folder_is_one_space_with_us(folder: Path, embedded_publishes: bool) -> None:
    with rlite_pubsub.Server(dir=str(folder)) as server:
        remote: redis.Redis = redis.Redis(port=server.port)
        embedded = rlite_pubsub.Redis(folder)
        publisher, reader = (embedded, remote) if embedded_publishes else (remote, embedded)
        with publisher, reader, reader.pubsub() as pubsub:
            pubsub.subscribe("news")
            confirmations(pubsub, 1)
            for number in range(200):
                assert publisher.publish("news", number) == 1
            assert messages(pubsub, 200) == [b"%d" % number for number in range(200)]
            assert publisher.pubsub_channels() == [b"news"]


def test_a_killed_reader_is_cleaned_up_after(client: rlite_pubsub.Redis, folder: Path) -> None:
    with OtherProcess(folder, READER) as reader:
        assert reader.hear() == "ready"
        reader.kill()
    client.publish("news", "to the dead")
    assert client.publish("news", "x") == 0
    assert list((folder / "subscribers").iterdir()) == []


def test_a_killed_reader_is_cleaned_up_after_by_whoever_comes_next(folder: Path) -> None:
    with OtherProcess(folder, READER) as reader:
        assert reader.hear() == "ready"
        reader.kill()
    with rlite_pubsub.Redis(folder) as client:
        assert client.publish("news", "x") == 0
        assert list((folder / "subscribers").iterdir()) == []


def test_a_process_that_only_publishes_leaves_no_trace_in_the_folder(client: rlite_pubsub.Redis, folder: Path) -> None:
    client.publish("news", "x")
    client.ping()
    assert list((folder / "subscribers").iterdir()) == []


def test_a_program_that_ends_without_closing_anything_leaves_nothing(folder: Path) -> None:
    source = """
    pubsub = rlite_pubsub.Redis(folder).pubsub()
    pubsub.subscribe(news=print)
    pubsub.run_in_thread(daemon=True, sleep_time=20)
    """
    with OtherProcess(folder, source) as reader:
        assert reader.end() == 0
    assert list((folder / "subscribers").iterdir()) == []


def test_a_doorbell_deleted_by_hand_delays_a_message_and_loses_none(client: rlite_pubsub.Redis, folder: Path) -> None:
    with OtherProcess(folder, READER) as reader:
        assert reader.hear() == "ready"
        for bell in (folder / "subscribers").glob("*.fifo"):
            bell.unlink()
        client.publish("news", "unrung")
        assert reader.hear() == "message unrung"


def test_two_forked_workers_reach_each_other(folder: Path) -> None:
    source = """
    import multiprocessing
    client = rlite_pubsub.Redis(folder)
    client.ping()
    context = multiprocessing.get_context("fork")
    subscribed = context.Event()
    def read():
        with client.pubsub() as pubsub:
            pubsub.subscribe("news")
            pubsub.get_message(timeout=PATIENCE_S)
            subscribed.set()
            say(pubsub.get_message(timeout=PATIENCE_S)["data"].decode())
    def publish():
        subscribed.wait(PATIENCE_S)
        say(client.publish("news", "from a sibling"))
    workers = [context.Process(target=work) for work in (read, publish)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    """
    with OtherProcess(folder, source) as parent:
        assert {parent.hear(), parent.hear()} == {"1", "from a sibling"}
        assert parent.end() == 0


def test_a_publish_alone_does_not_import_what_only_sessions_need(folder: Path) -> None:
    source = """
    rlite_pubsub.Redis(folder).publish("news", "x")
    say(*[name for name in sys.modules if name.startswith(("rlite_pubsub.commands", "rlite_pubsub.server"))])
    """
    with OtherProcess(folder, source) as publisher:
        assert publisher.hear() == ""
        assert publisher.end() == 0


ECHO = """
import rlite_pubsub.embedded.host as host
host.BOUND_SECONDS = 3600.0
client = rlite_pubsub.Redis(folder)
pubsub = client.pubsub()
pubsub.subscribe("there")
pubsub.get_message(timeout=20)
say("ready")
while (message := pubsub.get_message(timeout=20)) is not None and message["data"] != b"end":
    client.publish("back", message["data"])
say("ended" if message else "lost")
"""


@pytest.mark.usefixtures("no_second_look")
def test_no_wake_up_is_lost_whenever_the_next_message_comes(client: rlite_pubsub.Redis, folder: Path) -> None:
    """Around the moment at which a reader that was awake goes to sleep, on either side."""
    pauses = random.Random(11)
    with OtherProcess(folder, ECHO) as echo, client.pubsub() as pubsub:
        pubsub.subscribe("back")
        assert confirmations(pubsub, 1) == [("subscribe", b"back", 1)]
        assert echo.hear() == "ready"
        for number in range(1500):
            burst = [b"%d-%d" % (number, part) for part in range(pauses.choice((1, 1, 3)))]
            for text in burst:
                assert client.publish("there", text) == 1
            assert messages(pubsub, len(burst)) == burst
            go_on_at = time.perf_counter() + pauses.random() * 3 * AWAKE_NS / 1e9
            while time.perf_counter() < go_on_at:
                pass
        client.publish("there", "end")
        assert echo.hear() == "ended"


STREAM_READER = """
client = rlite_pubsub.Redis(folder)
pubsub = client.pubsub()
pubsub.subscribe("news")
pubsub.get_message(timeout=20)
say("ready")
from rlite_pubsub.embedded.host import Host
post = Host.open(folder).membership.post
told = False
while True:
    pubsub.get_message(timeout=20)
    if post.is_awake and not told:
        told = True
        say("awake")
"""


def test_a_reader_that_is_killed_while_it_is_awake_is_found_dead(client: rlite_pubsub.Redis, folder: Path) -> None:
    with OtherProcess(folder, STREAM_READER) as reader:
        assert reader.hear() == "ready"
        stream = threading.Thread(target=reader.hear)
        stream.start()
        deadline = time.monotonic() + PATIENCE_S
        while stream.is_alive():
            client.publish("news", "x")
            assert time.monotonic() < deadline, "it never stayed awake"
        stream.join()
        reader.kill()
        while client.publish("news", "x"):
            assert time.monotonic() < deadline + PATIENCE_S, "it was never found dead"
    assert list((folder / "subscribers").iterdir()) == []
