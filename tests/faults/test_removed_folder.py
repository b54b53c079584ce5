"""The store's folder is removed, moved or replaced under running processes: they say so, and do not go on with a store
that nobody else sees."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import until

import rlite_pubsub
from tests.faults.program import Start, command
from tests.server.server_process import Serve
from tests.soak.left import left_in

TOLD = "was removed, moved or replaced while this process had it open: open it again, or restart this program"
READER = """
import logging
logging.basicConfig(filename=folder + "-reader.log")
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
import asyncio, logging
logging.basicConfig(filename=folder + "-reader.log")
async def read():
    async with rlite_pubsub.asyncio.Redis(folder) as client, client.pubsub(ignore_subscribe_messages=True) as pubsub:
        await pubsub.subscribe("news")
        await pubsub.get_message(timeout=PATIENCE_S)
        say("reading")
        while True:
            message = await pubsub.get_message(timeout=PATIENCE_S)
            if message is not None:
                say(message["data"])
asyncio.run(read())
"""
PUBLISHER = """
import time
client = rlite_pubsub.Redis(folder)
say(client.publish("news", "before"))
errors = set()
while order := told():
    for _ in range(int(PATIENCE_S / 0.01)):
        try:
            if client.publish("news", "after") and (errors or order == "until somebody hears it"):
                break
        except Exception as error:
            errors.add(f"{type(error).__name__} {error}")
        time.sleep(0.01)
    say(*errors)
"""


def remove(folder: Path) -> None:
    shutil.rmtree(folder)


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def move(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


@pytest.mark.parametrize("source", [READER, AIO_READER], ids=["sync", "asyncio"])
@pytest.mark.parametrize("how", [remove, empty, move])
def test_programs_say_that_their_store_is_gone_and_meet_again_in_a_whole_new_one(
    folder: Path, start: Start, source: str, how: Callable[[Path], None]
) -> None:
    reader = start(source)
    assert reader.hear() == "reading"
    publisher = start(PUBLISHER)
    assert publisher.hear() == "1"
    assert reader.hear() == "before"
    how(folder)
    newcomer = start(PUBLISHER)
    assert newcomer.hear() in ("0", "1")
    newcomer.tell("until somebody hears it")
    assert newcomer.hear() == "", "it came when the old store was gone already"
    assert reader.hear() in ("before", "after")
    publisher.tell("until somebody hears it behind an error")
    assert TOLD in publisher.hear()
    until(lambda: TOLD in folder.with_name("store-reader.log").read_text())
    for program in (reader, publisher, newcomer):
        program.kill()
    command("doctor", "-s", str(folder))
    assert left_in(folder) == []


def test_program_that_keeps_reading_from_a_removed_store_is_not_busy_with_it(folder: Path, start: Start) -> None:
    reader = start(READER)
    assert reader.hear() == "reading"
    remove(folder)
    until(lambda: (folder / "live.mdb").exists(), "the new store")
    with rlite_pubsub.Redis(folder) as client:
        until(lambda: client.publish("news", "x"))
    before_s = reader.processor_s()
    log = folder.with_name("store-reader.log")
    before = log.read_text()
    with rlite_pubsub.Redis(folder) as client:
        for _ in range(30):
            assert reader.hear() == "x"
            client.publish("news", "x")
    assert log.read_text() == before, "it says it once"
    assert reader.processor_s() - before_s < 5


@pytest.mark.parametrize("how", [remove, empty, move])
def test_server_says_that_its_store_is_gone_and_what_to_do_and_serves_on_who_was_there(
    serve: Serve, folder: Path, how: Callable[[Path], None]
) -> None:
    server = serve()
    with server.connect() as peer, server.connect() as other:
        peer.do("SUBSCRIBE", "news")
        how(folder)
        until(lambda: TOLD in server.log())
        said = server.log()
        assert other.do("PUBLISH", "news", "from here") == 1
        assert peer.reply() == [b"message", b"news", b"from here"]
        refusal = str(other.do("SUBSCRIBE", "more"))
        assert refusal.startswith("MISCONF command not allowed: ") and refusal.endswith(TOLD)
        assert not folder.exists() or not list(folder.iterdir()), "half a store was made"
        busy_s = server_busy_s(server.pid)
        until(lambda: int(other.do("INFO", "server").split(b"uptime_in_seconds:")[1].split()[0]) >= 3)
        assert server_busy_s(server.pid) - busy_s < 2
        assert server.log().count("removed") <= said.count("removed") + 2, "the log is not flooded"
    assert server.end() == 0
    again = serve()
    with again.connect() as peer:
        peer.do("SUBSCRIBE", "news")
        with rlite_pubsub.Redis(folder) as client:
            assert client.publish("news", "x") == 1
    assert "Traceback" not in again.log()


def server_busy_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
