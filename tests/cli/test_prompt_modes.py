"""What `rlite-pubsub cli` does instead of a command, beside what redis-cli does on the same server."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
import redis
from patience import PATIENCE_S

from rlite_pubsub import Server
from rlite_pubsub.cli.prompt.options import REFUSED

COMMAND = [sys.executable, "-m", "rlite_pubsub", "cli"]
REDIS_CLI = pytest.mark.skipif(shutil.which("redis-cli") is None, reason="redis-cli is not installed")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(maxmemory="200mb") as server:
        client = redis.Redis(port=server.port)
        client.mset({f"key:{number}": number for number in range(30)})
        client.set(b"\xff\n", "")
        yield server


def run(words: list[str | bytes], text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(words, input=text, capture_output=True, timeout=PATIENCE_S)


def outcomes(*words: str | bytes, text: bytes = b"") -> list[tuple[bytes, int]]:
    """Output and exit status of redis-cli, and of ours."""
    found = [run([*program, *words], text) for program in (["redis-cli"], COMMAND)]
    return [(each.stdout, each.returncode) for each in found]


@contextmanager
def running(words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


@REDIS_CLI
def test_hot_keys_are_those_that_redis_cli_finds(server: Server) -> None:
    client = redis.Redis(port=server.port)
    client.config_set("maxmemory-policy", "allkeys-lfu")
    try:
        for number in range(30):
            for _ in range(number * 5):
                client.get(f"key:{number}")
        theirs, ours = outcomes("-p", str(server.port), "--hotkeys", "--pattern", "key:*")
        assert ours == theirs
        assert ours[0].count(b"hot key found with counter") == 16
    finally:
        client.config_set("maxmemory-policy", "noeviction")


@REDIS_CLI
def test_hot_keys_of_a_server_that_does_not_count_are_refused(server: Server) -> None:
    theirs, ours = outcomes("-p", str(server.port), "--hotkeys")
    assert ours == theirs
    assert ours[1] == 1
    refused = run([*COMMAND, "-p", str(server.port), "--hotkeys"])
    assert b"An LFU maxmemory policy is not selected" in refused.stderr


@REDIS_CLI
@pytest.mark.parametrize("form", ["--raw", "--csv", "--json"])
def test_latency_is_one_line_where_the_output_is_no_terminal(server: Server, form: str) -> None:
    theirs, ours = outcomes("-p", str(server.port), "--latency", "-i", "0.1", form)
    assert re.sub(rb"[\d.]+", b"0", ours[0]) == re.sub(rb"[\d.]+", b"0", theirs[0])
    assert ours[1] == theirs[1] == 0


def test_latency_and_its_history_are_redrawn_in_a_terminal_until_interrupted(server: Server) -> None:
    words = [*COMMAND, "-p", str(server.port), "--no-raw", "--latency-history", "-i", "0.05"]
    with running(words) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
    for line in lines:
        assert line.startswith(b"\x1b[0G\x1b[2Kmin: ")
        assert re.search(rb"min: \d+, max: \d+, avg: \d+\.\d\d \(\d+ samples\) -- \d+\.\d\d seconds range\n$", line)


@REDIS_CLI
def test_spectrum_of_latency_has_the_legend_and_the_buckets_of_redis_cli(server: Server) -> None:
    found = []
    for program in (["redis-cli"], COMMAND):
        with running([*program, "-p", str(server.port), "--latency-dist", "-i", "0.1"]) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(10)]
            found.append((lines[:8], [re.sub(rb"\x1b\[48;5;\d+m", b"", line) for line in lines[8:]]))
    theirs, ours = found
    assert ours == theirs


@REDIS_CLI
def test_writes_are_logged_as_they_reach_a_replica(server: Server) -> None:
    client = redis.Redis(port=server.port)
    with running([*COMMAND, "-p", str(server.port), "--replica"]) as ours:
        with running(["redis-cli", "-p", str(server.port), "--replica"]) as theirs:
            for process in (ours, theirs):
                _await(process.stderr, b"SYNC done. Logging commands from master.")
            client.set("logged", b"a\xff")
            client.delete("logged")
            lines = [_writes(process.stdout) for process in (ours, theirs)]
    assert lines[0] == lines[1] == [b'"SELECT","0"\n', b'"SET","logged","a\\xff"\n', b'"DEL","logged"\n']


def _await(stream: IO[bytes] | None, text: bytes) -> None:
    assert stream is not None
    while text not in (line := stream.readline()):
        assert line


def _writes(stream: IO[bytes] | None) -> list[bytes]:
    assert stream is not None
    found: list[bytes] = []
    while len(found) < 3:
        line = stream.readline()
        assert line
        if b"ping" not in line.lower():
            found.append(line)
    return found


def test_keys_are_fetched_into_an_rdb_file_that_is_whole_or_not_there(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "dump.rdb"
    done = run([*COMMAND, "-p", str(server.port), "--rdb", str(file)])
    assert (done.stdout, done.returncode) == (b"", 0)
    assert done.stderr.endswith(b"Transfer finished with success.\n")
    imported = run([sys.executable, "-m", "rlite_pubsub", "import", str(file), str(tmp_path / "store")])
    assert b"31 keys" in imported.stdout
    to_output = run([*COMMAND, "-p", str(server.port), "--rdb", "-"])
    assert to_output.stdout.startswith(b"REDIS0010")
    redis.Redis(port=server.port).acl_setuser("guest", enabled=True, nopass=True, commands=["+ping"])
    refused = run([*COMMAND, "-u", f"redis://guest:x@127.0.0.1:{server.port}", "--rdb", str(tmp_path / "none.rdb")])
    assert refused.returncode == 1
    assert b"SYNC failed: NOPERM" in refused.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["dump.rdb", "store"]


def test_store_without_a_server_has_no_replicas_and_says_what_to_do(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    run([*COMMAND, "-s", store, "--create", "SET", "a", "b"])
    for mode in (["--replica"], ["--rdb", str(tmp_path / "dump.rdb")]):
        refused = run([*COMMAND, "-s", store, *mode])
        assert refused.returncode == 1
        assert b"`rlite-pubsub export` writes a store's keys into an RDB file" in refused.stderr


@REDIS_CLI
def test_argument_is_read_from_standard_input_where_its_tag_stands(server: Server) -> None:
    place = ["-p", str(server.port)]
    dump = run([*COMMAND, *place, "--raw", "-D", "", "DUMP", "key:1"]).stdout
    theirs, ours = outcomes(*place, "-X", "tag", "RESTORE", "copy", "0", "tag", "REPLACE", text=dump)
    assert ours == theirs == (b"OK\n", 0)
    assert redis.Redis(port=server.port).get("copy") == b"1"
    theirs, ours = outcomes(*place, "-X", "nosuch", "GET", "copy")
    assert ours == theirs == (b"", 1)


@contextmanager
def answering(answers: dict[bytes, bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """The port of a server that answers these commands so, and the commands that it has been sent."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:  # shut down
                    return
                with peer:
                    while data := peer.recv(4096):
                        heard.append(data.split(b"\r\n")[2])
                        peer.sendall(answers[heard[-1]])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1], heard
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE_S)


