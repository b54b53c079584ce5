"""Debian's redis-cli and redis-benchmark: what they print against ours is what they print against redis-server."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest
from patience import PATIENCE_S, until

from compat_tests.servers import REDIS_CLI, SocketServer
from compat_tests.wire import request

BENCHMARK = shutil.which("redis-benchmark", path=str(Path(REDIS_CLI).parent)) if REDIS_CLI else None
PROMPT = r"[\s\S]*> "
"""Only then does redis-cli take the terminal over again; what is typed before is edited by the kernel."""

pytestmark = pytest.mark.skipif(REDIS_CLI is None, reason="no redis-cli: what is tested with it did not run")


def cli(server: SocketServer, *words: str, given: bytes = b"") -> str:
    """What redis-cli prints, errors too."""
    assert REDIS_CLI is not None
    command = [REDIS_CLI, "-p", str(server.port), *words]
    done = subprocess.run(command, input=given, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done
    return (done.stdout + done.stderr).decode()


@contextmanager
def running(server: SocketServer, *words: str) -> Iterator[BinaryIO]:
    """What a redis-cli prints that goes on by itself. Into a terminal: it would hold its lines back otherwise."""
    assert REDIS_CLI is not None
    ours, its = pty.openpty()
    process = subprocess.Popen([REDIS_CLI, "-p", str(server.port), *words], stdout=its, stderr=its)
    os.close(its)
    try:
        with open(ours, "rb") as printed:
            yield printed
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def lines(printed: BinaryIO, count: int) -> list[str]:
    return [printed.readline().decode().rstrip("\r\n") for _ in range(count)]


@pytest.mark.parametrize(
    "words",
    [
        ("ping",),
        ("-3", "ping"),
        ("-3", "hello", "3", "setname", "a", "b"),
        ("echo", "two words"),
        ("-3", "pubsub", "numsub", "a"),
        ("-3", "config", "get", "databases"),
        ("nope",),
        ("--no-raw", "publish", "a", "b"),
        ("--json", "config", "get", "maxclients"),
        ("--csv", "pubsub", "numsub", "a", "b"),
        ("-n", "3", "dbsize"),
        ("-r", "3", "ping"),
        ("--eval", "/nonexistent"),
        ("-x", "echo"),
        ("multi",),
    ],
    ids=" ".join,
)
def test_one_command_prints_the_same(ours: SocketServer, theirs: SocketServer, words: tuple[str, ...]) -> None:
    def printed(server: SocketServer) -> str:
        command = [str(REDIS_CLI), "-p", str(server.port), *words]
        done = subprocess.run(command, input=b"given", capture_output=True, timeout=PATIENCE_S)
        return f"{done.returncode}\n{done.stdout!r}\n{done.stderr!r}"

    assert printed(ours) == printed(theirs)


def test_requests_are_piped_in(server: SocketServer) -> None:
    data = b"".join([request(b"PUBLISH", b"a", b"%d" % at) for at in range(10_000)])
    assert "errors: 0, replies: 10000" in cli(server, "--pipe", given=data)


@pytest.mark.parametrize("version", ["-2", "-3"])
def test_subscriber_prints_pushes(server: SocketServer, version: str) -> None:
    client = server.client()
    with running(server, version, "subscribe", "a", "b") as printed:
        until(lambda: client.pubsub_numsub("b") == [(b"b", 1)])
        assert client.publish("a", "hello") == 1
        while '3) "hello"' not in (told := lines(printed, 1)[0]):
            assert told, "it stopped"


@pytest.mark.parametrize("version", ["-2", "-3"])
def test_statistics_have_numbers(server: SocketServer, version: str) -> None:
    with running(server, version, "--stat", "-i", "0.1") as printed:
        told = lines(printed, 6)
    assert told[1].split()[:3] == ["keys", "mem", "clients"]
    for line in told[2:]:
        assert re.fullmatch(r"\d+ +[\d.]+[KMG] +\d+ +\d+ +\d+ \(\+\d+\) +\d+ *", line), line


def test_latency_is_measured(server: SocketServer) -> None:
    """Without a terminal it measures for a second and prints one line: min, max, average, samples."""
    told = cli(server, "--latency", "-i", "1")
    assert re.match(r"\d+ \d+ [\d.]+ \d+", told), told


def test_monitor_prints_requests(server: SocketServer) -> None:
    client = server.client()
    with running(server, "monitor") as printed:
        assert lines(printed, 1) == ["OK"]
        client.publish("a", "x")
        for _ in range(10):
            (line,) = lines(printed, 1)
            if '"PUBLISH" "a" "x"' in line:
                return
        pytest.fail("the PUBLISH was not shown")


def _talk(server: SocketServer, steps: list[tuple[str, str]]) -> str:
    """Type into an interactive redis-cli, each time after `await_` was printed; all that it printed."""
    assert REDIS_CLI is not None
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))  # else it asks the terminal, and waits
        os.environ.update(TERM="xterm", REDISCLI_HISTFILE="/dev/null", HOME="/nonexistent")
        os.execv(REDIS_CLI, [REDIS_CLI, "-p", str(server.port), "-3"])
    printed = b""
    try:
        for typed, awaited in steps:
            os.write(terminal, typed.encode())
            printed += _read_until(terminal, lambda text: re.search(awaited, text) is not None)  # noqa: B023
    finally:
        os.close(terminal)
        os.kill(pid, signal.SIGKILL)  # for it may have inherited that it ignores the end of its terminal
        os.waitpid(pid, 0)
    return printed.decode(errors="replace")


def _read_until(terminal: int, enough: Callable[[str], bool]) -> bytes:
    deadline = time.monotonic() + PATIENCE_S
    came = b""
    while not enough(came.decode(errors="replace")):
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, came
        came += os.read(terminal, 65536)
    return came


def test_terminal_hints_come_from_command_docs(server: SocketServer) -> None:
    printed = _talk(
        server,
        [
            ("", PROMPT),
            ("publish ", r"channel message"),
            ("a b\r", r"\(integer\) 0" + PROMPT),
            ("client setname ", r"connection-name"),
            ("me\r", r"OK" + PROMPT),
            ("help spublish\r", r"Post a message to a shard channel" + PROMPT),
            ("subscribe a\r", r"Reading messages"),
        ],
    )
    assert "(integer) 0" in printed


# -- redis-benchmark


@pytest.mark.skipif(BENCHMARK is None, reason="no redis-benchmark: what is tested with it did not run")
@pytest.mark.parametrize(
    "words",
    [
        ("-t", "ping_inline,ping_mbulk", "-n", "1000", "-q"),
        ("-n", "1000", "-q", "publish", "a", "b"),
        ("-n", "1000", "-P", "16", "-q", "publish", "a", "b"),
        ("-n", "1000", "-c", "5", "-q", "-3", "echo", "x"),
    ],
    ids=" ".join,
)
def test_benchmark_runs_clean(server: SocketServer, words: tuple[str, ...]) -> None:
    command = [str(BENCHMARK), "-p", str(server.port), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    printed = done.stdout + done.stderr
    assert done.returncode == 0 and "requests per second" in printed, printed
    assert "WARNING" not in printed and "rror" not in printed, printed
