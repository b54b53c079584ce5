"""Containers that share a store: each is a pid namespace of its own, in which the program is process 1."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import until
from peer import Peer
from ports import free_port

from rlite_pubsub.pubsub.reaping import reap_dead
from rlite_pubsub.storage.errors import StoreHeld
from rlite_pubsub.storage.pages import readers
from rlite_pubsub.storage.store import Store
from tests.faults.program import Program
from tests.soak.left import left_in

ALONE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


def may_unshare() -> bool:
    return shutil.which("unshare") is not None and not subprocess.run([*ALONE, "true"], capture_output=True).returncode


pytestmark = pytest.mark.skipif(not may_unshare(), reason="makes pid namespaces, which needs root and Linux")

Contain = Callable[..., "Container"]


class Container(Program):
    """A program that is process 1."""

    prefix = ALONE

    @property
    def pid(self) -> int:
        """As it is called out here."""
        return int(self._children().split()[0])

    def _children(self) -> str:
        """Of `unshare`; none once it has ended."""
        return Path(f"/proc/{super().pid}/task/{super().pid}/children").read_text()

    def kill(self) -> None:
        if self._children():
            os.kill(self.pid, signal.SIGKILL)
        self.end()


@pytest.fixture
def contain(folder: Path) -> Iterator[Contain]:
    containers: list[Container] = []

    def start(source: str, **options: Any) -> Container:
        containers.append(Container(folder, source, **options))
        return containers[-1]

    yield start
    for container in containers:
        container.clean_up()


COUNTS = """
assert os.getpid() == 1
client = rlite_pubsub.Redis(folder)
say("open")
while rounds := told():
    for _ in range(int(rounds)):
        number = client.incr("n")
    say(number)
client.close()
say("closed")
"""
SUBSCRIBES = """
client = rlite_pubsub.Redis(folder)
pubsub = client.pubsub()
pubsub.subscribe("news")
pubsub.get_message(timeout=PATIENCE_S)
say("subscribed")
while True:
    say(pubsub.get_message(timeout=PATIENCE_S)["data"])
"""
WRITES = """
store = rlite_pubsub.storage.store.Store.open(folder)
def write(txn):
    txn.put(b"~key", b"value")
    say("writing")
    told()
store.data.write(write)
say("written")
told()
"""
READS = """
store = rlite_pubsub.storage.store.Store.open(folder)
def read(txn):
    say("reading")
    told()
store.data.read(read)
"""
CANNOT_WRITE = """
from rlite_pubsub.storage.errors import StoreHeld
store = rlite_pubsub.storage.store.Store.open(folder)
store.wait_for_writers(0.05)
try:
    store.data.write(lambda txn: txn.put(b"~other", b""))
except StoreHeld as held:
    say(held)
