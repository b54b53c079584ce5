"""`rlite-pubsub tail`, as a user runs it: every entry once and in order, and silent ends."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from patience import PATIENCE_S, until
from server_process import ServerProcess

import rlite_pubsub


class Tail:
    """A process, whose lines are read as they come."""

    def __init__(self, *words: str, stdout: int = subprocess.PIPE) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rlite_pubsub", *words], stdout=stdout, stderr=subprocess.PIPE
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self.told: list[str] = []
        self._threads = [threading.Thread(target=self._read_told)]
        if stdout == subprocess.PIPE:
            self._threads.append(threading.Thread(target=self._read_lines))
        for thread in self._threads:
            thread.start()

    def _read_lines(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def _read_told(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.told.append(line.decode())

    def line(self) -> str:
        return self._lines.get(timeout=PATIENCE_S).decode().removesuffix("\n")

    def take(self, count: int) -> list[str]:
        return [self.line() for _ in range(count)]

    def has_told(self, text: str) -> None:
        until(lambda: any(text in line for line in self.told), f"{text!r} in {self.told}")

    def end(self, by: signal.Signals | None = None) -> int:
        if by is not None:
            self.process.send_signal(by)
        code = self.process.wait(PATIENCE_S)
        for thread in self._threads:
            thread.join(PATIENCE_S)
        return code

    def rest(self) -> list[str]:
        return [self._lines.get_nowait().decode() for _ in range(self._lines.qsize())]


Start = Callable[..., Tail]


@pytest.fixture
def tail() -> Iterator[Start]:
    started: list[Tail] = []

    def start(*words: str, **options: int) -> Tail:
        started.append(Tail("tail", *words, **options))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.end()


def url_of(server: ServerProcess) -> str:
    return f"redis://127.0.0.1:{server.port}"


def add(client: redis.Redis, *numbers: int) -> list[str]:
    return [f"{client.xadd('orders', {'n': number}).decode()} n={number}" for number in numbers]


def run(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "rlite_pubsub", *words], capture_output=True, timeout=PATIENCE_S)


def test_entries_there_come_first_and_then_those_that_are_added(server: ServerProcess, tail: Start) -> None:
    client = redis.Redis(port=server.port)
    expected = add(client, 0, 1, 2)
    for where in (["--url", url_of(server)], ["--dir", str(server.store_folder)], ["-s", str(server.store_folder)]):
        shown = tail(*where, "orders", "--from", "START")
        assert shown.take(len(expected)) == expected
        expected += add(client, len(expected))
        assert shown.line() == expected[-1]


def test_killed_server_costs_no_entry_and_doubles_none(server: ServerProcess, tmp_path: Path, tail: Start) -> None:
    client = redis.Redis(port=server.port)
    expected = add(client, *range(50))
    shown = tail("--url", url_of(server), "orders", "--from", "START")
    assert shown.take(20) == expected[:20]
    for first in (50, 100):
        least = len(expected) + 20
        writer = threading.Thread(target=_add_until_killed, args=(client, expected, first))
        writer.start()
        while len(expected) < least:
            assert writer.is_alive()
        server.end(signal.SIGKILL)
        writer.join(PATIENCE_S)
        shown.has_told("the connection is lost")
        server.clean_up()
        server = ServerProcess(tmp_path, port=server.port)
        client = redis.Redis(port=server.port)
        stored = [f"{id.decode()} n={fields[b'n'].decode()}" for id, fields in client.xrange("orders")]
        assert stored[: len(expected)] == expected
        expected[:] = stored
    expected += add(client, 1000)
    try:
        assert shown.take(len(expected) - 20) == expected[20:]
    finally:
        server.clean_up()


def _add_until_killed(client: redis.Redis, expected: list[str], first: int) -> None:
    number = first
    try:
        while True:
            expected += add(client, number)
            number += 1
    except redis.ConnectionError:
        return


def test_topic_of_a_folder_without_a_server_is_followed(tmp_path: Path, tail: Start) -> None:
    with rlite_pubsub.Redis(tmp_path / "store") as client:
        expected = add(client, 0, 1)
        shown = tail("--dir", str(tmp_path / "store"), "orders", "--from", "START")
        assert shown.take(2) == expected
        assert add(client, 2) == [shown.line()]


def test_place_is_an_id_an_age_a_time_or_the_end(server: ServerProcess, tail: Start) -> None:
    client = redis.Redis(port=server.port)
    now_ms = int(time.time() * 1000)
    old, hour, new = [f"{now_ms - ago * 60_000}-0" for ago in (180, 60, 1)]
    for id in (old, hour, new):
        client.xadd("orders", {"n": "1"}, id=id)
    where = ("--url", url_of(server), "orders", "--from")
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(now_ms / 1000 - 7200))
    for place, first in [(old, hour), ("10m", new), ("2h", hour), (since, hour), (hour.partition("-")[0], hour)]:
        assert tail(*where, place).line() == f"{first} n=1"
    shown = tail(*where, "END")
    ids: list[str] = []
    until(lambda: ids.extend(add(client, 2)) or not shown._lines.empty())
    assert shown.line() in ids


def test_place_that_says_nothing_is_an_error(tmp_path: Path) -> None:
    ended = run("tail", "orders", "--from", "yesterday")
    assert ended.returncode == 2 and b"'yesterday' is not START, END, an id" in ended.stderr


def test_what_a_group_has_not_been_given_is_shown_and_not_taken_from_it(server: ServerProcess, tail: Start) -> None:
    client = redis.Redis(port=server.port)
    expected = add(client, *range(4))
    client.xgroup_create("orders", "billing", id="0")
    client.xreadgroup("billing", "one", {"orders": ">"}, count=2)
    assert tail("-s", url_of(server), "orders", "--group", "billing").take(2) == expected[2:]
    assert client.xinfo_groups("orders")[0]["lag"] == 2


def test_entries_that_retention_has_taken_are_told(server: ServerProcess, tail: Start) -> None:
    client = redis.Redis(port=server.port)
    ids = [line.partition(" ")[0] for line in add(client, *range(10))]
    client.xtrim("orders", maxlen=4, approximate=False)
    shown = tail("-s", url_of(server), "orders", "--from", ids[1])
    assert shown.take(4) == [f"{id} n={number}" for number, id in enumerate(ids) if number >= 6]
    shown.has_told(f"entries of orders are gone; it goes on from {ids[6]}")


def test_topic_that_is_not_there_is_waited_for_and_that_is_said(server: ServerProcess, tail: Start) -> None:
    shown = tail("-s", url_of(server), b"or\xff".decode(errors="surrogateescape"), "--from", "END")
    shown.has_told("there is no topic or\\xff: waiting for its first entry")
    id = redis.Redis(port=server.port).xadd(b"or\xff", {b"k": b"\xfe"})
    assert shown.line() == f"{id.decode()} k=\\xfe"


def test_channel_is_shown_live_and_what_cannot_be_heard_is_told(
    server: ServerProcess, tmp_path: Path, tail: Start
) -> None:
    channel, pattern = tail("-s", url_of(server), "news"), tail("-s", url_of(server), "n*", "--pattern")
    client = redis.Redis(port=server.port)
    until(lambda: client.publish("news", "one") == 2)
    until(lambda: channel.line() == "one")
    until(lambda: pattern.line() == "news one")
    channel.has_told("there is no topic news: waiting for what is published to the channel of that name")
    server.end(signal.SIGKILL)
    for shown in (channel, pattern):
        shown.has_told("what is published until it is back is not shown")
    server.clean_up()
    again = ServerProcess(tmp_path, port=server.port)
    try:
        for shown in (channel, pattern):
            shown.has_told("the connection is back")
        assert redis.Redis(port=again.port).publish("news", "two") == 2
        until(lambda: channel.line() == "two")
        until(lambda: pattern.line() == "news two")
    finally:
        again.clean_up()


def test_payload_cannot_command_the_terminal(server: ServerProcess) -> None:
    client = redis.Redis(port=server.port)
    payload = b"\x1b[2J\xff\n\\ \xc3\xa9 \xe2\x80\xae"
    entry_id = client.xadd("orders", {"a\n": payload}).decode()
    where = ("tail", "-s", url_of(server), "orders", "--from", "START", "-n", "1")
    assert run(*where).stdout.decode() == f"{entry_id} a\\n=\\x1b[2J\\xff\\n\\\\ é \\u202e\n"
    assert run(*where, "--raw").stdout == payload + b"\n"
    about = json.loads(run(*where, "--json").stdout)
    assert (about["id"], about["topic"]) == (entry_id, "orders")
    assert about["fields"] == {"a\n": {"base64": "G1sySv8KXCDDqSDigK4="}}


def test_filter_shows_what_matches_and_count_counts_what_is_shown(server: ServerProcess) -> None:
    expected = add(redis.Redis(port=server.port), *range(20))
    ended = run("tail", "-s", url_of(server), "orders", "--from", "START", "--filter", "n=1[0-9]", "-n", "3")
    assert ended.stdout.decode().splitlines() == expected[10:13]
    assert run("tail", "orders", "--filter", "(").returncode == 2


@pytest.mark.parametrize("name", ["orders", "channel"])
def test_ctrl_c_ends_it_cleanly_with_status_130(server: ServerProcess, tail: Start, name: str) -> None:
    client = redis.Redis(port=server.port)
    add(client, 1)
    for where in (url_of(server), str(server.store_folder)):
        shown = tail("-s", where, name, *(["--from", "START"] if name == "orders" else []))
        if name == "channel":
            until(lambda: client.publish(name, "x"))
        shown.line()
        assert shown.end(signal.SIGINT) == 130
        assert not [line for line in shown.told if "there is no topic" not in line]


@pytest.mark.parametrize("count", [1, 5000], ids=["and_nothing_comes", "and_much_comes"])
def test_reader_that_goes_away_ends_it_silently(server: ServerProcess, count: int) -> None:
    pipeline = redis.Redis(port=server.port).pipeline(transaction=False)
    for _ in range(count):
        pipeline.xadd("orders", {"pad": "x" * 100, "n": 1})
    pipeline.execute()
    command = f"{sys.executable} -m rlite_pubsub tail -s {url_of(server)} orders --from START | head -n 1; "
    ended = subprocess.run(
        ["bash", "-c", "unset PYTHONUNBUFFERED; " + command + 'echo "${PIPESTATUS[0]}"'],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    first, code = ended.stdout.splitlines()
    assert first.endswith("n=1") and code == "0" and ended.stderr == ""


def test_looking_for_a_topic_makes_no_store(tmp_path: Path) -> None:
    ended = run("tail", "--dir", str(tmp_path / "none"), "orders", "--from", "START")
    assert ended.returncode == 1 and ended.stderr.decode() == f"rlite-pubsub: there is no store in {tmp_path}/none\n"
    assert not (tmp_path / "none").exists()


def test_server_that_is_not_there_at_first_is_an_error() -> None:
    ended = run("tail", "--url", "redis://127.0.0.1:1", "orders")
    assert ended.returncode == 1 and b"refused" in ended.stderr and b"Traceback" not in ended.stderr
