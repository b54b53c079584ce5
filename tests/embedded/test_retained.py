"""Retained channels of programs without a server: whatever way a message goes, it is an entry."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from other_process import OtherProcess
from patience import until
from reading import messages

import rlite_pubsub
import rlite_pubsub.asyncio
from rlite_pubsub import Server


def payloads(client: rlite_pubsub.Redis, name: str) -> list[bytes]:
    found = client.xrange(name)
    return [fields[b"message"] for _, fields in found]


def test_publish_alone_and_in_a_pipeline_is_an_entry_and_is_heard(client: rlite_pubsub.Redis) -> None:
    client.publish("orders.1", "before")
    client.config_set("retain", "orders.* 7d")
    with client.pubsub() as pubsub:
        pubsub.subscribe("orders.1")
        assert client.publish("orders.1", "a") == 1
        pipeline = client.pipeline(transaction=False)
        for word in ("b", "c"):
            pipeline.publish("orders.1", word)
        assert pipeline.execute() == [1, 1]
        assert messages(pubsub, 3) == [b"a", b"b", b"c"]
    assert payloads(client, "orders.1") == [b"a", b"b", b"c"]


def test_asyncio_client_retains_too(folder: Path) -> None:
    async def publish() -> None:
        client = rlite_pubsub.asyncio.Redis(folder)
        await client.config_set("retain", "orders.* 7d")
        assert await client.publish("orders.1", "a") == 0
        assert await client.execute_command("PUBLISH", "orders.1", "b") == 0
        await client.aclose()

    asyncio.run(publish())
    with rlite_pubsub.Redis(folder) as client:
        assert payloads(client, "orders.1") == [b"a", b"b"]
        assert client.config_get("retain") == {"retain": "orders.* 7d"}


def test_program_that_only_publishes_goes_by_the_rules_that_a_server_has_set(folder: Path) -> None:
    with Server(dir=str(folder), retain="orders.* 7d"), OtherProcess(
        folder,
        """
        client = rlite_pubsub.Redis(folder)
        say(client.publish("orders.1", "a"), client.publish("news", "b"))
        """,
    ) as other:
        assert other.hear() == "0 0"
        with rlite_pubsub.Redis(folder) as client:
            assert payloads(client, "orders.1") == [b"a"]
            assert not client.exists("news")


def test_topic_is_trimmed_by_whoever_comes_by(folder: Path) -> None:
    with OtherProcess(
        folder,
        """
        client = rlite_pubsub.Redis(folder)
        client.config_set("retain", "t 3 entries")
        for number in range(10):
            client.publish("t", number)
        say("done")
        import signal; os.kill(os.getpid(), signal.SIGKILL)
        """,
    ) as other:
        assert other.hear() == "done"
    with rlite_pubsub.Redis(folder) as client:
        until(lambda: client.ping() and client.xlen("t") == 3, "the trimming")
        assert payloads(client, "t") == [b"7", b"8", b"9"]


@pytest.mark.parametrize("name", ["orders.1", "x" * 5000])
def test_name_of_any_length_is_retained(client: rlite_pubsub.Redis, name: str) -> None:
    client.config_set("retain", "* 7d")
    for word in ("a", "b"):
        client.publish(name, word)
    assert payloads(client, name) == [b"a", b"b"]
