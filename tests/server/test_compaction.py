"""Free pages are given back while servers and programs use the store, whoever is killed, and nothing else goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

from patience import PATIENCE_S, until
from peer import Peer, request
from server_process import Serve
from test_growth import Program, readers_of

import rlite_pubsub

MB = 1 << 20
ENTRY_BYTES = 10_000
KEPT = 20


def compact(folder: Path, failpoint: str = "") -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "rlite_pubsub", "compact", str(folder)]
    environment = os.environ | ({"RLITE_FAILPOINT": failpoint} if failpoint else {})
    return subprocess.run(words, capture_output=True, text=True, env=environment, timeout=PATIENCE_S)


def disk_bytes(folder: Path) -> int:
    return (folder / "data.mdb").stat().st_blocks * 512


def bloat(peer: Peer, megabytes: int = 30) -> list[bytes]:
    """Put much in, and take most of it out again; what is left."""
    for _ in range(megabytes):
        peer.send(request("XADD", "t", "*", "a", os.urandom(ENTRY_BYTES // 2).hex()) * 100)
        assert all(isinstance(reply, bytes) for reply in peer.replies(100))
    assert peer.do("XTRIM", "t", "MAXLEN", KEPT) > 0
    until(lambda: peer.do("SAVE") == b"OK")
    return list(peer.do("XRANGE", "t", "-", "+"))


def test_free_pages_are_given_back_while_servers_and_programs_write(serve: Serve) -> None:
    first, second = serve(), serve()
    with first.connect() as peer, second.connect() as other, rlite_pubsub.Redis(first.store_folder) as program:
        left = bloat(peer)
        assert disk_bytes(first.store_folder) > 25 * MB
        is_over = threading.Event()
        written = [0, 0]

        def write() -> None:
            while not is_over.is_set():
                other.do("XADD", "other", "*", "n", written[0])
                program.xadd("program", {"n": written[1]})
                written[0] += 1
                written[1] += 1

        writer = threading.Thread(target=write)
        writer.start()
        told = compact(first.store_folder)
        until(lambda: written[0] > 100)
        is_over.set()
        writer.join()
        assert told.returncode == 0, told.stderr
        assert "bytes were given back to the file system" in told.stdout
        until(lambda: compact(first.store_folder).returncode == 0 and disk_bytes(first.store_folder) < 16 * MB)
        assert peer.do("XRANGE", "t", "-", "+") == left
        for reader in (peer, other):
            for topic, count in (("other", written[0]), ("program", written[1])):
                entries = reader.do("XRANGE", topic, "-", "+")
                assert [fields[1] for _, fields in entries] == [b"%d" % number for number in range(count)]
        assert bloat(peer, 5)[-1] != left[-1]  # the holes are used again


def test_who_is_killed_while_it_compacts_harms_nobody(serve: Serve) -> None:
    server = serve()
    with server.connect() as peer:
        left = bloat(peer)
        for _ in range(5):
            assert compact(server.store_folder, "hole-punched").returncode == -signal.SIGKILL
            assert peer.do("XRANGE", "t", "-", "+") == left
            assert peer.do("SET", "a", "b") == b"OK"
        assert server.end(signal.SIGKILL) == -signal.SIGKILL
    again = serve()
    with again.connect() as peer:
        assert peer.do("XRANGE", "t", "-", "+") == left
        assert compact(again.store_folder).returncode == 0
        assert disk_bytes(again.store_folder) < 10 * MB
        assert peer.do("XRANGE", "t", "-", "+") == left


def test_server_compacts_as_often_as_it_is_told_to(serve: Serve) -> None:
    server = serve()
    with server.connect() as peer:
        left = bloat(peer)
        assert peer.do("CONFIG", "GET", "compact-every") == [b"compact-every", b"0"]
        assert disk_bytes(server.store_folder) > 25 * MB
        assert peer.do("CONFIG", "SET", "compact-every", 1) == b"OK"
        until(lambda: disk_bytes(server.store_folder) < 10 * MB, "room on the disk")
        assert peer.do("XRANGE", "t", "-", "+") == left
    until(lambda: "bytes of free pages were given back to the file system" in server.log(), "a word of it")


STUCK = """
from rlite_pubsub.storage.store import Store
import os, signal
client.close()
store = Store.open(sys.argv[1])
def read(txn):
    print("done", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    assert txn.get(b"\\0format")
    print("went on", flush=True)
store.data.read(read)
"""


def info(peer: Peer, field: str) -> str:
    text = peer.do("INFO", "store").decode()
    return next((line.partition(":")[2] for line in text.splitlines() if line.startswith(field + ":")), "")


def test_who_is_stopped_in_the_midst_of_reading_is_named_and_its_pages_are_kept(serve: Serve) -> None:
    server = serve()
    with closing(Program(server.store_folder, STUCK)) as stuck, server.connect() as peer:
        pid = stuck.process.pid
        assert any(reader.pid == pid for reader in readers_of(server.store_folder))
        bloat(peer, 5)
        until(lambda: info(peer, "old_readers") == "1", "the old reader")
        line = info(peer, "old_reader0")
        assert line.startswith(f"file=data.mdb,pid={pid},state=stopped,age_ms=")
        assert int(line.rpartition("=")[2]) > 4 * MB
        assert int(info(peer, "data_held_bytes")) > 4 * MB
        assert int(info(peer, "data_free_bytes")) >= int(info(peer, "data_held_bytes"))
        until(lambda: f"process {pid} (stopped) has been reading for" in server.log(), "the warning")
        told = compact(server.store_folder)
        assert f"process {pid} (stopped) reads data.mdb for " in told.stdout
        assert " s, and keeps " in told.stdout
        stuck.process.send_signal(signal.SIGCONT)
        assert stuck.process.stdout is not None
        assert stuck.process.stdout.readline() == "went on\n"
        until(lambda: info(peer, "old_readers") == "0", "nobody")
        assert f"pid {pid} " not in compact(server.store_folder).stdout
