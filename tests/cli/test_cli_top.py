"""`rlite-pubsub top`, in a pseudo-terminal and as a script runs it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from patience import PATIENCE_S, until
from server_process import Serve, ServerProcess

from rlite_pubsub.cli.top import TopView, _press
from rlite_pubsub.cli.top_screen import cut, page_lines
from rlite_pubsub.cli.top_tables import TopReading, page

COMMAND = [sys.executable, "-m", "rlite_pubsub", "top"]
WITHOUT_RICH = [
    sys.executable,
    "-c",
    "import sys; sys.modules['rich'] = None; from rlite_pubsub.cli import main; sys.exit(main(['top', *sys.argv[1:]]))",
]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LINES, COLUMNS = 20, 120


class Terminal:
    """What a program draws on a screen of its own, and the keys that it is sent."""

    def __init__(self, command: list[str]) -> None:
        self.descriptor, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.before = termios.tcgetattr(other)
        self._other = other
        environment = os.environ | {"TERM": "xterm"}
        environment.pop("COLUMNS", None)  # pytest-xdist's, narrower than this terminal
        self.process = subprocess.Popen(
            command, stdin=other, stdout=other, stderr=other, start_new_session=True, env=environment
        )
        self.written = b""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while not self.written.endswith(b"\x00"):
            self.written += os.read(self.descriptor, 65536)

    def page(self) -> str:
        """What was drawn last, without colours."""
        return ESCAPE.sub("", self.written.decode(errors="replace").rpartition("\x1b[H")[2]).replace("\r", "")

    def shows(self, *texts: str) -> None:
        until(lambda: all(text in self.page() for text in texts), f"{texts} in {self.page()}")

    def press(self, keys: str) -> None:
        os.write(self.descriptor, keys.encode())

    def end(self, by: signal.Signals | None = None) -> int:
        if by is not None:
            self.process.send_signal(by)
        return self.process.wait(PATIENCE_S)

    def is_as_before(self) -> bool:
        """Whether its modes are what they were, and the screen is the one from before, with a cursor."""
        until(lambda: b"\x1b[?1049l" in self.written, "the end of the screen")
        tail = self.written[self.written.rindex(b"\x1b[?1049h") :]
        return termios.tcgetattr(self._other) == self.before and b"\x1b[?25h" in tail

    def clean_up(self) -> None:
        self.process.kill()
        self.process.wait()
        os.write(self._other, b"\x00")
        self._reader.join(PATIENCE_S)
        os.close(self._other)
        os.close(self.descriptor)


@pytest.fixture
def server(serve: Serve) -> ServerProcess:
    server = serve("--retain", "orders* 7d 1gb")
    client = redis.Redis(port=server.port)
    for name, count in (("orders", 3), ("orders\x1b[2J", 1), ("jobs", 7)):
        for number in range(count):
            client.xadd(name, {"n": number})
    client.xgroup_create("jobs", "billing", id="0")
    client.xreadgroup("billing", "one", {"jobs": ">"}, count=2)
    client.execute_command("SUBSCRIBER.ATTACH", "away")
    client.execute_command("SUBSCRIBER.DETACH")
    return server


@pytest.fixture
def open_terminal() -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(command: list[str]) -> Terminal:
        opened.append(Terminal(command))
        return opened[-1]

    yield start
    for each in opened:
        each.clean_up()


def url_of(server: ServerProcess) -> str:
    return f"redis://127.0.0.1:{server.port}"


def run(*words: str, command: list[str] = COMMAND) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, *words], capture_output=True, text=True, timeout=PATIENCE_S)


def rows(output: str) -> dict[str, list[str]]:
    """By first word."""
    return {line.split()[0]: line.split() for line in output.splitlines() if line}


@pytest.mark.parametrize("command", [COMMAND, WITHOUT_RICH], ids=["rich", "plain"])
def test_one_page_for_scripts_tells_of_topics_groups_and_subscribers(server: ServerProcess, command: list[str]) -> None:
    for where in (url_of(server), f"{url_of(server)}?protocol=2", str(server.store_folder)):
        ended = run("--url", where, "--once", "-i", "0.1", command=command)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "\x1b" not in ended.stdout
        found = rows(ended.stdout)
        assert found["orders"][1] == "3" and found["orders"][-2:] == ["7d", "1gb"]
        assert found["orders\\x1b[2J"][1] == "1"
        assert found["jobs"] == ["jobs", "billing", "5", "2", "0", "0", "1"]
        assert found["away"][:4] == ["away", "durable", "-", "away"]
        assert any(row[1:4] == ["server", str(server.pid), "alive"] for row in found.values())
        assert ("published/s" in ended.stdout) == ("://" in where)


def test_rates_are_of_what_came_between_two_looks(server: ServerProcess) -> None:
    process = subprocess.Popen(
        [*COMMAND, "-s", url_of(server), "--json", "-i", "0.3"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        client = redis.Redis(port=server.port)
        client.client_id()
        added = published = 0.0
        while not (added and published):
            pipeline = client.pipeline(transaction=False)
            for _ in range(20):
                pipeline.xadd("jobs", {"n": 1})
                pipeline.publish("nobody", "x")
            pipeline.execute()
            about = json.loads(process.stdout.readline())
            added = max(added, *[row["rate"] or 0 for row in about["topics"] if row["name"] == "jobs"])
            published = max(published, about["messages_published_per_s"])
        assert not any(row["rate"] for row in about["topics"] if row["name"] != "jobs")
    finally:
        process.kill()
        process.communicate()


def test_order_is_by_what_was_asked_for(server: ServerProcess) -> None:
    def names(*words: str) -> list[str]:
        ended = run("-s", url_of(server), "--once", "--json", "-i", "0.1", *words)
        return [row["name"] for row in json.loads(ended.stdout)["topics"]]

    assert names() == ["jobs", "orders", "orders\\x1b[2J"]
    assert names("--sort", "name", "--match", "o*") == ["orders", "orders\\x1b[2J"]
    assert names("--limit", "1") == ["jobs"]


@pytest.mark.parametrize("command", [COMMAND, WITHOUT_RICH], ids=["rich", "plain"])
def test_live_table_follows_what_changes_obeys_keys_and_leaves_the_terminal_as_it_was(
    server: ServerProcess, open_terminal: Callable[..., Terminal], command: list[str]
) -> None:
    terminal = open_terminal([*command, "--url", url_of(server), "-i", "0.2"])
    terminal.shows("jobs", "orders\\x1b[2J", "billing", "away", "by lag", "commands/s")
    redis.Redis(port=server.port).xadd("brandnew", {"n": 1})
    terminal.shows("brandnew")
    terminal.press("\x1b[C")
    terminal.shows("by bytes")
    terminal.press("\x1b[D\x1b[Dr")
    terminal.shows("by name, reversed")
    terminal.press("/brandx\x7f\r")
    terminal.shows("only *brand*", "brandnew")
    assert "jobs" not in terminal.page() and "server" not in terminal.page()
    terminal.press("q")
    assert terminal.end() == 0
    assert terminal.is_as_before()


class PressedKeyboard:
    """Has a key, and nobody to wait for."""

    def wait(self, seconds: float) -> list[str]:
        assert seconds == 0
        return ["q"]


def test_keys_are_heard_though_looking_takes_longer_than_the_interval() -> None:
    view = TopView("lag")
    is_time_to_look = _press(PressedKeyboard(), view, until_s=time.monotonic() - 1)  # type: ignore[arg-type]
    assert view.is_over and not is_time_to_look


def test_connections_by_lag_channels_by_rate_disk_and_warnings_are_there(serve: Serve) -> None:
    server = serve("--warn-group-lag", "1")
    client = redis.Redis(port=server.port, client_name="a-name")
    client.xadd("orders", {"n": 1})
    client.xgroup_create("orders", "billing", "0")
    pubsub = client.pubsub()
    pubsub.subscribe("news")
    assert pubsub.get_message(timeout=PATIENCE_S)

    def look() -> dict[str, list[dict[str, object]]]:
        for _ in range(10):
            client.publish("news", "x")
        found: dict[str, list[dict[str, object]]] = json.loads(
            run("-s", url_of(server), "--once", "--json", "-i", "0.1").stdout
        )
        return found

    until(lambda: any(row["name"] == "news" and row["rate"] for row in look()["channels"]), "a rate of a channel")
    found = look()
    subscribed = [row for row in found["connections"] if row["name"] == "a-name" or row["names"] == 1]
    assert subscribed and all(row["lag_bytes"] == 0 and row["pid"] == server.pid for row in subscribed)
    assert found["filesystem_free_bytes"] and found["used_memory_private"]
    assert [each["code"] for each in found["warnings"]] == ["group_lagging"]
    told = run("-s", url_of(server), "--once", "-i", "0.1").stdout
    assert "! group_lagging billing of orders: 1 entry is yet to be read" in told and "free on disk" in told


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_live_table_leaves_the_terminal_as_it_was(
    server: ServerProcess, open_terminal: Callable[..., Terminal], by: signal.Signals
) -> None:
    terminal = open_terminal([*COMMAND, "--dir", str(server.store_folder)])
    terminal.shows("jobs", "without a server")
    assert terminal.end(by) == 128 + by
    assert terminal.is_as_before()
    assert "Traceback" not in terminal.page()


def test_live_table_waits_for_a_server_that_was_killed(
    server: ServerProcess, open_terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    terminal = open_terminal([*COMMAND, "--url", url_of(server), "-i", "0.2"])
    terminal.shows("jobs")
    server.end(signal.SIGKILL)
    terminal.shows("refused", "jobs")
    again = ServerProcess(tmp_path, port=server.port)
    try:
        redis.Redis(port=again.port).xadd("brandnew", {"n": 1})
        terminal.shows("server_died")
        terminal.press("/brand\r")
        terminal.shows("brandnew")
        until(lambda: "refused" not in terminal.page())
    finally:
        again.clean_up()


def test_nothing_there_is_one_clear_error(tmp_path: Path) -> None:
    for where in ("redis://127.0.0.1:1", str(tmp_path / "none")):
        ended = run("-s", where, "--once")
        assert ended.returncode == 1 and re.fullmatch(r"rlite-pubsub: .+\n", ended.stderr)
    assert not (tmp_path / "none").exists()


def test_page_fits_its_screen_and_tells_how_many_rows_do_not() -> None:
    topic = {
        "length": 1, "bytes": 1, "entries-added": 1, "groups": 0, "group-list": [], "paused": 0, "ephemeral": 0,
        "retain-age": 0, "retain-bytes": 0, "retain-length": 0,
    }  # fmt: skip
    for count in (0, 1, 5, 50):
        reading = TopReading(0.0, {}, {b"t%d" % number: topic for number in range(count)}, count + 3, [])
        for lines in range(12, 40):
            shown = page_lines(cut(page(None, reading, "lag"), lines))
            assert len(shown) <= lines
            rows_shown = sum(line.startswith("t") and line[1].isdigit() for line in shown)
            assert rows_shown == min(count, lines - 1 - 9)
            assert f"... and {count - rows_shown + 3} more" in shown


def test_rate_is_not_known_where_another_process_answers() -> None:
    def reading(at_s: float, process_id: int, published: int) -> TopReading:
        return TopReading(at_s, {"process_id": process_id, "messages_published": published}, {}, 0, [])

    def rate(before: TopReading | None, now: TopReading) -> object:
        return page(before, now, "lag").summary["messages_published_per_s"]

    first = reading(1.0, 1, 10)
    assert rate(None, first) is None
    assert rate(first, reading(3.0, 1, 30)) == 10
    assert rate(first, reading(3.0, 2, 30)) is None


def test_keys_that_mean_nothing_change_nothing() -> None:
    choice = TopView("lag")
    for key in ("x", "\x1b", "up", "\x1b[5~", "rub"):
        choice.press(key)
    assert choice == TopView("lag")
    for key in ("/", "a", "\x1b[5~", "left", "q"):
        choice.press(key)
    assert (choice.wanted, choice.sort, choice.is_over) == ("aq", "lag", False)
    choice.press("\x1b")
    assert choice == TopView("lag")
