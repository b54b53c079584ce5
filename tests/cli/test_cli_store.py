"""The subcommands that work on a store folder or a URL, as a user runs them."""

from __future__ import annotations

import json
import os
import shutil
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
from rlite_pubsub.cli.target import target_of
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
    assert "fault      library of functions b'lib' is stored under another name" in looked.stdout, looked.stdout


def test_looking_at_no_store_makes_none(tmp_path: Path) -> None:
    folder = tmp_path / "none"

    for word in ("doctor", "subscribers"):
        looked = run(word, "-s", str(folder))
        assert (looked.returncode, looked.stderr) == (1, f"rlite-pubsub: there is no store in {folder}\n")

    assert not folder.exists()


@pytest.mark.parametrize(
    ("word", "target"),
    [
        ("localhost", "redis://localhost"),
        ("127.0.0.1:6379", "redis://127.0.0.1:6379"),
        ("[::1]:6379", "redis://[::1]:6379"),
        ("cache.example:7000", "redis://cache.example:7000"),
        ("rediss://h/1", "rediss://h/1"),
        ("rlite:///x", "rlite:///x"),
        ("./localhost", "./localhost"),
        ("store", "store"),
        ("/var/lib/a:1", "/var/lib/a:1"),
    ],
)
def test_address_is_a_server_and_everything_else_a_folder(word: str, target: str) -> None:
    assert target_of(word) == target


def test_unix_socket_is_a_server(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with Server(unixsocket=path):
        assert target_of(path) == f"unix://{path}"
        assert run("publish", "-s", path, "news", "hello").stdout == "0\n"


@pytest.mark.parametrize(
    "words", [["publish", "a", "b"], ["subscribe", "a"], ["psubscribe", "a"], ["channels"], ["tail", "t"], ["top"]]
)
def test_no_command_makes_a_store_unasked_and_the_folder_is_named(tmp_path: Path, words: list[str]) -> None:
    folder = tmp_path / "none"
    ended = run(words[0], "-s", str(folder), *words[1:])
    assert ended.returncode == 1
    assert ended.stderr == f"rlite-pubsub: there is no store in {folder}\n"
    assert not folder.exists()


@pytest.mark.parametrize("words", [["publish", "a", "b"], ["channels"], ["doctor"], ["cli", "PING"]], ids=str)
def test_folder_that_may_not_be_looked_at_is_refused_in_one_line(tmp_path: Path, words: list[str]) -> None:
    folder = str(tmp_path / ("x" * 300))  # as a folder of others; but that one, root may look at
    ended = run(words[0], "-s", folder, *words[1:])
    assert ended.returncode == 1 and folder in ended.stderr and "File name too long" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.skipif(not os.geteuid() and shutil.which("setpriv") is None, reason="root may look everywhere")
@pytest.mark.parametrize("words", [["doctor"], ["top", "--once"], ["publish", "c", "m"]])
def test_folder_that_is_closed_to_the_user_is_said_with_its_owner(tmp_path: Path, words: list[str]) -> None:
    folder = tmp_path / "store"
    Store.open(folder).close()
    folder.chmod(0)
    as_anybody = [] if os.geteuid() else ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    command = [*as_anybody, sys.executable, "-m", "rlite_pubsub", words[0], "-s", str(folder), *words[1:]]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    folder.chmod(0o700)
    assert refused.returncode == 1 and not refused.stdout
    (line,) = refused.stderr.splitlines()
    assert str(folder) in line and "Errno" not in line and f"as its owner, {folder.owner()}" in line


def test_store_is_made_where_that_is_asked_for(tmp_path: Path) -> None:
    folder = str(tmp_path / "new")
    assert run("publish", "-s", folder, "--create", "news", "hello").stdout == "0\n"
    assert run("doctor", "-s", folder).returncode == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["publish", "-s", "redis://:secret@127.0.0.1:1", "a", "b"], 1),
        (["pipeline", "stats", "--url", "redis://:secret@127.0.0.1:1", "x", "--dry-run"], 6),
    ],
)
def test_refusal_names_the_url_without_its_password(words: list[str], code: int) -> None:
    ended = run(*words)
    assert ended.returncode == code
    assert "rlite-pubsub: redis://:***@127.0.0.1:1: " in ended.stderr
    assert "secret" not in ended.stderr


def test_arguments_that_are_no_utf8_are_passed_as_they_are(server: Server) -> None:
    client = redis.Redis(port=server.port)
    pubsub = client.pubsub()
    pubsub.subscribe(b"\xff\xfe")
    assert pubsub.get_message(timeout=PATIENCE_S) is not None
    words = ["publish", "-s", f"127.0.0.1:{server.port}", os.fsdecode(b"\xff\xfe"), os.fsdecode(b"a\x80b")]
    assert run(*words).stdout == "1\n"
    message = pubsub.get_message(timeout=PATIENCE_S)
    assert message is not None and (message["channel"], message["data"]) == (b"\xff\xfe", b"a\x80b")


def test_doctor_looks_at_a_server_and_says_what_is_wrong(server: Server, tmp_path: Path) -> None:
    url = f"redis://127.0.0.1:{server.port}"
    looked = run("doctor", "-s", url)
    assert looked.returncode == 0
    assert f"store      {tmp_path / 'store'}\n" in looked.stdout
    assert "alive      1 subscriber(s)\n" in looked.stdout
    assert "data.mdb " in looked.stdout and "clients    1 connected" in looked.stdout
    deep = run("doctor", "-s", url, "--deep")
    assert (deep.returncode, deep.stdout) == (1, "")
    assert f"{url}: --deep reads the files of a store" in deep.stderr


def test_doctor_says_that_the_store_of_a_server_is_full(tmp_path: Path) -> None:
    with Server(dir=str(tmp_path / "store"), store_quota="2mb") as server:
        client = redis.Redis(port=server.port)
        with pytest.raises(redis.ResponseError):
            for number in range(100):
                client.set(f"key{number}", b"x" * 100_000)
        full = run("doctor", "-s", f"localhost:{server.port}")
    assert full.returncode == 1
    assert full.stdout.startswith("verdict    something is wrong: 1 fault\nfault      store_full data.mdb: ")
