"""Doorbells and lock files that somebody deletes by hand: messages arrive, at the latest at the bounded wait (law 3),
and nobody who lives is reaped (law 4)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import rlite_pubsub
from tests.faults.program import Start, command
from tests.server.server_process import Serve
from tests.soak.left import left_in

READER = """
client = rlite_pubsub.Redis(folder)
pubsub = client.pubsub(ignore_subscribe_messages=True)
pubsub.subscribe("news")
pubsub.get_message(timeout=PATIENCE_S)
say("reading")
while True:
    message = pubsub.get_message(timeout=PATIENCE_S)
    if message is not None:
        say(message["data"])
"""
AIO_READER = """
import asyncio
async def read():
    async with rlite_pubsub.asyncio.Redis(folder) as client, client.pubsub() as pubsub:
        await pubsub.subscribe("news")
        await pubsub.get_message(timeout=PATIENCE_S)
        say("reading")
        while True:
            message = await pubsub.get_message(timeout=PATIENCE_S)
            if message is not None:
                say(message["data"])
asyncio.run(read())
"""


def delete(folder: Path, what: str) -> None:
    files = [file for file in (folder / "subscribers").iterdir() if file.suffix in what.split()]
    assert files
    for file in files:
        file.unlink()


@pytest.mark.parametrize("what", [".fifo", ".lock", ".lock .fifo"])
@pytest.mark.parametrize("source", [READER, AIO_READER], ids=["sync", "asyncio"])
def test_a_reader_whose_files_were_deleted_gets_every_message_and_is_not_reaped(
    folder: Path, start: Start, source: str, what: str
) -> None:
    reader = start(source)
    assert reader.hear() == "reading"
    with rlite_pubsub.Redis(folder) as before:
        assert before.publish("news", "knows the bell") == 1
        delete(folder, what)
        for number in range(3):
            assert before.publish("news", f"old {number}") == 1
        assert [reader.hear() for _ in range(4)] == ["knows the bell", "old 0", "old 1", "old 2"]
    with rlite_pubsub.Redis(folder) as after:
        for number in range(3):
            assert after.publish("news", f"new {number}") == 1
            assert reader.hear() == f"new {number}"
        assert command("doctor", "-s", str(folder)).returncode == 0
        assert after.publish("news", "last") == 1
        assert reader.hear() == "last"
        reader.kill()
        after.publish("news", "to one who is dead")
        assert after.publish("news", "to nobody") == 0
    assert left_in(folder) == []


@pytest.mark.parametrize("what", [".fifo", ".lock", ".lock .fifo"])
def test_a_server_whose_files_were_deleted_hears_every_publisher_and_is_not_reaped(
    serve: Serve, folder: Path, what: str
) -> None:
    server = serve()
    with server.connect() as peer:
        peer.do("SUBSCRIBE", "news")
        delete(folder, what)
        with rlite_pubsub.Redis(folder) as client:
            for number in range(3):
                assert client.publish("news", number) == 1
                assert peer.reply() == [b"message", b"news", b"%d" % number]
        assert command("doctor", "-s", str(folder)).returncode == 0
        assert int(command("publish", "-s", str(folder), "news", "last").stdout) == 1
        assert peer.reply() == [b"message", b"news", b"last"]
    assert server.end() == 0
    assert left_in(folder) == []


@pytest.mark.parametrize("remove", [Path.unlink, lambda file: file.chmod(0)], ids=["deleted", "unreadable"])
def test_a_killed_reader_whose_doorbell_is_gone_is_reaped_by_its_lock(
    folder: Path, start: Start, remove: Callable[[Path], None]
) -> None:
    reader = start(READER)
    assert reader.hear() == "reading"
    (bell,) = (folder / "subscribers").glob("*.fifo")
    remove(bell)
    reader.kill()
    with rlite_pubsub.Redis(folder) as client:
        assert client.publish("news", "x") == 0
    assert left_in(folder) == []
