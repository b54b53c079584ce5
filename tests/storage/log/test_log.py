"""A log keeps what was committed: through frozen windows and checkpoints, for all processes, and after any end."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import signal
import sys
import threading
import traceback
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import lmdb
import pytest

from rlite_pubsub.storage.log import home as home_module
from rlite_pubsub.storage.log import log as log_module
from rlite_pubsub.storage.log.home import opened_home, remove_older
from rlite_pubsub.storage.log.log import Log, OpenWindow
from rlite_pubsub.storage.log.transaction import POSITION, LogTransaction
from rlite_pubsub.storage.window.window import index_path, log_path

STORE = bytes(16)


@pytest.fixture(autouse=True)
def any_free_page_is_worth_a_fresh_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one is asked for. What is removed here is little."""
    monkeypatch.setattr(home_module, "_WORTH_BYTES", -1)
    monkeypatch.setattr(home_module, "_WORTH_DIVISOR", 1 << 40)


WINDOW_BYTES = 8 << 10


class FileLock:
    """A writer lock that dies with its holder."""

    def __init__(self, folder: Path) -> None:
        self._descriptor = os.open(folder / "writer", os.O_RDWR | os.O_CREAT)
        self._threads = threading.Lock()

    def take(self) -> bool:
        self._threads.acquire()
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        return True

    def release(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self._threads.release()


class Opened:
    """A log that is open in this process."""

    def __init__(self, folder: Path, *, is_alone: bool, window_bytes: int = WINDOW_BYTES) -> None:
        if is_alone:
            remove_older(folder)
        home = opened_home(folder, 256 << 20)
        self.log = Log(
            folder, home, STORE, FileLock(folder), is_alone=is_alone, window_bytes=window_bytes, now_ms=lambda: 0
        )

    def write(self, rows: dict[bytes, bytes | None]) -> int:
        txn = self.log.begin_writing()
        txn.change(dict(rows))
        self.log.commit(txn)
        return txn.id()

    def state(self) -> dict[bytes, bytes]:
        """All rows, as a walk finds them; each as it is found by its key."""
        txn = self.log.begin()
        try:
            rows = {key: value for key, value in txn.cursor().iternext() if key != POSITION}
            assert all(txn.get(key) == value for key, value in rows.items())
            return rows
        finally:
            self.log.end(txn)

    def close(self) -> None:
        self.log.close()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    made = Opened(tmp_path, is_alone=True)
    yield made
    made.close()


class Child:
    """A process that is forked now, while this one has nothing open, and does its work when it is told to."""

    def __init__(self, work: Callable[[], object]) -> None:
        ready, self._go = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._go)  # so that it ends with a parent that fails
            if not os.read(ready, 1):
                os._exit(2)
            try:
                work()
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        os.close(ready)

    def run(self) -> int:
        """Have it do its work; return how it ended."""
        self.start()
        return self.wait()

    def start(self) -> None:
        """Have it do its work."""
        os.write(self._go, b"!")
        os.close(self._go)

    def wait(self) -> int:
        """How it ended."""
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def test_what_was_committed_is_there_through_windows_and_checkpoints(opened: Opened) -> None:
    expected = dict[bytes, bytes]()
    chosen = random.Random(3)
    for number in range(600):
        rows: dict[bytes, bytes | None] = {b"k%d" % chosen.randrange(90): b"%d" % number for _ in range(4)}
        if number % 3 == 0:
            rows[b"k%d" % chosen.randrange(90)] = None
        assert opened.write(rows) == number + 1
        for key, value in rows.items():
            expected.pop(key, None)
            if value is not None:
                expected[key] = value
        if number % 50 == 0:
            assert opened.state() == expected
        if chosen.random() < 0.05:
            opened.log.checkpoint()
    assert opened.log.active.number > 4 and opened.state() == expected
    while opened.log.checkpoint():
        pass
    assert len(opened.log.windows) == 1 and opened.state() == expected


def test_snapshot_stays_as_it_was_while_windows_freeze_and_go(opened: Opened) -> None:
    opened.write({b"a": b"1", b"b": b"1"})
    before = opened.log.begin()
    for number in range(300):
        opened.write({b"a": b"%d" % number, b"c%d" % number: bytes(40)})
        opened.log.checkpoint()
    assert opened.log.active.number > 2
    assert before.get(b"a") == b"1" and before.get(b"c0") is None and before.cursor().set_range(b"c") is False
    assert before.id() == 1
    opened.log.end(before)
    assert opened.log._closing == []


