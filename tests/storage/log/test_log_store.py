"""A store whose truth is the log keeps the promises that a store makes to those who use it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import until

import rlite_pubsub
from rlite_pubsub.storage.compaction import Compaction
from rlite_pubsub.storage.errors import StoreClosed, StoreFull, StoreHeld, StoreRemoved
from rlite_pubsub.storage.locks.gate import NestedTransaction
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.turn import Turn


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLITE_STORE_ENGINE", "log")
    monkeypatch.setenv("RLITE_STORE_WINDOW_BYTES", str(16 << 10))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def put(store: Store, key: bytes, value: bytes) -> None:
    store.data.write(lambda txn: txn.put(key, value))


def get(store: Store, key: bytes) -> bytes | None:
    return store.data.read(lambda txn: txn.get(key))


def test_work_that_fails_changes_nothing(store: Store) -> None:
    def fail(txn: Any) -> None:
        txn.put(b"Ka", b"1")
        raise KeyError

    with pytest.raises(KeyError):
        store.data.write(fail)
    assert get(store, b"Ka") is None
    put(store, b"Ka", b"2")
    assert get(store, b"Ka") == b"2"


def test_turn_reads_its_own_changes_and_others_see_them_at_its_end(store: Store) -> None:
    turn = Turn(store.data, lambda: None)
    txn = turn.begin(write=True)
    txn.put(b"Ka", b"1")
    assert store.data.read_along(lambda txn: txn.get(b"Ka")) == b"1"
    seen = list[bytes | None]()
    other = threading.Thread(target=lambda: seen.append(get(store, b"Ka")))
    other.start()
    other.join()
    turn.end(commit=True)
    assert turn.commits == 1
    assert seen == [None] and get(store, b"Ka") == b"1"
    turn.begin(write=False)
    assert turn.seen == store_commit(turn)
    turn.end(commit=False)
    assert turn.commits == 1


def store_commit(turn: Turn) -> int:
    assert turn.txn is not None
    return int(turn.txn.id())


def test_transaction_inside_another_is_refused(store: Store) -> None:
    with pytest.raises(NestedTransaction):
        store.data.read(lambda txn: store.data.read(lambda txn: None))


def test_quota_refuses_additions_and_lets_removals_through(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store", quota_bytes=1 << 20) as store:
        with pytest.raises(StoreFull):
            for number in range(1000):
                put(store, b"K%d" % number, bytes(4000))
        kept = store.data.read(lambda txn: len(list(txn.cursor().iternext())))
        assert 100 < kept < 400
        store.data.write(lambda txn: txn.delete(b"K0"), freeing=True)
        assert get(store, b"K0") is None and get(store, b"K1") == bytes(4000)


def test_what_is_written_over_and_over_does_not_fill_the_quota(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store", quota_bytes=1 << 20) as store:
        for number in range(3000):
            put(store, b"K%d" % (number % 20), bytes(4000))
        assert store.data.account.sizes().live < 300_000


@pytest.mark.parametrize("value_bytes", [100, 1500, 9000])
def test_estimate_of_what_there_is_is_near_what_there_is_once_it_is_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value_bytes: int
) -> None:
    monkeypatch.setenv("RLITE_STORE_WINDOW_BYTES", str(16 << 20))
    with Store.open(tmp_path / "store", quota_bytes=1 << 30) as store:
        dice = random.Random(1)

        def fill(txn: Any) -> None:
            for _ in range(3000):
                txn.put(b"K" + dice.randbytes(8), bytes(value_bytes))

        for _ in range(2):
            store.data.write(fill)
            estimate = store.data.account.sizes().live
            store.data.guard(lambda txn: store.data.log.bring_all_home())  # type: ignore[attr-defined]
            assert 0.6 < store.data.account.sizes().live / estimate < 1.7

        def remove(txn: Any) -> None:
            for key, _ in list(txn.cursor().iternext()):
                if key != b"\0log":
                    txn.delete(key)

        store.data.write(remove, freeing=True)
        assert store.data.account.sizes().live < estimate / 3


def test_what_is_removed_makes_room_at_once(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store", quota_bytes=1 << 20) as store:
        for _ in range(20):
            with pytest.raises(StoreFull):
                for number in range(1000):
                    put(store, b"K%d" % number, bytes(4000))
            for number in range(0, 100, 2):
                store.data.write(lambda txn: txn.delete(b"K%d" % number), freeing=True)  # noqa: B023


def test_windows_are_brought_home_by_themselves(store: Store) -> None:
    for number in range(200):
        put(store, b"K%d" % number, bytes(1000))
    log = store.data.log  # type: ignore[attr-defined]
    until(lambda: store.data.read(lambda txn: len(log.windows)) == 1)
    assert log.active.number > 5 and get(store, b"K0") == bytes(1000)


def test_store_is_as_it_was_when_it_is_opened_again(tmp_path: Path) -> None:
    for life in range(3):
        with Store.open(tmp_path / "store") as store:
            assert [get(store, b"K%d" % before) for before in range(life)] == [b"%d" % before for before in range(life)]
            put(store, b"K%d" % life, b"%d" % life)
    with pytest.raises(StoreClosed):
        get(store, b"K0")


def test_store_that_is_no_longer_at_its_path_refuses_every_use(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        (tmp_path / "store").rename(tmp_path / "moved")
        assert not store.is_in_place()
        with pytest.raises(StoreRemoved):
            put(store, b"Ka", b"1")


OF_PAGES = """
import os, signal, sys
from rlite_pubsub import Redis
client = Redis(sys.argv[1])
for number in range(500):
    client.set(f"k{number}", "x" * number)
