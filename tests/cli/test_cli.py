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
from installed import IS_INSTALLED
from patience import PATIENCE_S, until
from ports import free_port

from rlite_pubsub.build import is_compiled
from rlite_pubsub.cli import command_line
from rlite_pubsub.engine.settings import themes
from rlite_pubsub.engine.settings.directives import DIRECTIVES
from rlite_pubsub.version import __version__

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "rlite_pubsub"]
LOG_LINE = re.compile(r"^\d+:M \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d\.\d{3} [.*#-] \S")


def answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as peer:
            peer.sendall(b"PING\r\n")
            return peer.recv(100) == b"+PONG\r\n"
    except OSError:
        return False


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *args], capture_output=True, text=True, timeout=PATIENCE_S)


def run_without(modules: list[str], *words: str) -> subprocess.CompletedProcess[str]:
    """As where these are not installed."""
    hide = f"sys.modules.update(dict.fromkeys({modules!r})); find = importlib.util.find_spec"
    finding = f"importlib.util.find_spec = lambda name, *more: None if name in {modules!r} else find(name, *more)"
    code = f"import sys, importlib.util; {hide}; {finding}; from rlite_pubsub.cli import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=PATIENCE_S)


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
    assert "unknown command nosuch" in capsys.readouterr().err


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


def test_directives_of_redis_that_do_nothing_are_said_once_in_one_line(
    start: Callable[..., Started], tmp_path: Path
) -> None:
    included = tmp_path / "x.conf"
    included.write_text("rename-command CONFIG x\nsave 900 1\nsave 300 10\n")
    server = start("--include", str(included))
    until(lambda: answers(server.port))
    assert server.log.read_text().count(" # Directives of Redis that do nothing here: save, rename-command\n") == 1


def test_start_logs_version_store_retention_durability_and_addresses(
    start: Callable[..., Started], tmp_path: Path
) -> None:
    http_port = free_port()
    flags = "--http-port", str(http_port), "--appendfsync", "always", "--retain", "orders.* 7d", "--requirepass", "x"
    server = start(*flags, "--maxmemory", "64mb")
    until(lambda: server.log.exists() and "Ready to accept" in server.log.read_text())
    said = server.log.read_text()
    for line in (
        rf"rlite-pubsub {__version__}, (compiled|pure Python), Python 3\.",
        rf"Store: {tmp_path}/store, [0-9.]+ kB in use, [0-9.]+ kB in free pages, [0-9.]+ .B on the disk",
        r"Retention: topics and channels as retain says \(orders\.\* 7d\); keys up to maxmemory 64.0 MB$",
        r"Durability: appendfsync always \(every write is on the disk before it is answered\)",
        rf"Redis: redis://127\.0\.0\.1:{server.port}; a password is set$",
        rf"Page and HTTP: http://127\.0\.0\.1:{http_port}/$",
    ):
        assert re.search(line, said, re.MULTILINE), (line, said)


def test_help_of_serve_names_the_directives_by_theme_with_their_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["serve", "--help"]) == 0
    told = capsys.readouterr().out
    assert "--http-port NUMBER" in told and "(default: 6379)" in told
    assert told.index("--http-port") < told.index("The store:") < told.index("TLS:")
    assert "--io-threads" not in told
    assert command_line.main(["serve", "--help", "all"]) == 0
    assert "--io-threads" in capsys.readouterr().out


def test_every_directive_with_a_meaning_has_a_theme() -> None:
    themed = [name for names in themes.THEMES.values() for name in names]
    assert sorted(themed) == sorted(name for name, each in DIRECTIVES.items() if each.meaning)
    assert not themes.THEMES["More"], "say in engine/settings/themes.py what these are about"


@pytest.mark.parametrize("word", list(command_line.SUBCOMMANDS))
def test_each_command_declares_its_options_and_what_it_does(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.parser_of([word]).parse_args([word, "--help"])
    assert ended.value.code == 0
    assert command_line.SUBCOMMANDS[word].word in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["tial", "x"], "unknown command tial; did you mean tail? Try rlite-pubsub --help."),
        (["tail", "--frm", "10m", "x"], "unknown option --frm; did you mean --from? Try rlite-pubsub tail --help."),
        (["doctor", "--json"], "unknown option --json. Try rlite-pubsub doctor --help."),
        (["cold", "list", "--blcks"], "unknown option --blcks; did you mean --blocks? Try"),
        (["publish", "a", "b", "c"], "rlite-pubsub publish: unexpected argument 'c'. Try"),
    ],
)
def test_mistake_is_answered_with_what_was_probably_meant(words: list[str], told: str) -> None:
    ended = run(*words)
    assert ended.returncode != 0
    assert told in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["pipeline", "stats", "orders"], ["pipeline", "archive", "orders", "--to", "x"], ["cold", "list"]]
)
def test_missing_extra_is_named_with_a_command_that_works_here(words: list[str], tmp_path: Path) -> None:
    without = run_without(["pyspark", "pyarrow"], *words)
    assert without.returncode == 1
    extra = "cold" if words[0] == "cold" else "spark"
    assert f"needs the extra `{extra}`" in without.stderr
    place = rf"--editable '{ROOT}\[{extra}\]'" if not IS_INSTALLED else rf"'rlite-pubsub\[{extra}\]'"
    pip = rf"{sys.executable} -m pip|pip --python {sys.executable}"
    assert re.search(rf"({pip}) install {place}$", without.stderr.rstrip())


@pytest.mark.parametrize(
    ("job", "option"), [("stats", "--time-field"), ("compact", "--target-bytes"), ("verify", "--pattern")]
)
def test_help_of_a_job_shows_its_options_without_spark(job: str, option: str) -> None:
    assert option in run_without(["pyspark", "pyarrow"], "pipeline", job, "--help").stdout