def test_transaction_that_is_given_up_changes_nothing(opened: Opened) -> None:
    opened.write({b"a": b"1"})
    txn = opened.log.begin_writing()
    txn.put(b"a", b"2")
    assert txn.get(b"a") == b"2" and txn.id() == 2
    opened.log.give_up(txn)
    assert opened.state() == {b"a": b"1"} and opened.write({}) == 2 and opened.write({b"b": b""}) == 2


def test_transaction_larger_than_a_window_has_a_segment_of_its_own(opened: Opened) -> None:
    opened.write({b"a": b"1"})
    opened.write({b"large": bytes(5 * WINDOW_BYTES), b"b": b"2"})
    opened.write({b"many%d" % number: b"" for number in range(5000)})
    opened.write({b"a": b"3"})
    state = opened.state()
    assert len(state) == 5003 and state[b"large"] == bytes(5 * WINDOW_BYTES) and state[b"a"] == b"3"
    while opened.log.checkpoint():
        pass
    assert opened.state() == state


def test_files_of_windows_that_are_home_go(opened: Opened, tmp_path: Path) -> None:
    for number in range(400):
        opened.write({b"k%d" % number: bytes(100)})
    while opened.log.checkpoint():
        pass
    active = opened.log.active.number
    assert sorted(path.name for path in tmp_path.glob("data.*.[0-9]*")) == [f"data.idx.{active}", f"data.log.{active}"]


def compact(log: Log) -> None:
    """Bring everything home into a fresh file."""
    txn = log.begin_writing()
    log.freeze()
    log.give_up(txn)
    while log.checkpoint(is_asked_for=len(log.windows) == 2):
        pass


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("data*.mdb*"))


def test_what_was_deleted_is_given_back_to_the_file_system(tmp_path: Path) -> None:
    def other() -> None:
        mine = Opened(tmp_path, is_alone=False)
        txn = mine.log.begin()
        os.write(told, b"read")
        os.read(goes_on, 1)
        assert txn.get(b"k1") == bytes(100_000)
        mine.log.end(txn)
        assert len(mine.state()) == 11
        mine.write({b"more": b"1"})
        mine.close()

    (said, told), (goes_on, go_on) = os.pipe(), os.pipe()
    child = Child(other)
    opened = Opened(tmp_path, is_alone=True, window_bytes=4 << 20)
    for number in range(1000):
        opened.write({b"k%d" % number: bytes(100_000)})
    while opened.log.checkpoint():
        pass
    child.start()
    assert os.read(said, 4) == b"read"
    for number in range(990):
        opened.write({b"k%d" % number: None})
    opened.write({b"a": b"1"})
    opened.log.bring_all_home()
    assert files_of(tmp_path) == ["data.2.mdb", "data.2.mdb-lock"]
    assert (tmp_path / "data.2.mdb").stat().st_size < 8 << 20
    os.write(go_on, b"1")
    assert child.wait() == 0
    assert len(opened.state()) == 12
    opened.close()
    again = Opened(tmp_path, is_alone=True)
    assert len(again.state()) == 12
    compact(again.log)
    assert files_of(tmp_path) == ["data.3.mdb", "data.3.mdb-lock"] and len(again.state()) == 12
    again.close()


