"""Several threads publish, several read, and nothing is lost or out of order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import PATIENCE_S
from reading import confirmations, messages

import rlite_pubsub


def in_threads(*works: Callable[[], None]) -> None:
    """Run all at once; the first failure is raised."""
    failures: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S * 3)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def test_every_reader_gets_all_of_every_publisher_in_its_order(client: rlite_pubsub.Redis) -> None:
    publishers, readers, count = 3, 3, 2000
    pubsubs = [client.pubsub() for _ in range(readers)]
    for pubsub in pubsubs:
        pubsub.subscribe("news")
    found: list[list[bytes]] = [[] for _ in pubsubs]

    def publish(who: int) -> None:
        for number in range(count):
            assert client.publish("news", f"{who} {number}") == readers

    def read(at: int) -> None:
        found[at] = messages(pubsubs[at], publishers * count)

    in_threads(
        *[lambda who=who: publish(who) for who in range(publishers)],
        *[lambda at=at: read(at) for at in range(readers)],
    )
    for received in found:
        for who in range(publishers):
            mine = [message for message in received if message.startswith(b"%d " % who)]
            assert mine == [b"%d %d" % (who, number) for number in range(count)]
    for pubsub in pubsubs:
        pubsub.close()


@pytest.mark.usefixtures("no_second_look")
def test_a_waiting_thread_is_woken_by_a_publish_of_another(client: rlite_pubsub.Redis) -> None:
    with client.pubsub() as pubsub:
        pubsub.subscribe("news")
        confirmations(pubsub, 1)
        for number in range(20):
            timer = threading.Timer(0.01, client.publish, ("news", number))
            timer.start()
            assert messages(pubsub, 1) == [b"%d" % number]
            timer.join()


def test_a_thread_that_waits_without_end_is_freed_when_its_session_is_killed(folder: Path) -> None:
    client = rlite_pubsub.Redis(folder)
    pubsub = client.pubsub()
    pubsub.subscribe("news")
    seen: list[object] = []

    def listen() -> None:
        for message in pubsub.listen():
            seen.append(message["data"])
            if message["data"] == b"last":
                return

    def kill() -> None:
        while client.publish("news", "first") == 0:
            pass
        client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        while client.publish("news", "last") == 0:
            pass  # until it has subscribed again

    in_threads(listen, kill)
    assert seen[-1] == b"last"
    pubsub.close()
    client.close()


def test_run_in_thread_hands_every_message_to_its_handler(client: rlite_pubsub.Redis) -> None:
    seen: list[bytes] = []
    enough = threading.Event()

    def handle(message: dict[str, bytes]) -> None:
        seen.append(message["data"])
        if len(seen) == 100:
            enough.set()

    pubsub = client.pubsub()
    pubsub.subscribe(news=handle)
    thread = pubsub.run_in_thread(sleep_time=0.05)
    for number in range(100):
        client.publish("news", number)
    assert enough.wait(PATIENCE_S)
    thread.stop()
    thread.join(PATIENCE_S)
    assert seen == [b"%d" % number for number in range(100)]
    assert client.publish("news", "x") == 0, "run_in_thread closes its PubSub at the end"


def test_subscribing_while_another_thread_waits_takes_effect(client: rlite_pubsub.Redis) -> None:
    with client.pubsub() as pubsub:
        pubsub.subscribe("a")
        confirmations(pubsub, 1)
        found: list[bytes] = []
        reader = threading.Thread(target=lambda: found.extend(messages(pubsub, 1)))
        reader.start()
        pubsub.subscribe("b")
        while client.publish("b", "x") == 0:
            pass
        reader.join(PATIENCE_S)
        assert found == [b"x"]


def test_the_last_of_many_clients_closes_the_store(folder: Path) -> None:
    clients = [rlite_pubsub.Redis(folder) for _ in range(8)]

    def use(client: rlite_pubsub.Redis) -> None:
        for _ in range(20):
            with client.pubsub() as pubsub:
                pubsub.subscribe("news")
                client.publish("news", "x")
                messages(pubsub, 1)
            client.close()

    in_threads(*[lambda client=client: use(client) for client in clients])
    assert list((folder / "subscribers").iterdir()) == []


@pytest.mark.parametrize("size", [10, 20_000])
def test_what_nobody_reads_goes_to_disk_and_comes_back_in_order(folder: Path, size: int) -> None:
    with rlite_pubsub.Redis(folder) as client, client.pubsub() as pubsub:
        client.config_set("spill-threshold", 65536)
        pubsub.subscribe("news")
        confirmations(pubsub, 1)
        count = 4_000_000 // (size + 40)
        for number in range(count):
            client.publish("news", b"%08d" % number + b"x" * size)
        assert int(client.info("subscribers")["spilled_bytes"]) > 1_000_000
        assert [int(message[:8]) for message in messages(pubsub, count)] == list(range(count))
        client.publish("news", "live again")
        assert messages(pubsub, 1) == [b"live again"]
        assert int(client.info("subscribers")["spilled_bytes"]) == 0


def test_drop_oldest_tells_of_the_gap(folder: Path) -> None:
    with rlite_pubsub.Redis(folder) as client, client.pubsub() as pubsub:
        client.config_set("spill-threshold", 65536)
        client.config_set("slow-subscriber-policy", "drop-oldest")
        client.config_set("client-output-buffer-limit", "pubsub 200000 0 0")
        pubsub.subscribe("news")
        confirmations(pubsub, 1)
        for number in range(2000):
            client.publish("news", b"%08d" % number + b"x" * 1000)
        kept, lost = 0, 0
        while kept + lost < 2000:
            message = pubsub.get_message(timeout=PATIENCE_S)
            assert message is not None
            if message["type"] == "gap":
                lost += message["data"]
            else:
                kept += 1
                assert int(message["data"][:8]) == kept + lost - 1
        assert lost > 0


def test_a_subscriber_at_its_limit_is_disconnected_by_default(folder: Path) -> None:
    with rlite_pubsub.Redis(folder) as client, client.pubsub() as pubsub:
        client.config_set("client-output-buffer-limit", "pubsub 200000 0 0")
        client.config_set("spill-threshold", 65536)
        pubsub.subscribe("news")
        for _ in range(1000):
            client.publish("news", b"x" * 1000)
        assert client.publish("news", "x") == 0
        assert client.info("clients")["connected_clients"] == 1