client.rpush("list", *range(1000))
print("written", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("times", [1, 2])
def test_store_of_pages_that_was_killed_becomes_one_with_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    monkeypatch.setenv("RLITE_STORE_ENGINE", "pages")
    for _ in range(times):
        done = subprocess.run([sys.executable, "-c", OF_PAGES, str(tmp_path / "store")], stdout=subprocess.PIPE)
        assert done.stdout == b"written\n"
    monkeypatch.setenv("RLITE_STORE_ENGINE", "log")
    for _ in range(2):
        with rlite_pubsub.Redis(tmp_path / "store") as client:
            assert client.mget([f"k{number}" for number in range(500)]) == [b"x" * number for number in range(500)]
            assert client.llen("list") == 1000 * times
            client.set("k0", "")
        names = {path.name for path in (tmp_path / "store").iterdir()}
        assert not names & {"data.safe", "data.delta", "data.journal"} and any(map("data.log.1".__eq__, names))


OTHER = """
import sys
from rlite_pubsub.storage.store import Store
with Store.open(sys.argv[1]) as store:
    print("open", flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "put":
            store.data.write(lambda txn: txn.put(words[1].encode(), words[2].encode()))
            print("done", flush=True)
        elif words[0] == "get":
            print(store.data.read(lambda txn: txn.get(words[1].encode())), flush=True)
        elif words[0] == "hold":
            def hold(txn):
                print("holds", flush=True)
                sys.stdin.readline()
            store.data.write(hold)
            print("done", flush=True)
"""


class Other:
    """Another process that has the store open."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.line() == "open"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def say(self, text: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.line()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture
def other(store: Store) -> Iterator[Other]:
    made = Other(store.folder)
    yield made
    made.end()


def test_processes_see_each_others_commits_at_once(store: Store, other: Other) -> None:
    for number in range(100):
        put(store, b"Kour%d" % number, bytes(300))
        assert other.say(f"put Ktheir{number} {'x' * 300}") == "done"
        assert get(store, b"Ktheir%d" % number) == b"x" * 300
    assert other.say("get Kour0") == repr(bytes(300)) and other.say("get Kour99") == repr(bytes(300))


def test_writer_that_is_stopped_is_named_and_its_death_frees_the_lock(store: Store, other: Other) -> None:
    assert other.say("hold") == "holds"
    os.kill(other.process.pid, signal.SIGSTOP)
    store.wait_for_writers(0.05)
    assert get(store, b"Ka") is None  # whoever reads waits for nobody
    with pytest.raises(StoreHeld, match=str(other.process.pid)):
        put(store, b"Ka", b"1")
    other.process.kill()
    other.process.wait()
    store.wait_for_writers(5)
    put(store, b"Ka", b"1")
    assert get(store, b"Ka") == b"1"


def test_forked_child_has_no_open_store_and_the_parents_goes_on(store: Store) -> None:
    put(store, b"Ka", b"1")
    pid = os.fork()
    if pid == 0:
        try:
            get(store, b"Ka")
        except StoreClosed:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    put(store, b"Ka", b"2")
    assert get(store, b"Ka") == b"2"


def test_compaction_brings_what_is_left_into_a_fresh_file_while_others_have_it_open(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with Store.open(folder) as store:
        for number in range(300):
            put(store, b"K%d" % number, bytes(40_000))
        store.data.write(lambda txn: [txn.delete(b"K%d" % number) for number in range(290)], freeing=True)
        code = """
from pathlib import Path
from rlite_pubsub.storage.store import Store
import sys
with Store.open(Path(sys.argv[1])) as store:
    print(store.data.read(lambda txn: len(txn.get(b"K299"))), flush=True)
    sys.stdin.readline()
    print(store.data.read(lambda txn: len(txn.get(b"K299"))), flush=True)
    store.data.write(lambda txn: txn.put(b"Kmore", b"1"))
"""
        words = [sys.executable, "-c", code, str(folder)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdin is not None and other.stdout is not None
            assert other.stdout.readline() == "40000\n"
            compaction = Compaction(store)
            while compaction.step():
                pass
            assert compaction.given_back > 8 << 20
            assert not (folder / "data.mdb").exists() and (folder / "data.2.mdb").stat().st_size < 4 << 20
            assert other.communicate("\n")[0] == "40000\n" and other.returncode == 0
        assert store.data.read(lambda txn: txn.get(b"Kmore")) == b"1"
        compaction = Compaction(store)
        while compaction.step():
            pass
        assert compaction.given_back == 0, "there was nothing to be had"
    with Store.open(folder) as store:
        assert store.data.read(lambda txn: txn.get(b"K0")) is None
        assert store.data.read(lambda txn: txn.get(b"K295")) == bytes(40_000)


def test_forked_child_opens_the_store_by_itself_and_leaves_the_parent_s_alone(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        put(store, b"Ka", b"1")
        for number in range(3):
            pid = os.fork()
            if pid == 0:
                try:
                    with Store.open(tmp_path / "store") as again:
                        assert get(again, b"Ka") == b"1"
                        put(again, b"K%d" % number, b"child")
                    os._exit(0)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
            assert os.waitpid(pid, 0)[1] == 0
            assert get(store, b"K%d" % number) == b"child"
            put(store, b"K%d" % number, b"parent")


def mapped_bytes(path: Path) -> int:
    """How much of a file this process has in its memory."""
    found, is_of_it = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if line.endswith(str(path)):
            is_of_it = True
        elif is_of_it and line.startswith("Rss:"):
            found += int(line.split()[1]) * 1024
            is_of_it = False
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc/self/smaps")
def test_pages_that_were_read_can_be_forgotten_but_while_somebody_reads(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        for number in range(200):
            put(store, b"K%03d" % number, bytes(40_000))
        store.data.guard(lambda txn: store.data.log.bring_all_home())  # type: ignore[attr-defined]
        log = store.data.log  # type: ignore[attr-defined]
        until(lambda: len(log.windows) == 1, "an end of what a thread is bringing")

        def read(txn: Any) -> int:
            total = sum(len(value) for _, value in txn.cursor().iternext())
            if is_to_forget:
                threading.Thread(target=store.data.forget_pages).start()
            return total

        is_to_forget = False
        store.data.read(read)
        assert mapped_bytes(tmp_path / "store" / "data.mdb") > 6 << 20

        def is_forgotten() -> bool:
            store.data.forget_pages()  # not while a window is being brought home
            return mapped_bytes(tmp_path / "store" / "data.mdb") < 2 << 20

        until(is_forgotten, "less memory")
        is_to_forget = True
        assert store.data.read(read) >= 8_000_000
        assert get(store, b"K000") == bytes(40_000)
