"""The store does not grow while what is in it does not: whoever else has it open, and whatever they do.

An hour's commits, one every three seconds, in as few seconds as they take. Between two checkpoints no page is used
again, so there is a checkpoint after each minute, and nothing here depends on how fast a disk is.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from event_source import EventSource
from http_server import HttpServer
from patience import until
from peer import Peer
from server_process import Serve, ServerProcess

from rlite_pubsub.storage.pages import meta, readers

MINUTES, COMMITS = 60, 20
KEPT = 300
MOST_BYTES = 6 << 20
"""An hour's commits take 22 MB where no page is used again."""

SET_ONCE = "client.set('once', 'x')"
DURABLE = """
client.close()
client = rlite_pubsub.Redis(sys.argv[1], client_name="durable:d")
pubsub = client.pubsub()
pubsub.subscribe("news")
assert pubsub.get_message(timeout=60)["type"] == "subscribe"
"""
BLOCKED_READER = """
client.xadd("other", {"a": "b"})
import threading
threading.Thread(target=lambda: client.xread({"other": "$"}, block=0), daemon=True).start()
"""
PROGRAM = """
import sys, rlite_pubsub
client = rlite_pubsub.Redis(sys.argv[1], **OPTIONS)
WORK
print("done", flush=True)
sys.stdin.read()
"""


class Program:
    """A process without a server, which does its work and then sleeps."""

    def __init__(self, folder: Path, work: str, **options: str) -> None:
        source = PROGRAM.replace("OPTIONS", repr(options)).replace("WORK", work)
        self.process = subprocess.Popen(
            [sys.executable, "-c", source, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "done\n"

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def used_bytes(folder: Path) -> int:
    """How far the file has ever been written."""
    descriptor = os.open(folder / "data.mdb", os.O_RDONLY)
    try:
        found = meta.read(descriptor)
    finally:
        os.close(descriptor)
    assert found is not None
    return found.used_bytes


def readers_of(folder: Path) -> list[readers.TableLine]:
    """Who holds pages, as another process sees it."""
    look = (
        "import lmdb, sys;"
        "print(lmdb.Environment(sys.argv[1], subdir=False, readonly=True, max_readers=4096).readers())"
    )
    words = [sys.executable, "-c", look, str(folder / "data.mdb")]
    return readers.table(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def holds_nothing(folder: Path, pid: int) -> bool:
    return all(reader.pid != pid for reader in readers_of(folder))


def an_hour(peer: Peer) -> None:
    for _ in range(MINUTES):
        for _ in range(COMMITS):
            assert isinstance(peer.do("XADD", "t", "MAXLEN", KEPT, "*", "a", "x" * 20), bytes)
        assert peer.do("SAVE") == b"OK"


def assert_does_not_grow(server: ServerProcess) -> None:
    with server.connect() as peer:
        an_hour(peer)
    assert used_bytes(server.store_folder) < MOST_BYTES


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_store_of_a_server_does_not_grow(serve: Serve, policy: str) -> None:
    assert_does_not_grow(serve("--appendfsync", policy))


@pytest.mark.parametrize(
    ("work", "policy"),
    [
        (SET_ONCE, "always"),
        (SET_ONCE, "everysec"),
        (SET_ONCE, "no"),
        (DURABLE, "everysec"),
        (BLOCKED_READER, "everysec"),
    ],
    ids=["always", "everysec", "no", "durable", "reader"],
)
def test_store_does_not_grow_beside_a_program_that_sleeps(serve: Serve, work: str, policy: str) -> None:
    server = serve()
    with closing(Program(server.store_folder, work, appendfsync=policy)) as program:
        until(lambda: holds_nothing(server.store_folder, program.process.pid), "the program's rest")
        assert_does_not_grow(server)


def test_store_does_not_grow_behind_a_program_that_was_killed_while_it_wrote(serve: Serve) -> None:
    server = serve()
    Program(server.store_folder, SET_ONCE).close()
    assert_does_not_grow(server)


def test_store_does_not_grow_beside_a_program_that_is_stopped_once_it_is_idle(serve: Serve) -> None:
    server = serve()
    with closing(Program(server.store_folder, SET_ONCE)) as program:
        until(lambda: holds_nothing(server.store_folder, program.process.pid), "the program's rest")
        program.process.send_signal(signal.SIGSTOP)
        assert_does_not_grow(server)


def test_store_does_not_grow_beside_another_server_that_has_nothing_to_do(serve: Serve) -> None:
    server, other = serve(), serve()
    with other.connect() as peer:
        peer.do("SET", "once", "x")
    until(lambda: holds_nothing(server.store_folder, other.pid), "its rest")
    assert_does_not_grow(server)


def test_store_does_not_grow_beside_a_process_that_seals(serve: Serve) -> None:
    pytest.importorskip("pyarrow")
    server = serve("--cold-store", "local")
    until(lambda: (server.store_folder / "sealer.lock").exists(), "the sealing process")
    until(lambda: not readers_of(server.store_folder), "everybody's rest")
    assert_does_not_grow(server)


def test_store_does_not_grow_beside_streams_of_events(serve_http: Callable[..., HttpServer]) -> None:
    server = serve_http()
    with server.connect() as peer, ExitStack() as streams:
        peer.do("XADD", "t", "*", "a", "b")
        for path in ("/api/events", "/api/topics/t"):
            source = EventSource(server.http_port, path=path, Accept="text/event-stream")
            streams.enter_context(closing(source))
            assert source.response.status == 200
        assert_does_not_grow(server)


def test_program_of_its_own_does_not_let_its_store_grow(tmp_path: Path) -> None:
    work = f"""
for minute in range({MINUTES}):
    for second in range({COMMITS}):
        client.xadd("t", {{"a": "x" * 20}}, maxlen={KEPT})
    client.save()
"""
    with closing(Program(tmp_path / "store", work)):
        assert used_bytes(tmp_path / "store") < MOST_BYTES


def test_file_that_grows_without_a_checkpoint_has_one_at_once(serve: Serve) -> None:
    """A burst: what is behind the last checkpoint is bounded, whatever appendfsync says."""
    server = serve("--appendfsync", "no")
    with server.connect() as peer:
        before = _saved(server)
        until(lambda: peer.do("SET", "a", "x" * 100_000) == b"OK" and _saved(server) > before + 1, "a checkpoint")


def _saved(server: ServerProcess) -> int:
    from rlite_pubsub.storage.boot import boot_id
    from rlite_pubsub.storage.checkpoints.checkpoint import saved

    return saved(server.store_folder / "data.mdb", boot_id())
