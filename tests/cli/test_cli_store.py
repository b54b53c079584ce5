"""The subcommands that work on a store folder or a URL, as a user runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from patience import PATIENCE_S, until

import rlite_pubsub
from rlite_pubsub import Server
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.commons import function_libraries
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.store import Store


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(dir=str(tmp_path / "store")) as server:
        yield server


def run(*words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rlite_pubsub", *words]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE_S)


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "rlite_pubsub", *words], stdout=subprocess.PIPE, text=True)


def wait_for_subscriber(client: redis.Redis, name: str) -> None:
    until(lambda: client.publish(name, ""), "the subscriber")


def test_folder_and_server_hear_each_other(server: Server, tmp_path: Path) -> None:
    client = redis.Redis(port=server.port)
    folder = str(tmp_path / "store")
    listener = start("psubscribe", "-s", folder, "-n", "2", "n*")
    pubsub = client.pubsub()
    pubsub.subscribe("news")
    assert pubsub.get_message(timeout=PATIENCE_S) is not None
    wait_for_subscriber(client, "nothing")

    assert run("publish", "-s", folder, "news", "hello").stdout == "2\n"

    message = pubsub.get_message(timeout=PATIENCE_S)
    assert message is not None and message["data"] == b"hello"
    assert "news hello\n" in listener.communicate(timeout=PATIENCE_S)[0]


def test_lines_of_standard_input_are_published_one_by_one(server: Server) -> None:
    pubsub = redis.Redis(port=server.port).pubsub()
    pubsub.subscribe("news")
    assert pubsub.get_message(timeout=PATIENCE_S) is not None

    assert run("publish", "-s", server.url, "news", "-", text="one\ntwo\n").stdout == "1\n1\n"

    found = [pubsub.get_message(timeout=PATIENCE_S) for _ in range(2)]
    assert [message and message["data"] for message in found] == [b"one", b"two"]


def test_channels_are_listed_with_their_subscribers(server: Server, tmp_path: Path) -> None:
    pubsub = redis.Redis(port=server.port).pubsub()
    pubsub.subscribe("a", "b")
    assert pubsub.get_message(timeout=PATIENCE_S) and pubsub.get_message(timeout=PATIENCE_S)

    assert run("channels", "-s", str(tmp_path / "store")).stdout == "a 1\nb 1\n"
    assert run("channels", "-s", server.url, "b*").stdout == "b 1\n"


def test_subscribers_tells_who_lives_and_what_they_hold(server: Server, tmp_path: Path) -> None:
    pubsub = redis.Redis(port=server.port).pubsub()
    pubsub.psubscribe("a*", "b*")
    assert pubsub.get_message(timeout=PATIENCE_S) and pubsub.get_message(timeout=PATIENCE_S)

    for where in (str(tmp_path / "store"), f"rlite://{tmp_path}/store", server.url, f"{server.url}?protocol=3"):
        _, row = run("subscribers", "-s", where).stdout.splitlines()
        assert row.split()[1:9] == ["server", str(os.getpid()), "alive", "0", "2", "0", "0", "0"]

        (entry,) = json.loads(run("subscribers", "--json", "-s", where).stdout)
        assert (entry["pid"], entry["state"], entry["patterns"]) == (os.getpid(), "alive", ["a*", "b*"])


def test_subscribers_tells_since_when_messages_wait_for_one_who_is_away(server: Server, tmp_path: Path) -> None:
    client = redis.Redis(port=server.port)
    client.execute_command("SUBSCRIBER.ATTACH", "billing")
    pubsub = redis.Redis(port=server.port, client_name="durable:billing").pubsub()
    pubsub.subscribe("orders")
    assert pubsub.get_message(timeout=PATIENCE_S) is not None
    pubsub.close()
    assert client.publish("orders", "one") == 1

    for where in (str(tmp_path / "store"), server.url):
        _, _, row = run("subscribers", "-s", where).stdout.splitlines()
        words = row.split()
        assert words[:4] + words[4:8] == ["billing", "durable", "-", "away", "1", "0", "0", "1"]
        assert words[9].replace(".", "").isdigit() and words[10] == "s"


def test_doctor_cleans_up_after_a_killed_server(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    victim = start("serve", "--port", "0", "--unixsocket", str(tmp_path / "socket"), "--dir", str(folder))
    until((tmp_path / "socket").exists, "the server")
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    assert list((folder / "subscribers").iterdir())

    assert "reaped     1 dead" in run("doctor", "-s", str(folder)).stdout

    assert not list((folder / "subscribers").iterdir())


def test_doctor_reads_every_record_if_asked_and_tells_what_does_not_fit(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with rlite_pubsub.Redis(folder, db=3) as client:
        for number in range(1500):
            client.xadd("topic", {"number": number})
        client.rpush("list", *["x" * 100] * 2000)
        client.hset("hash", "field", "value")
    assert "proof      0 fault(s)" in run("doctor", "-s", str(folder), "--deep").stdout

    def lose_some(txn: Txn) -> None:
        for database in (databases.ELEMENTS, databases.ENTRIES):
            key, _ = next(databases.items(txn, database))
            txn.delete(key)

    with Store.open(folder) as store:
        store.data.write(lose_some)
    looked = run("doctor", "-s", str(folder), "--deep")
    assert looked.returncode == 1
    assert "fault      data.mdb: topic b'topic' says that it has 1500 entries of " in looked.stdout, looked.stdout
    assert "fault      data.mdb: key b'list' of space 1 has 2000 elements" in looked.stdout, looked.stdout


def test_doctor_finds_a_library_of_functions_that_stands_under_another_name(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with rlite_pubsub.Redis(folder) as client:
        client.function_load("#!lua name=lib\nredis.register_function('f', function() end)")
    assert "proof      0 fault(s)" in run("doctor", "-s", str(folder), "--deep").stdout
    with Store.open(folder) as store:
        store.data.write(lambda txn: function_libraries.put(txn, {b"other": b"#!lua name=lib\n"}))
    looked = run("doctor", "-s", str(folder), "--deep")
    assert looked.returncode == 1
    assert "fault      library of functions b'lib' stands under another name" in looked.stdout, looked.stdout


def test_looking_at_no_store_makes_none(tmp_path: Path) -> None:
    folder = tmp_path / "none"

    for word in ("doctor", "subscribers"):
        looked = run(word, "-s", str(folder))
        assert (looked.returncode, looked.stderr) == (1, f"rlite-pubsub: there is no store in {folder}\n")

    assert not folder.exists()
