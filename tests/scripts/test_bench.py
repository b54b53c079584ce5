"""scripts/bench runs, says what it measured, reports what it could not, and leaves no server behind."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S, until

BENCH = Path(__file__).resolve().parents[2] / "scripts" / "bench"
REDIS = shutil.which("redis-server")
AS_OURS = 'redis-server --port {port} --bind 127.0.0.1 --dir {dir} --save "" --appendonly no'

needs_redis = pytest.mark.skipif(REDIS is None, reason="redis-server is not installed")
needs_our_own = pytest.mark.skipif(
    not (Path(sys.executable).parent / "rlite-pubsub").exists(), reason="rlite-pubsub is not beside this Python"
)
needs_arrow = pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="there is no pyarrow")
needs_spark = pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None or (shutil.which("java") is None and "JAVA_HOME" not in os.environ),
    reason="there is no pyspark, or no java",
)


def bench(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def rows(output: str) -> list[list[str]]:
    """The cells of the table's rows, without its head."""
    table = [line for line in output.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def servers_in(folder: Path) -> list[int]:
    """The processes that work inside the folder, be it deleted or not: redis-server goes to its --dir."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd").startswith(f"{folder}/"):
                found.append(int(entry.name))
        except OSError:
            continue  # it ended while we looked
    return found


def test_a_thread_that_ends_while_it_is_looked_at_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH.parent))
    process = importlib.import_module("benchmark.process")
    read_text = Path.read_text

    def read_of_the_living(file: Path) -> str:
        if file.name == "schedstat":
            raise ProcessLookupError  # what the kernel says of a file that was opened in time
        return read_text(file)

    assert process.waited_seconds(os.getpid()) > 0
    monkeypatch.setattr(Path, "read_text", read_of_the_living)
    assert process.waited_seconds(os.getpid()) == 0


@needs_redis
def test_both_servers_are_measured_on_the_shapes_asked_for(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    run = bench("--quick", "--only", "publish-pipelined-50,fanout-10", "--ours", AS_OURS, "--json", str(report))
    assert run.returncode == 0, run.stdout + run.stderr
    assert [row[0] for row in rows(run.stdout)] == ["publish-pipelined-50", "fanout-10"]
    for row in rows(run.stdout):
        assert row[5].endswith("x") and row[-1] in ("yes", "**no**"), row
    shapes = json.loads(report.read_text())["shapes"]
    for shape in shapes:
        servers = shape["figures"][0]["servers"]
        assert set(servers) == {"Redis", "ours"}
        assert all(len(server["rounds"]) == 1 and server["median"] > 0 for server in servers.values())


SHARES_A_FOLDER = "server-wakeups"
"""Its server must be ours."""
OVER_HTTP = "sse-channel-100,sse-events-100,post-50-everysec,sse-replay,gateway-idle"
"""Likewise."""
COLD = "cold-replay,sealing"
"""Likewise, and it needs Arrow."""
BESIDE = ("link-", "backup-")
"""Likewise, with a process of its own beside the server."""
SPARK = ("spark-read-cold", "spark-read-server", "spark-stream", "spark-sink", "compaction", "pipeline-stats")
"""Likewise, and it needs Spark."""


PARTS = 4
SIBLINGS = ("-pipelined-50", "-redis")
"""Of a shape that is the same but for its depth or its other end: one of the two is enough."""


@needs_redis
@pytest.mark.parametrize("part", range(PARTS))
def test_every_shape_runs_to_its_end(part: int) -> None:
    """Some at a time: all of them take minutes beside other programs."""
    listed = [line.split()[0] for line in bench("--list").stdout.splitlines()]
    elsewhere = (SHARES_A_FOLDER, *OVER_HTTP.split(","), *COLD.split(","), *SPARK)
    chosen = [name for name in listed if name not in elsewhere and not name.startswith(BESIDE)]
    listed = [name for name in chosen if not name.endswith(SIBLINGS)][part::PARTS]
    run = bench("--quick", "--ours", AS_OURS, "--only", ",".join(listed))
    assert run.returncode == 0, run.stdout + run.stderr
    assert list(dict.fromkeys(row[0] for row in rows(run.stdout))) == listed


@needs_redis
@needs_our_own
def test_every_shape_of_http_runs_to_its_end() -> None:
    run = bench("--quick", "--only", OVER_HTTP)
    assert run.returncode == 0, run.stdout + run.stderr
    assert list(dict.fromkeys(row[0] for row in rows(run.stdout))) == OVER_HTTP.split(",")


@needs_redis
@needs_our_own
def test_every_shape_with_a_process_beside_runs_to_its_end() -> None:
    listed = [line.split()[0] for line in bench("--list").stdout.splitlines() if line.startswith(BESIDE)]
    listed = [name for name in listed if not name.endswith(SIBLINGS)]
    run = bench("--quick", "--only", ",".join(listed))
    assert run.returncode == 0, run.stdout + run.stderr
    assert list(dict.fromkeys(row[0] for row in rows(run.stdout))) == listed


@needs_redis
@needs_our_own
@needs_arrow
def test_every_shape_of_blocks_runs_to_its_end() -> None:
    run = bench("--quick", "--only", COLD)
    assert run.returncode == 0, run.stdout + run.stderr
    assert list(dict.fromkeys(row[0] for row in rows(run.stdout))) == COLD.split(",")
    ((*_, met),) = [row for row in rows(run.stdout) if row[1].startswith("rate, entries")]
    assert met in ("yes", "**no**"), run.stdout


@needs_redis
@needs_our_own
@needs_arrow
@needs_spark
@pytest.mark.parametrize("name", SPARK)
def test_every_shape_of_spark_runs_to_its_end(name: str) -> None:
    run = bench("--quick", "--only", name)
    assert run.returncode == 0, run.stdout + run.stderr
    found = rows(run.stdout)
    assert {row[0] for row in found} == {name}
    assert found[0][-1] in ("yes", "**no**"), run.stdout


@needs_redis
@needs_our_own
def test_machine_without_java_is_told_and_what_it_can_do_is_measured(tmp_path: Path) -> None:
    assert REDIS is not None
    (tmp_path / "redis-server").symlink_to(REDIS)
    without = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    run = bench("--quick", "--only", "spark-read-cold,publish-pipelined-1", environment=without)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "- spark-read-cold: there is no java" in run.stdout
    *lacking, measured = rows(run.stdout)
    assert {(row[4], row[-1]) for row in lacking} == {("–", "–")}
    assert measured[-1] in ("yes", "**no**")


@needs_redis
def test_machine_without_frameworks_is_told(tmp_path: Path) -> None:
    bare = os.environ | {"RLITE_VENV": str(tmp_path), "NODE_PATH": str(tmp_path), "RLITE_TEST_NODE": "node"}
    shapes = ["bullmq-jobs"] if importlib.util.find_spec("celery") else ["celery-tasks", "bullmq-jobs"]
    run = bench("--quick", "--ours", AS_OURS, "--only", ",".join(shapes), environment=bare)
    assert run.returncode == 0, run.stdout + run.stderr
    for shape in shapes:
        assert f"- {shape}: " in run.stdout.partition("Not measured")[2], run.stdout
    assert {(row[4], row[-1]) for row in rows(run.stdout)} == {("–", "–")}


@needs_redis
def test_server_without_cold_store_is_a_failure_and_not_a_figure() -> None:
    forgetful = shlex.join(["sh", "-c", f"exec {AS_OURS}"])  # which does not take the words for a cold store
    run = bench("--quick", "--only", "cold-replay", "--ours", forgetful)
    assert run.returncode == 1
    assert "TOPIC.INFO was answered b\"-ERR unknown command" in run.stdout
    assert rows(run.stdout)[0][4] == "failed"


@needs_redis
def test_server_without_http_is_a_failure_and_not_a_figure() -> None:
    deaf = shlex.join(["sh", "-c", f"exec {AS_OURS}"])  # which does not take the words for a port of HTTP
    run = bench("--quick", "--only", "post-50-everysec", "--ours", deaf)
    assert run.returncode == 1
    assert "Connection refused" in run.stdout
    assert rows(run.stdout)[0][4] == "failed"


@needs_redis
@needs_our_own
def test_batches_to_a_server_are_counted_by_their_bells() -> None:
    run = bench("--quick", "--only", SHARES_A_FOLDER)
    assert run.returncode == 0, run.stdout + run.stderr
    ((*_, met),) = rows(run.stdout)
    assert met == "yes", run.stdout


@needs_redis
def test_server_that_does_not_share_the_folder_is_a_failure_and_not_a_figure() -> None:
    run = bench("--quick", "--only", SHARES_A_FOLDER, "--ours", AS_OURS)  # which does not hear what is in the folder
    assert run.returncode == 1
    assert "0 sessions hold the channel, and not 50" in run.stdout
    assert rows(run.stdout)[0][4] == "failed"


@needs_redis
@needs_our_own
def test_our_own_server_is_found_beside_python() -> None:
    run = bench("--quick", "--only", "publish-pipelined-1,fanout-1")
    assert run.returncode == 0, run.stdout + run.stderr


@needs_redis
def test_server_that_does_not_start_is_reported_and_the_other_is_still_measured() -> None:
    silent = shlex.join([sys.executable, "-c", "import sys; sys.exit('no such store')"])
    run = bench("--quick", "--only", "fanout-1", "--ours", silent)
    assert run.returncode == 1
    assert "no such store" in run.stdout
    (row,) = rows(run.stdout)
    assert row[4] == "failed" and row[3] not in ("failed", "–"), row


@needs_redis
def test_server_that_dies_in_mid_round_is_reported(tmp_path: Path) -> None:
    dying = tmp_path / "dying.py"
    dying.write_text(
        "import socket, sys\n"
        "listener = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
        "peer, _ = listener.accept()\n"
        "peer.recv(100)\n"
        "peer.sendall(b'+PONG\\r\\n')\n"
        "listener.accept()[0].recv(100)\n"
        "sys.exit('out of breath')\n"
    )
    run = bench(
        "--quick", "--only", "publish-pipelined-1", "--ours", shlex.join([sys.executable, str(dying), "{port}"])
    )
    assert run.returncode == 1
    assert "out of breath" in run.stdout


@needs_redis
def test_wrong_replies_are_a_failure_and_not_a_rate() -> None:
    renamed = AS_OURS + ' --rename-command PUBLISH ""'
    run = bench("--quick", "--only", "publish-50,publish-pipelined-1,fanout-1", "--ours", renamed)
    assert run.returncode == 1
    assert [row[4] for row in rows(run.stdout)] == ["failed"] * 3
    assert "unknown command" in run.stdout


@needs_redis
def test_entries_that_are_refused_are_a_failure_and_not_a_rate() -> None:
    renamed = AS_OURS + ' --rename-command XADD ""'
    run = bench("--quick", "--only", "xadd-50-everysec,xadd-pipelined-always", "--ours", renamed)
    assert run.returncode == 1
    assert [row[4] for row in rows(run.stdout)] == ["failed"] * 2
    assert "unknown command" in run.stdout


@needs_redis
def test_entries_that_are_lost_by_a_restart_are_a_failure_and_not_a_time() -> None:
    forgetful = shlex.join(["sh", "-c", f"exec {AS_OURS}"])  # which does not take the words for an AOF
    run = bench("--quick", "--only", "restart", "--entries", "1000", "--ours", forgetful)
    assert run.returncode == 1
    assert "answered b':0\\r\\n', expected b':1000" in run.stdout
    assert {row[4] for row in rows(run.stdout)} == {"failed"}


@needs_redis
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_leaves_no_server_and_no_folder(number: signal.Signals, tmp_path: Path) -> None:
    arguments = ["--only", "publish-pipelined-1", "--rounds", "1000", "--ours", AS_OURS]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    run = subprocess.Popen(
        [sys.executable, str(BENCH), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True,
    )  # fmt: skip
    try:
        until(lambda: servers_in(tmp_path) or run.poll() is not None, "a server")
        assert servers_in(tmp_path), "no server was started"
        run.send_signal(number)
        _, errors = run.communicate(timeout=PATIENCE_S)
    finally:
        run.kill()
        run.wait()
    assert run.returncode == 130, errors
    assert "interrupted" in errors
    assert list(tmp_path.iterdir()) == []
    assert servers_in(tmp_path) == []


def test_unknown_shape_is_refused_by_name() -> None:
    run = bench("--only", "fanout-7")
    assert run.returncode == 2
    assert "no such shape: fanout-7" in run.stderr
