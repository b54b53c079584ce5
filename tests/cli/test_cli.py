"""`rlite-pubsub`, as a process."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S, until

from rlite_pubsub.build import is_compiled
from rlite_pubsub.cli import command_line

COMMAND = [sys.executable, "-m", "rlite_pubsub"]
LOG_LINE = re.compile(r"^\d+:M \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d\.\d{3} [.*#-] \S")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as peer:
            peer.sendall(b"PING\r\n")
            return peer.recv(100) == b"+PONG\r\n"
    except OSError:
        return False


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *args], capture_output=True, text=True, timeout=PATIENCE_S)


class Started:
    """A server process on a port of its own."""

    def __init__(self, folder: Path, *flags: str, **environment: str) -> None:
        self.port = free_port()
        self.log = folder / "log"
        words = ["serve", "--port", str(self.port), "--dir", str(folder / "store"), "--logfile", str(self.log), *flags]
        self.process = subprocess.Popen([*COMMAND, *words], env=os.environ | environment)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    started: list[Started] = []

    def start_one(*flags: str, **environment: str) -> Started:
        started.append(Started(tmp_path, *flags, **environment))
        return started[-1]

    yield start_one
    for one in started:
        one.process.kill()
        one.process.wait()


def test_version_names_ours_and_that_of_redis_and_how_it_was_built(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["--version"]) == 0
    built = "compiled" if is_compiled() else "pure Python"
    line = rf"rlite-pubsub \d+\.\d+\.\d+ \(speaks Redis 7\.0\.15, {built}\)\n"
    assert re.fullmatch(line, capsys.readouterr().out)


@pytest.mark.parametrize("args", [["--help"], ["-h"], ["serve", "--help"]])
def test_help_tells_how_to_serve(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(args) == 0
    assert "rlite-pubsub serve" in capsys.readouterr().out


def test_unknown_subcommand_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["nosuch"]) == 1
    assert "unknown subcommand 'nosuch'" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [["--nosuch", "1"], ["--port", "abc"], ["--tls-port", "x"], ["/nonexistent.conf"]])
def test_bad_command_line_is_one_clear_error(flags: list[str]) -> None:
    ended = run("serve", *flags)
    assert ended.returncode == 1
    assert ended.stderr
    assert "Traceback" not in ended.stderr


def test_parsing_a_command_line_imports_no_event_loop() -> None:
    code = "import sys, rlite_pubsub.cli as cli; cli.main(['--version']); print('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.endswith("False\n")


def test_server_answers_logs_as_redis_does_and_stops_on_sigterm(start: Callable[..., Started]) -> None:
    server = start()
    until(lambda: answers(server.port))
    assert server.stop() == 0
    lines = server.log.read_text().splitlines()
    assert lines
    assert all(LOG_LINE.match(line) for line in lines)


def test_port_in_use_is_told_as_redis_tells_it(start: Callable[..., Started], tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    server = start("--pidfile", str(pidfile))
    until(lambda: answers(server.port))
    until(pidfile.exists)
    second = run("serve", "--port", str(server.port), "--dir", str(tmp_path / "second"), "--pidfile", str(pidfile))
    assert second.returncode == 1
    message = f"Could not create server TCP listening socket 127.0.0.1:{server.port}: bind: Address already in use"
    assert message in second.stdout + second.stderr
    assert pidfile.read_text() == f"{server.process.pid}\n"


def test_pidfile_stands_while_the_server_runs(start: Callable[..., Started], tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    server = start("--pidfile", str(pidfile))
    until(pidfile.exists)
    until(lambda: pidfile.read_text() == f"{server.process.pid}\n")
    server.stop()
    assert not pidfile.exists()


def test_daemon_leaves_its_parent_and_can_be_stopped(start: Callable[..., Started], tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    server = start("--daemonize", "yes", "--pidfile", str(pidfile))
    assert server.process.wait(PATIENCE_S) == 0
    until(lambda: pidfile.exists() and pidfile.read_text().endswith("\n"))
    pid = int(pidfile.read_text())
    try:
        assert os.getsid(pid) != os.getsid(0)
        assert answers(server.port)
    finally:
        os.kill(pid, signal.SIGTERM)
        until(lambda: not pidfile.exists())


def test_systemd_is_told_of_readiness_and_of_the_end(start: Callable[..., Started], tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(PATIENCE_S)
        server = start("--supervised", "auto", "--daemonize", "yes", NOTIFY_SOCKET=str(tmp_path / "notify"))
        assert b"READY=1" in systemd.recv(1000)
        assert answers(server.port)
        server.stop()
        assert systemd.recv(1000) == b"STOPPING=1\n"


def test_unknown_directive_in_a_file_is_logged_as_a_warning(start: Callable[..., Started], tmp_path: Path) -> None:
    included = tmp_path / "x.conf"
    included.write_text("rename-command CONFIG x\n")
    server = start("--include", str(included))
    until(lambda: answers(server.port))
    assert " # Unknown directive 'rename-command'" in server.log.read_text()