@REDIS_CLI
@pytest.mark.parametrize("form", ["--raw", "--no-raw"])
@pytest.mark.parametrize(("kind", "told"), [(b"MOVED", [b"GET"]), (b"ASK", [b"ASKING", b"GET"])])
def test_redirection_is_followed_where_that_is_wanted(kind: bytes, told: list[bytes], form: str) -> None:
    with answering({b"ASKING": b"+OK\r\n", b"GET": b"$5\r\nthere\r\n"}) as (other, heard):
        with answering({b"GET": b"-%b 7 127.0.0.1:%d\r\n" % (kind, other)}) as (port, _):
            theirs, ours = outcomes("-p", str(port), "-c", form, "GET", "a")
            assert ours == theirs
            assert b"there" in ours[0]
            assert heard == told * 2
            theirs, ours = outcomes("-p", str(port), form, "GET", "a")
            assert ours == theirs
            assert kind in ours[0]


def test_redirection_that_is_refused_there_fails(server: Server) -> None:
    with answering({b"GET": b"-ASK 7 127.0.0.1:%d\r\n" % server.port}) as (port, _):
        refused = run([*COMMAND, "-p", str(port), "-c", "GET", "a"])
    assert (refused.stdout, refused.returncode) == (b"", 1)
    assert b"ASKING failed: ERR This instance has cluster support disabled" in refused.stderr


def test_redirections_that_do_not_end_are_given_up() -> None:
    answers: dict[bytes, bytes] = {}
    with answering(answers) as (port, heard):
        answers[b"GET"] = b"-MOVED 7 :%d\r\n" % port
        given_up = run([*COMMAND, "-p", str(port), "-c", "GET", "a"])
    assert given_up.returncode == 1
    assert b"redirected more than 16 times" in given_up.stderr
    assert len(heard) == 16


def test_machine_is_measured_without_a_server() -> None:
    measured = run([*COMMAND, "-p", "1", "--intrinsic-latency", "1"])
    assert measured.returncode == 0
    assert re.search(rb"^Max latency so far: \d+ microseconds\.$", measured.stdout, re.MULTILINE)
    assert re.search(rb"\n\n\d+ total runs \(avg latency: .* per run\)\.\nWorst run took \d+x longer", measured.stdout)


@pytest.mark.parametrize("option", REFUSED)
def test_option_of_redis_cli_that_is_not_here_is_refused_in_one_line_that_says_what_to_do(option: str) -> None:
    refused = run([*COMMAND, "-p", "1", option, "create", "127.0.0.1:1"])
    assert (refused.stdout, refused.returncode) == (b"", 1)
    assert refused.stderr.decode().startswith(f"rlite-pubsub cli: {option}: {REFUSED[option]}.")
    assert refused.stderr.count(b"\n") == 1