store.data.writer.release_if_mine()  # as an interrupt does
told()
store.data.write(lambda txn: txn.put(b"~other", b""))
say(store.data.read(lambda txn: txn.get(b"~key")))
"""
NAMES_READERS = """
from rlite_pubsub.storage.pages import readers
data = rlite_pubsub.storage.store.Store.open(folder).data
(line,) = readers.table(data.handle.readers())
say(readers.name_of(line.number, data.handle.process_of(line.number)))
"""
IMPORT_STORE = "import rlite_pubsub.storage.store\n"
ROUNDS = 400


def test_programs_in_two_containers_write_at_the_same_time_and_every_write_counts(contain: Contain) -> None:
    both = contain(COUNTS), contain(COUNTS)
    for one in both:
        assert one.hear() == "open"
    for one in both:
        one.tell(f"{ROUNDS}")
    assert max(int(one.hear()) for one in both) == 2 * ROUNDS
    for one in both:
        one.tell()
        assert one.hear() == "closed"


def test_servers_in_two_containers_serve_one_store(tmp_path: Path) -> None:
    servers, peers = [], []
    try:
        for number in range(2):
            port = free_port()
            log = tmp_path / f"log{number}"
            words = ["serve", "--port", f"{port}", "--dir", f"{tmp_path}/store", "--logfile", f"{log}"]
            servers.append(subprocess.Popen([*ALONE, sys.executable, "-m", "rlite_pubsub", *words]))
            until(lambda log=log: log.exists() and "Ready to accept" in log.read_text(), "the server")
            peers.append(Peer(port))
        assert [peer.do("INCR", "n") for peer in peers] == [1, 2]
        assert peers[0].do("SUBSCRIBE", "news") == [b"subscribe", b"news", 1]
        assert peers[1].do("PUBLISH", "news", "hello") == 1
        assert peers[0].reply() == [b"message", b"news", b"hello"]
    finally:
        for server in servers:
            server.kill()
            server.wait()


def test_a_container_whose_program_is_killed_is_cleaned_up_after_and_the_living_one_is_not(
    contain: Contain, folder: Path
) -> None:
    dead, alive = contain(SUBSCRIBES), contain(SUBSCRIBES)
    assert (dead.hear(), alive.hear()) == ("subscribed", "subscribed")
    dead.kill()
    publisher = contain("with rlite_pubsub.Redis(folder) as client: say(client.publish('news', 'hello'))")
    assert (publisher.hear(), alive.hear()) == ("1", "hello")
    alive.kill()
    assert publisher.end() == 0
    with Store.open(folder) as store:
        reap_dead(store)
    assert left_in(folder) == []


def test_who_writes_in_another_container_is_neither_taken_for_ourselves_nor_for_its_namesake(contain: Contain) -> None:
    holder = contain(IMPORT_STORE + WRITES)
    assert holder.hear() == "writing"
    other = contain(IMPORT_STORE + CANNOT_WRITE)
    assert "thread 1 of a process in another pid namespace, such as another container, has been writing" in other.hear()
    holder.tell()
    assert holder.hear() == "written"
    other.tell()
    assert other.hear() == "value"


def test_who_writes_in_a_container_is_named_outside_as_it_is_called_there(contain: Contain, folder: Path) -> None:
    with Store.open(folder) as store:
        holder = contain(IMPORT_STORE + WRITES)
        assert holder.hear() == "writing"
        store.wait_for_writers(0.05)
        with pytest.raises(StoreHeld, match=f"process {holder.pid} "):
            store.data.write(lambda txn: txn.put(b"~other", b""))


def test_a_writer_that_is_killed_while_it_waits_for_its_namesake_leaves_it_the_lock(contain: Contain) -> None:
    holder = contain(IMPORT_STORE + WRITES)
    assert holder.hear() == "writing"
    waits = "store = rlite_pubsub.storage.store.Store.open(folder); say('waits')\nstore.data.write(lambda txn: None)"
    for _ in range(3):
        waiting = contain(IMPORT_STORE + waits)
        assert waiting.hear() == "waits"
        waiting.kill()
    third = contain(COUNTS)
    assert third.hear() == "open"
    third.tell("1")
    holder.tell()
    assert (holder.hear(), third.hear()) == ("written", "1")


def test_pages_that_a_container_reads_are_kept_and_those_of_a_killed_one_are_not(
    contain: Contain, folder: Path
) -> None:
    with Store.open(folder) as store:
        both = contain(IMPORT_STORE + READS), contain(IMPORT_STORE + READS)
        assert [one.hear() for one in both] == ["reading", "reading"]

        def reading() -> set[int]:
            store.data.handle.lmdb.reader_check()
            return {store.data.handle.process_of(line.number) for line in readers.table(store.data.handle.readers())}

        assert reading() >= {one.pid for one in both}
        left = both[1].pid
        both[0].kill()
        again = contain(IMPORT_STORE + READS)  # process 1 of a new namespace
        assert again.hear() == "reading"
        assert reading() - {os.getpid()} == {left, again.pid}


def test_a_reader_in_another_container_is_not_taken_for_its_namesake(contain: Contain) -> None:
    reader = contain(IMPORT_STORE + READS)
    assert reader.hear() == "reading"
    other = contain(IMPORT_STORE + NAMES_READERS)
    assert other.hear() == "process 1 in another pid namespace, such as another container,"
