"""Law 9 for disks: a server's loop waits for none. The disk stands still (stall/stall.c); who needs no disk goes on."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis
from other_process import OtherProcess
from patience import PATIENCE_S, until
from server_process import Serve, ServerProcess

from rlite_pubsub.storage.locks.reader_number import pid_in

HERE = Path(__file__).parent / "stall"
WRITES = """
client = rlite_pubsub.Redis(folder)
say("ready")
sys.stdin.readline()
client.set("theirs", "x" * 1000)
import signal
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.fixture(scope="session")
def stall(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    library = tmp_path_factory.mktemp("stall") / "stall.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, HERE / "stall.c", "-ldl"], check=True)
    return library


class Disk:
    """Of one server."""

    def __init__(self, folder: Path, library: Path) -> None:
        self._stall, self._notes = folder / "stall", folder / "stall-notes"
        store = folder / "store"
        store.mkdir(parents=True)
        self.environment = {
            "LD_PRELOAD": str(library),
            "RLITE_DISK_FOLDER": str(store),
            "RLITE_DISK_STALL": str(self._stall),
            "RLITE_DISK_NOTES": str(self._notes),
        }

    def stand_still(self) -> None:
        self._stall.touch()

    def go_on(self) -> None:
        self._stall.unlink(missing_ok=True)

    @property
    def notes(self) -> str:
        """What the loop has waited for."""
        return self._notes.read_text() if self._notes.exists() else ""


@pytest.fixture
def disk(tmp_path: Path, stall: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path, stall)
    yield disk
    disk.go_on()


@pytest.fixture
def ask() -> Iterator[Any]:
    with ThreadPoolExecutor(4) as threads:
        yield threads.submit


def wait_until_idle(server: ServerProcess) -> None:
    """All that it has written is safe, and it holds no page: nobody reads data.mdb."""
    until(lambda: not readers_of(server), "an idle server")


def readers_of(server: ServerProcess) -> list[int]:
    """The transactions that LMDB's table of readers has (lock.h): 64 bytes each behind 128, the first the number, and
    then which process it is."""
    table = (server.store_folder / "data.mdb-lock").read_bytes()[128:]
    rows = [table[at : at + 64] for at in range(0, len(table) - 63, 64)]
    of_server = [row for row in rows if pid_in(int.from_bytes(row[8:12], "little")) == server.pid]
    return [number for row in of_server if (number := int.from_bytes(row[:8], "little")) != 2**64 - 1]


def test_a_write_behind_what_others_have_left_unsafe_waits_and_the_loop_does_not(
    serve: Serve, disk: Disk, ask: Any
) -> None:
    server = serve("--writer-patience", "200", environment=disk.environment)
    client, other = redis.Redis(port=server.port), redis.Redis(port=server.port)
    client.set("ours", "1")
    with OtherProcess(server.store_folder, WRITES) as program:
        assert program.hear() == "ready"
        wait_until_idle(server)
        disk.stand_still()
        program.tell("now")
        until(lambda: other.get("theirs"), "what the program has written, and is stopped before it is safe")
        reply = ask(client.set, "ours", "2")
        for _ in range(200):
            assert other.ping()
            assert other.get("ours") == b"1"
            assert other.publish("news", "x") == 0
        assert not reply.done()
        disk.go_on()
        assert reply.result(PATIENCE_S)
        assert disk.notes == ""
        program.send_signal(signal.SIGCONT)
    assert other.get("ours") == b"2"
    client.close()
    other.close()


@pytest.mark.parametrize("policy", ["everysec", "no"])
def test_much_is_written_while_the_disk_stands_still(serve: Serve, disk: Disk, policy: str) -> None:
    server = serve("--appendfsync", policy, environment=disk.environment)
    with server.connect() as peer:
        peer.do("SET", "k", "v")
        disk.stand_still()
        for number in range(2000):
            assert peer.do("SET", f"k{number % 10}", "v" * 100) == b"OK"
        for number in range(200):
            assert peer.do("SET", f"large{number}", "v" * 100_000) == b"OK"
        assert disk.notes == ""
        disk.go_on()
    assert server.end() == 0


def test_a_store_near_its_quota_goes_on_while_the_disk_stands_still(serve: Serve, disk: Disk, ask: Any) -> None:
    server = serve("--store-quota", "20mb", "--writer-patience", "200", environment=disk.environment)
    client, other = redis.Redis(port=server.port), redis.Redis(port=server.port)
    for number in range(120):
        client.set(f"k{number}", "v" * 100_000)

    def rewrite() -> None:
        for number in range(600):
            client.set(f"k{number % 120}", "w" * 100_000)

    disk.stand_still()
    writing = ask(rewrite)
    for _ in range(300):
        assert other.ping()
        time.sleep(0.003)
    assert disk.notes == ""
    disk.go_on()
    writing.result(PATIENCE_S)
    assert other.get("k119") == b"w" * 100_000
    client.close()
    other.close()