def test_file_whose_name_goes_while_it_is_opened_is_not_made_anew(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LMDB would make it, with nothing in it."""
    opened.write({b"a": b"1"})
    compact(opened.log)
    opened.close()
    (tmp_path / "data.2.mdb").rename(tmp_path / "data.3.mdb")
    found = [tmp_path / "data.2.mdb"]  # as it was a moment ago
    newest = home_module.newest
    monkeypatch.setattr(home_module, "newest", lambda folder: found.pop() if found else newest(folder))
    home = opened_home(tmp_path, 256 << 20)
    assert home.path.name == "data.3.mdb" and home.lmdb.stat()["entries"] == 2
    assert files_of(tmp_path) == ["data.3.mdb", "data.3.mdb-lock"]
    home.close()
    opened.__init__(tmp_path, is_alone=True)  # type: ignore[misc]
    assert opened.state() == {b"a": b"1"}


def test_fresh_file_for_which_there_is_no_room_is_made_later(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    opened.write({b"a": b"1"})
    with monkeypatch.context() as patch:
        patch.setattr(home_module, "sync", full)
        compact(opened.log)
    assert "No space left on device" in caplog.text
    assert files_of(tmp_path) == ["data.mdb", "data.mdb-lock"] and opened.state() == {b"a": b"1"}
    compact(opened.log)
    assert files_of(tmp_path) == ["data.2.mdb", "data.2.mdb-lock"] and opened.state() == {b"a": b"1"}


def test_writer_that_outruns_checkpoints_makes_them_itself(opened: Opened) -> None:
    for number in range(1500):
        opened.write({b"k%d" % number: bytes(100)})
        assert len(opened.log.windows) <= log_module.MOST_FROZEN + 1
    assert len(opened.state()) == 1500


def test_changes_between_two_places_are_told_until_their_segments_have_gone(opened: Opened) -> None:
    begin = opened.log.place()
    written = list[bytes]()
    for number in range(150):
        opened.write({b"k%d" % number: bytes(100)})
        written.append(b"k%d" % number)
    assert opened.log.active.number > 1
    end = opened.log.place()
    assert opened.log.changed(begin, end) == written and opened.log.changed(end, end) == []
    opened.log.checkpoint()
    assert opened.log.changed(begin, end) is None


# -- several processes


def test_process_that_comes_sees_all_and_is_seen(tmp_path: Path) -> None:
    def other() -> None:
        mine = Opened(tmp_path, is_alone=False)
        assert len(mine.state()) == 200
        for number in range(200):
            mine.write({b"o%d" % number: bytes(60)})
        mine.close()

    child = Child(other)
    opened = Opened(tmp_path, is_alone=True)
    for number in range(200):
        opened.write({b"k%d" % number: bytes(60)})
    assert child.run() == 0
    assert len(opened.state()) == 400
    opened.close()


def test_process_that_did_nothing_for_long_begins_anew(tmp_path: Path) -> None:
    def other() -> None:
        mine = Opened(tmp_path, is_alone=False)
        for number in range(1000):
            mine.write({b"o%d" % (number % 50): b"%d" % number * 20})
            mine.log.checkpoint()
        mine.close()

    child = Child(other)
    opened = Opened(tmp_path, is_alone=True)
    opened.write({b"a": b"1"})
    place = opened.log.place()
    assert child.run() == 0
    assert len(opened.state()) == 51 and opened.log.changed(place, opened.log.place()) is None
    opened.write({b"a": b"2"})
    assert opened.state()[b"a"] == b"2"
    opened.close()


ACCOUNTS = 40


def transfer(mine: Opened, chosen: random.Random, who: int, serial: int) -> int:
    """Move something between two accounts, and count: the sum of all of them stays."""
    txn = mine.log.begin_writing()
    one, other = (b"n%02d" % number for number in chosen.sample(range(ACCOUNTS), 2))
    amount = chosen.randrange(100)
    txn.put(one, b"%d" % (int(txn.get(one) or 0) - amount))
    txn.put(other, b"%d" % (int(txn.get(other) or 0) + amount))
    if chosen.random() < 0.3:
        txn.delete(b"x%d" % who)
    else:
        txn.put(b"x%d" % who, bytes(chosen.randrange(300)))
    txn.put(b"last%d" % who, b"%d" % serial)
    txn.put(b"commits", b"%d" % txn.id())
    mine.log.commit(txn)
    return txn.id()


def check(mine: Opened) -> int:
    """One snapshot is of one moment: the sum is what it always is, and the count of commits is its number."""
    txn = mine.log.begin()
    try:
        by_walk = dict[bytes, bytes]()
        cursor = txn.cursor()
        found = cursor.set_range(b"n")
        while found:
            by_walk[cursor.key()] = cursor.value()
            found = cursor.next()
        by_key = {key: txn.get(key) for key in by_walk}
        assert by_walk == by_key and sum(map(int, by_walk.values())) == 0, (by_walk, by_key)
        assert int(txn.get(b"commits") or 0) == txn.id()
        return txn.id()
    finally:
        mine.log.end(txn)


@pytest.mark.parametrize("seed", range(4))
def test_processes_that_are_killed_at_any_time_lose_nothing_and_break_no_snapshot(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    Opened(tmp_path, is_alone=True).close()
    acknowledged = {who: 0 for who in range(3)}
    for life in range(6):
        pipes = {who: os.pipe() for who in acknowledged}
        pids = {who: spawn(tmp_path, who, pipes[who][1], acknowledged[who], seed * 100 + life) for who in acknowledged}
        watcher = Opened(tmp_path, is_alone=False)
        seen = 0
        for _ in range(60):
            now = check(watcher)
            assert now >= seen
            seen = now
        for who in chosen.sample(list(pids), 3):
            os.kill(pids[who], signal.SIGKILL)
            if chosen.random() < 0.5:
                check(watcher)
        for who, pid in pids.items():
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
            os.close(pipes[who][1])
            with os.fdopen(pipes[who][0]) as said:
                told = said.read().splitlines()
            acknowledged[who] = max([acknowledged[who], *(int(line) for line in told[:-1])])
        watcher.close()
        again = Opened(tmp_path, is_alone=chosen.random() < 0.5)
        check(again)
        state = again.state()
        for who, serial in acknowledged.items():
            assert int(state.get(b"last%d" % who, b"0")) >= serial
            acknowledged[who] = int(state.get(b"last%d" % who, b"0"))
        again.close()
    assert sum(acknowledged.values()) > 100


def spawn(folder: Path, who: int, told: int, serial: int, seed: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        chosen = random.Random(seed * 10 + who)
        mine = Opened(folder, is_alone=False, window_bytes=4 << 10)
        while True:
            serial += 1
            transfer(mine, chosen, who, serial)
            os.write(told, b"%d\n" % serial)
            if chosen.random() < 0.1:
                mine.log.checkpoint()
            if chosen.random() < 0.03:
                compact(mine.log)
            if chosen.random() < 0.1:
                check(mine)
    except BaseException:
        traceback.print_exc()
        os._exit(7)


def test_threads_read_while_others_write_and_bring_home(tmp_path: Path) -> None:
    opened = Opened(tmp_path, is_alone=True)
    failures, is_over = list[BaseException](), threading.Event()

    def guarded(work: Callable[[], object]) -> threading.Thread:
        def run() -> None:
            try:
                while not is_over.is_set():
                    work()
            except BaseException as failure:
                failures.append(failure)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    bring = partial(opened.log.checkpoint, is_asked_for=True)
    threads = [guarded(lambda: check(opened)), guarded(lambda: check(opened)), guarded(bring)]
    chosen = random.Random(5)
    for serial in range(1500):
        transfer(opened, chosen, 0, serial)
    is_over.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert check(opened) == 1500
    opened.close()


class Interrupted:
    """LMDB's environment, in which something happens just before a snapshot of it is taken."""

    def __init__(self, environment: lmdb.Environment, meanwhile: Callable[[], object]) -> None:
        self._environment = environment
        self._meanwhile = [meanwhile]

    def begin(self, **options: bool) -> lmdb.Transaction:
        if self._meanwhile:
            self._meanwhile.pop()()
        return self._environment.begin(**options)

    def __getattr__(self, name: str) -> object:
        return getattr(self._environment, name)


def test_snapshot_is_of_one_moment_even_if_a_window_comes_home_while_it_is_taken(opened: Opened) -> None:
    def meanwhile() -> None:
        opened.write({b"a": b"2", b"b": b"2"})
        opened.log.freeze()
        assert not opened.log.checkpoint()

    opened.write({b"a": b"1"})
    opened.log._lmdb = Interrupted(opened.log.home.lmdb, meanwhile)  # type: ignore[assignment]
    txn = opened.log.begin()
    assert (txn.get(b"a"), txn.get(b"b"), txn.id()) in [(b"1", None, 1), (b"2", b"2", 2)]
    opened.log.end(txn)


def test_writer_goes_on_where_another_one_died_in_the_middle_of_a_record(opened: Opened, tmp_path: Path) -> None:
    opened.write({b"a": b"1"})
    with index_path(tmp_path, opened.log.active.number).open("r+b") as index:
        index.seek(128)
        index.write((1 << 12).to_bytes(8, sys.byteorder))  # a record was to end here
    opened.write({b"a": b"2"})
    assert opened.state() == {b"a": b"2"} and opened.log.active.window.is_whole()


# -- after any end


def crash(folder: Path) -> list[dict[bytes, bytes]]:
    """Write in a process that ends as by a power cut; return the states, commit by commit."""
    states: list[dict[bytes, bytes]] = [{}]
    for number in range(400):
        state = dict(states[-1])
        state[b"k%d" % (number % 37)] = b"%d" % number * 9
        states.append(state)

    def write() -> None:
        opened = Opened(folder, is_alone=True)
        for number in range(400):
            opened.write({b"k%d" % (number % 37): b"%d" % number * 9})
            if number == 150:
                opened.log.checkpoint()
        os._exit(0)

    assert Child(write).run() == 0
    return states


@pytest.mark.parametrize("seed", range(12))
def test_power_cut_leaves_a_state_that_was_committed(tmp_path: Path, seed: int) -> None:
    """What was not synced is lost in any order of sectors: the log is cut where the first one is missing."""
    states = crash(tmp_path)
    chosen = random.Random(seed)
    for path in tmp_path.glob("data.idx.*"):
        path.write_bytes(chosen.randbytes(100))  # never synced: it may be anything
    segments = sorted(tmp_path.glob("data.log.*"), key=lambda path: int(path.suffix[1:]))
    assert len(segments) > 2
    for path in segments:
        with path.open("r+b") as file:
            size = path.stat().st_size
            for _ in range(chosen.choice([0, 0, 1, 3])):
                file.seek(chosen.randrange(8, size // 512 + 1) * 512 if size > 8192 else 512)
                file.write(bytes(512))
    opened = Opened(tmp_path, is_alone=True)
    txn = opened.log.begin()
    commits = txn.id()
    opened.log.end(txn)
    assert opened.state() == states[commits]
    opened.write({b"after": b"1"})
    opened.close()
    again = Opened(tmp_path, is_alone=True)
    assert again.state() == {**states[commits], b"after": b"1"}
    again.close()


@pytest.mark.sources("dies where a method is replaced")
@pytest.mark.parametrize("place", ["made", "frozen", "written", "committed", "copied", "fresh", "alone", "said"])
def test_process_that_dies_between_two_windows_leaves_a_log_that_goes_on(tmp_path: Path, place: str) -> None:
    """`made`: the next window has its files. `frozen`: it is named. `written`: LMDB's transaction has the old one, and
    is open. `committed`: it is not any more. `copied`: a fresh file is made, `fresh`: it has its name, `alone`: and the
    one before has none any more. `said`: others know."""
    bring = Log._bring

    def bring_and_die(mine: Log, window: OpenWindow, pause: Callable[[], None]) -> None:
        bring(mine, window, pause)
        die()

    def die(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def write() -> None:
        mine = Opened(tmp_path, is_alone=False)
        for number in range(100):
            mine.write({b"k%d" % number: bytes(60)})
        owner, name = {
            "made": (log_module, "sync_folder"),
            "frozen": (Log, "_bring"),
            "written": (OpenWindow, "last_commit"),
            "committed": (Log, "_bring"),
            "copied": (home_module, "sync"),
            "fresh": (home_module, "remove_older"),
            "alone": (Log, "_remove_home"),
            "said": (Log, "_remove_files"),
        }[place]
        setattr(owner, name, bring_and_die if place == "committed" else die)
        if place == "made":
            mine.log.freeze()
        else:
            mine.log.checkpoint(is_asked_for=place in ("copied", "fresh", "alone"))

    Opened(tmp_path, is_alone=True).close()
    child = Child(write)
    watcher = Opened(tmp_path, is_alone=False)
    assert child.run() == -signal.SIGKILL
    for alone in (False, True):
        if alone:
            watcher.close()
            watcher = Opened(tmp_path, is_alone=True)
        assert len(watcher.state()) == 100 + alone
        watcher.write({b"more%d" % alone: bytes(9000)})
        while watcher.log.checkpoint():
            pass
        assert len(watcher.state()) == 101 + alone and len(watcher.log.windows) == 1
    number = watcher.log.active.number
    assert set(tmp_path.glob("data.*.[0-9]*")) == {log_path(tmp_path, number), index_path(tmp_path, number)}
    watcher.close()


# -- where nothing is


def taken_first(opened: Opened, count: int) -> list[bytes]:
    """The first rows of a queue, which are removed, each by a walk of its own."""
    txn = opened.log.begin_writing()
    found = list[bytes]()
    for _ in range(count):
        cursor = txn.cursor()
        if not cursor.set_range(b"q"):
            break
        found.append(cursor.key())
        txn.delete(cursor.key())
    opened.log.commit(txn)
    return found


def test_who_takes_the_first_row_again_and_again_steps_over_those_before_it_once(tmp_path: Path) -> None:
    opened = Opened(tmp_path, is_alone=True, window_bytes=1 << 20)
    names = [b"q%06d" % number for number in range(4000)]
    opened.write({name: b"1" for name in names[:2000]})
    opened.log.bring_all_home()
    opened.write({name: b"1" for name in names[2000:]})
    assert taken_first(opened, 300) == names[:300]
    txn = opened.log.begin()
    ((begin, end),) = txn.gaps()
    assert begin == names[0] and names[280] < end <= names[300]
    cursor = txn.cursor()
    assert cursor.set_range(b"q") and cursor.key() == names[300]
    opened.log.end(txn)
    for at in range(300, 4000, 100):
        assert taken_first(opened, 100) == names[at : at + 100]
    assert taken_first(opened, 1) == []
    opened.write({names[1234]: b"2", names[10]: b"3"})
    assert taken_first(opened, 3) == [names[10], names[1234]]
    opened.close()


@pytest.mark.parametrize("seed", range(6))
def test_queues_are_what_they_would_be_without_gaps(tmp_path: Path, seed: int) -> None:
    """Several snapshots are open, of several moments, while rows go at the ends and in between, and come again."""
    chosen = random.Random(seed)
    opened = Opened(tmp_path, is_alone=True, window_bytes=chosen.choice([4 << 10, 64 << 10, 1 << 20]))
    model, snapshots = dict[bytes, bytes](), list[tuple[LogTransaction, dict[bytes, bytes]]]()
    for turn in range(120):
        txn = opened.log.begin_writing()
        now = dict(model)
        for _ in range(chosen.randrange(1, 4)):
            change_queue(chosen, txn, now)
            number = chosen.randrange(1100)
            assert walked(txn, number) == walked_in(now, number)
        if chosen.random() < 0.8:
            opened.log.commit(txn)
            model = now
        else:
            opened.log.give_up(txn)
        if len(snapshots) < 4 and chosen.random() < 0.3:
            snapshots.append((opened.log.begin(), dict(model)))
        for txn, was in chosen.sample(snapshots, min(2, len(snapshots))):
            number = chosen.randrange(1100)
            assert walked(txn, number) == walked_in(was, number)
        if snapshots and chosen.random() < 0.2:
            opened.log.end(snapshots.pop(chosen.randrange(len(snapshots)))[0])
        if chosen.random() < 0.1:
            opened.log.checkpoint()
        if turn % 40 == 39:
            assert opened.state() == model
    for txn, _ in snapshots:
        opened.log.end(txn)
    opened.close()


def change_queue(chosen: random.Random, txn: LogTransaction, now: dict[bytes, bytes]) -> None:
    queue = chosen.choice([b"p", b"q", b"r"])
    what = chosen.randrange(6)
    if what < 2:
        begin = chosen.randrange(1000)
        for number in range(begin, begin + chosen.randrange(1, 80)):
            txn.put(queue + b"%06d" % number, b"%d" % number)
            now[queue + b"%06d" % number] = b"%d" % number
    elif what < 5:
        cursor = txn.cursor()
        cursor.set_range(queue)
        is_last = chosen.random() < 0.4
        if is_last:
            cursor.last()
        for _ in range(chosen.randrange(1, 90)):
            key = cursor.key()
            if not key.startswith(queue):
                break
            txn.delete(key)
            del now[key]
            cursor = txn.cursor()
            cursor.set_range(queue)
            if is_last:
                cursor.last()
    elif now:
        key = chosen.choice(sorted(now))
        txn.delete(key)
        del now[key]


def walked(txn: LogTransaction, number: int) -> list[object]:
    """What walks find that begin there, and go either way; and the last of each queue."""
    found = list[object]()
    for queue in (b"p", b"q", b"r"):
        for begin in (queue, queue + b"%06d" % number):
            cursor = txn.cursor()
            there = cursor.set_range(begin)
            found.append([key for key, _ in islice(cursor.iternext(), 30)] if there else [])
            cursor = txn.cursor()
            there = cursor.set_range(begin)
            found.append([key for key, _ in islice(cursor.iterprev(), 30)] if there else [])
        cursor = txn.cursor()
        cursor.set_range(queue)
        found.append(cursor.key() if cursor.last() else b"")
    return found


def walked_in(now: dict[bytes, bytes], number: int) -> list[object]:
    """The same, in a dictionary."""
    found = list[object]()
    for queue in (b"p", b"q", b"r"):
        keys = sorted(key for key in now if key.startswith(queue))
        for begin in (queue, queue + b"%06d" % number):
            at = bisect_left(keys, begin)
            found.append(keys[at : at + 30])
            found.append(keys[max(0, at - 29) : at + 1][::-1] if at < len(keys) else [])
        found.append(keys[-1] if keys else b"")
    return found
