"""Turns that share a commit: none is lost, whatever comes in between, and nobody reads less than was acknowledged."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import lmdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import until
from storage.conftest import Start

from rlite_pubsub.cli.command_line import main
from rlite_pubsub.storage.boot import boot_id
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.errors import StoreFull, StoreHeld
from rlite_pubsub.storage.journal import journal, recording, shared_commit
from rlite_pubsub.storage.journal.journal import Journal, apply, journal_path, owed
from rlite_pubsub.storage.journal.recording import RecordedTransaction, Rows, delete_here
from rlite_pubsub.storage.journal.shared_commit import Pace
from rlite_pubsub.storage.keys.key_bytes import changes
from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment
from rlite_pubsub.storage.locks.writer_lock import PATIENCE_S
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.turn import Turn

replaces = pytest.mark.sources("replaces what is compiled into those who use it")
SOURCES = Path(shared_commit.__file__).parents[2]
BOOT = b"this start of the machine"


UNTIL_TOLD = Pace(shared_s=3600.0)
"""A moment ends when the test says so."""


class Loop:
    """The turns of a loop, whose timers ring when the test says so."""

    def __init__(self, store: Store, pace: Pace = UNTIL_TOLD) -> None:
        assert isinstance(store.data, LmdbEnvironment)
        self.environment = store.data
        self.turn = Turn(self.environment, self.step_aside)
        self.timers: list[Callable[[], None]] = []
        self.asked = threading.Event()
        self.environment.share_commits(self.turn, lambda _, ring: self.timers.append(ring), self._ask, pace)

    def _ask(self, callback: Callable[[], None]) -> None:
        self.timers.append(callback)
        self.asked.set()

    def step_aside(self) -> None:
        self.turn.end(commit=self.turn.writes)

    def put(self, *names: str) -> None:
        """One turn."""
        self.turn.begin(write=True)
        for name in names:
            assert self.turn.txn is not None
            self.turn.txn.put(name.encode(), b"value of " + name.encode())
        self.turn.end(commit=True)

    def ring(self) -> None:
        timers, self.timers = self.timers, []
        for timer in timers:
            timer()

    @property
    def shared(self) -> int:
        """How many turns are in the journal alone."""
        assert self.environment.shared is not None
        return self.environment.shared.count


@pytest.fixture
def pace() -> Pace:
    return UNTIL_TOLD


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def loop(store: Store, pace: Pace) -> Iterator[Loop]:
    made = Loop(store, pace)
    yield made
    store.data.stop_sharing(made.turn)


def names(environment: Environment) -> list[str]:
    """The names of this test that a reader finds."""
    found = environment.read(lambda txn: list(txn.cursor().iternext(values=False)))
    return [key.decode() for key in found if key.startswith(b"~")]


def as_killed(store: Store, to: Path) -> Store:
    """What a kill -9 leaves of a store."""
    shutil.copytree(store.folder, to)
    return Store.open(to)


# -- sharing


def test_turns_that_come_quickly_share_one_commit(loop: Loop) -> None:
    loop.put("~1")  # begins to be quick
    before = loop.environment.handle.last_commit()
    loop.put("~2")
    loop.put("~3", "~4")
    assert (loop.shared, loop.environment.handle.last_commit()) == (2, before)
    loop.ring()
    assert (loop.shared, loop.environment.handle.last_commit()) == (0, before + 1)
    assert names(loop.environment) == ["~1", "~2", "~3", "~4"]


@pytest.mark.parametrize("pace", [Pace(shared_s=-1.0)])
def test_a_turn_after_a_pause_commits_by_itself(loop: Loop) -> None:
    loop.put("~1")
    loop.put("~2")
    assert loop.shared == 0 and not loop.timers


def test_who_comes_during_a_commit_waits_for_no_more_rows_than_take_a_moment(loop: Loop) -> None:
    """Each row may be on a page of its own: thousands at once held everybody for 10 ms and more."""
    loop.put("~0")
    before, rows = loop.environment.handle.last_commit(), 0
    while loop.environment.handle.last_commit() == before:
        loop.put(*[f"~{number}" for number in range(rows, rows + 50)])
        rows += 50
    assert shared_commit.FEWEST_CHANGES <= rows <= 2 * shared_commit.FEWEST_CHANGES + 50
    assert loop.shared == 0


def test_a_row_that_turns_change_again_and_again_counts_once(loop: Loop) -> None:
    loop.put("~0")
    before = loop.environment.handle.last_commit()
    for _ in range(10 * shared_commit.FEWEST_CHANGES):
        loop.put("~1")
    assert (loop.shared, loop.environment.handle.last_commit()) == (10 * shared_commit.FEWEST_CHANGES, before)


@replaces
def test_a_disk_that_takes_many_rows_in_a_moment_is_given_many(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows side by side share their pages. The next commit has twice as many, and so on."""
    monkeypatch.setattr(shared_commit, "COMMIT_S", 3600.0)
    commits = []
    loop.put("~0")
    for _ in range(4):
        before, rows = loop.environment.handle.last_commit(), 0
        while loop.environment.handle.last_commit() == before:
            loop.put(*[f"~{number}" for number in range(rows, rows + 50)])
            rows += 50
        commits.append(rows)
    assert commits[3] >= 2 * commits[1] >= 2 * commits[0], commits
    monkeypatch.setattr(shared_commit, "COMMIT_S", 1e-9)
    loop.put(*[f"~{number}" for number in range(2 * commits[3])])
    before = loop.environment.handle.last_commit()
    loop.put(*[f"~{number}" for number in range(2 * shared_commit.FEWEST_CHANGES)])
    assert loop.environment.handle.last_commit() > before


def test_a_turn_sees_those_before_it(loop: Loop) -> None:
    loop.put("~1")
    loop.put("~2")
    for write in (False, True):
        txn = loop.turn.begin(write=write)
        assert txn.get(b"~2") == b"value of ~2"
        loop.turn.end(commit=write)
    assert loop.shared == 1


def test_a_large_turn_is_committed_with_those_before_it(loop: Loop) -> None:
    loop.put("~1")
    loop.put("~2")
    loop.turn.begin(write=True).put(b"~3", b"x" * (1 << 20))
    loop.turn.end(commit=True)
    assert loop.shared == 0
    assert names(loop.environment) == ["~1", "~2", "~3"]


def test_a_turn_that_wants_to_be_synced_commits(loop: Loop) -> None:
    loop.put("~1")
    loop.put("~2")
    loop.turn.begin(write=True).put(b"~3", b"")
    loop.turn.want_sync()
    loop.turn.end(commit=True)
    assert loop.shared == 0 and loop.turn.answer_sync()


@replaces
def test_the_journal_may_be_full(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MOST_BYTES", 1000)
    loop.put("~00")
    for number in range(1, 60):
        loop.put(f"~{number:02}")
    assert loop.shared < 30
    assert len(names(loop.environment)) == 60


def test_under_always_each_turn_commits(loop: Loop) -> None:
    loop.put("~1")
    loop.put("~2")
    loop.environment.sync_by("always")
    assert loop.shared == 0
    loop.put("~3")
    assert loop.shared == 0


# -- what a kill leaves


def test_what_was_acknowledged_survives_a_kill(loop: Loop, store: Store, tmp_path: Path) -> None:
    loop.put("~1")
    loop.put("~2")
    loop.put("~3")
    loop.turn.begin(write=True)
    assert loop.turn.txn is not None
    loop.turn.txn.delete(b"~1")
    loop.turn.end(commit=True)
    loop.turn.begin(write=True).put(b"~4", b"not acknowledged")
    with as_killed(store, tmp_path / "killed") as opened:
        assert names(opened.data) == ["~2", "~3"]
        assert opened.data.read(lambda txn: txn.get(b"~3")) == b"value of ~3"
    loop.turn.end(commit=False)


def test_what_is_home_is_not_brought_home_again(loop: Loop, store: Store, tmp_path: Path) -> None:
    loop.put("~1")
    loop.put("~2")
    loop.ring()
    store.data.write(lambda txn: txn.delete(b"~2"))
    with as_killed(store, tmp_path / "killed") as opened:
        assert names(opened.data) == ["~1"]


def test_a_kill_while_the_next_ones_share(loop: Loop, store: Store, tmp_path: Path) -> None:
    loop.put("~1")
    for name in ("~2", "~3", "~4"):
        loop.put(name)
    loop.ring()
    loop.put("~5")  # over the record of ~2; those of ~3 and ~4 still stand behind it
    with as_killed(store, tmp_path / "killed") as opened:
        assert names(opened.data) == ["~1", "~2", "~3", "~4", "~5"]


# -- what is undone


def test_a_turn_that_fails_takes_nobody_with_it(loop: Loop, store: Store, tmp_path: Path) -> None:
    loop.put("~1")
    loop.put("~2")
    loop.turn.begin(write=True).put(b"~3", b"")
    loop.turn.end(commit=False)
    assert names(loop.environment) == ["~1", "~2"]
    loop.put("~4")
    with as_killed(store, tmp_path / "killed") as opened:
        assert names(opened.data) == ["~1", "~2", "~4"]


@replaces
def test_a_commit_that_fails_takes_only_its_own_turn_with_it(
    loop: Loop, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop.put("~1")
    loop.put("~2")
    loop.turn.begin(write=True).put(b"~3", b"")
    loop.turn.want_sync()
    writing = loop.environment.write
    assert loop.environment.shared is not None
    recorded = loop.environment.shared._recorded
    assert recorded is not None
    broken = _Broken(recorded.txn)
    monkeypatch.setattr(recorded, "txn", broken)
    monkeypatch.setattr(loop.environment, "write", _refuse)
    with pytest.raises(StoreFull):
        loop.turn.end(commit=True)
    assert loop.environment.shared.is_owing
    with pytest.raises(StoreHeld):  # nobody reads less than was acknowledged
        names(loop.environment)
    with as_killed(store, tmp_path / "killed") as opened:
        assert names(opened.data) == ["~1", "~2"]
    monkeypatch.setattr(loop.environment, "write", writing)
    assert names(loop.environment) == ["~1", "~2"]


CHANGING = """
    import sys
    from rlite_pubsub.storage.store import Store
    with Store.open(sys.argv[1]) as store:
        store.data.write(lambda txn: txn.delete(b"~2"))
        store.data.write(lambda txn: txn.put(b"~5", b""))
        print("done")
"""


@replaces
def test_what_another_process_has_brought_home_is_not_done_again_over_its_changes(
    loop: Loop, store: Store, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop.put("~1")
    loop.put("~2")
    loop.turn.begin(write=True).put(b"~3", b"")
    loop.turn.want_sync()
    assert loop.environment.shared is not None
    recorded = loop.environment.shared._recorded
    assert recorded is not None
    with monkeypatch.context() as patch:
        patch.setattr(recorded, "txn", _Broken(recorded.txn))
        patch.setattr(loop.environment, "write", _refuse)
        with pytest.raises(StoreFull):
            loop.turn.end(commit=True)
    assert loop.environment.shared.is_owing
    assert start(CHANGING, store.folder).line() == "done"
    assert names(loop.environment) == ["~1", "~5"]
    assert not loop.environment.shared.is_owing


@replaces
def test_another_thread_waits_while_turns_are_done_again(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    loop.put("~1")
    loop.put("~2")
    loop.turn.begin(write=True).put(b"~3", b"")
    loop.turn.want_sync()
    assert loop.environment.shared is not None
    recorded, writing = loop.environment.shared._recorded, loop.environment.write
    assert recorded is not None
    seen: list[list[str]] = []
    reader = threading.Thread(target=lambda: seen.append(names(loop.environment)))

    def write_late(*args: Any, **options: Any) -> Any:
        reader.start()
        assert loop.asked.wait(PATIENCE_S)  # it waits, or else it has read
        return writing(*args, **options)

    monkeypatch.setattr(recorded, "txn", _Broken(recorded.txn))
    monkeypatch.setattr(loop.environment, "write", write_late)
    with pytest.raises(StoreFull):
        loop.turn.end(commit=True)
    reader.join(PATIENCE_S)
    assert seen == [["~1", "~2"]]


class _Broken:
    """LMDB's transaction, whose commit fails as that on a full disk does."""

    def __init__(self, txn: object) -> None:
        self._txn = txn

    def commit(self) -> None:
        self._txn.abort()  # type: ignore[attr-defined]
        raise lmdb.MapFullError("as on a full disk")

    def __getattr__(self, name: str) -> object:
        return getattr(self._txn, name)


def _refuse(*_: object, **__: object) -> None:
    raise StoreHeld(Path(), lambda: "the disk is full")


@replaces
def test_a_turn_during_which_somebody_comes_leaves_no_record(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    loop.put("~1")
    shared = loop.environment.shared
    assert shared is not None
    append = shared._journal.append

    def somebody_comes(rows: Rows) -> bool:
        shared.alone = -2
        return append(rows)

    monkeypatch.setattr(shared._journal, "append", somebody_comes)
    loop.put("~2")  # which would be done after all, by the next process, if its commit had failed
    assert shared._journal.turns == [] and loop.shared == 0
    assert names(loop.environment) == ["~1", "~2"]


@pytest.mark.parametrize("pace", [Pace(shared_s=3600.0, most_rows=5)])
def test_turns_that_change_too_many_rows_are_committed(loop: Loop) -> None:
    loop.put("~1")
    loop.put("~2", "~3", "~4")
    assert loop.shared == 1
    loop.put("~5", "~6", "~7")
    assert loop.shared == 0
    loop.put("~8", "~9", "~a")
    assert loop.shared == 1


def test_where_there_is_little_room_each_turn_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, quota_bytes, shares in (("large", 1 << 30, True), ("small", 128 << 20, False)):
        with Store.open(tmp_path / name, quota_bytes=quota_bytes) as store:
            loop = Loop(store)
            loop.put("~1")
            loop.put("~2")
            assert bool(loop.shared) is shares
            monkeypatch.setattr("rlite_pubsub.storage.room.Room._disk_has_less", lambda *_: True)
            names(store.data)  # which ends what they share
            loop.put("~3")
            loop.put("~4")
            assert loop.shared == 0
            monkeypatch.undo()
            store.data.stop_sharing(loop.turn)


# -- what LMDB has yet to be told


@pytest.fixture
def recorded(store: Store, loop: Loop) -> Iterator[RecordedTransaction]:
    """The transaction of a turn, which can be put into the journal, with one before it."""
    loop.put("~a", "~b", "~c")
    recorded = loop.turn.begin(write=True)
    assert isinstance(recorded, RecordedTransaction)
    yield recorded
    if loop.turn.txn is not None:
        loop.turn.end(commit=True)


def _told(recorded: RecordedTransaction, key: bytes) -> bytes | None:
    found: bytes | None = recorded.txn.get(key)
    return found


def test_lmdb_is_told_once_for_several_turns(loop: Loop, recorded: RecordedTransaction) -> None:
    recorded.put(b"~a", b"another")
    assert recorded.get(b"~a") == b"another" and recorded.get(b"~b") == b"value of ~b"
    assert recorded.get(b"~x") is None
    assert _told(recorded, b"~a") == b"value of ~a"
    loop.turn.end(commit=True)
    assert loop.shared == 1 and _told(recorded, b"~a") == b"value of ~a"
    assert loop.environment.read(lambda txn: txn.get(b"~a")) == b"another"


def test_what_was_removed_is_not_there(loop: Loop, recorded: RecordedTransaction) -> None:
    assert recorded.delete(b"~a") is True and recorded.delete(b"~a") is False and recorded.delete(b"~x") is False
    recorded.put(b"~d", b"1")
    assert recorded.delete(b"~d") is True
    assert recorded.get(b"~a") is None and recorded.get(b"~d") is None
    recorded.put(b"~a", b"again")
    recorded.change({b"~b": None, b"~c": b"new"})
    assert recorded.get(b"~a") == b"again" and recorded.get(b"~b") is None and recorded.get(b"~c") == b"new"
    loop.turn.end(commit=True)
    assert loop.environment.read(lambda txn: list(txn.cursor())) == _with({b"~a": b"again", b"~c": b"new"}, loop)


def _with(rows: dict[bytes, bytes], loop: Loop) -> list[tuple[bytes, bytes]]:
    """These rows, and those of the store that are not of the test."""
    others = loop.environment.read(lambda txn: [row for row in txn.cursor() if not row[0].startswith(b"~")])
    return [*others, *sorted(rows.items())]


def test_who_walks_over_rows_meets_all_and_changes_them_on_the_way(loop: Loop, recorded: RecordedTransaction) -> None:
    recorded.put(b"~d", b"1")
    recorded.delete(b"~b")
    cursor = recorded.cursor()
    assert cursor.set_range(b"~")
    found = []
    while cursor.key()[:1] == b"~":
        found.append(cursor.key())
        if cursor.key() == b"~c":
            recorded.put(b"~e", b"put behind the cursor")
            recorded.change({b"~f": b"and so are these", b"~a": None})
        if not (delete_here(recorded, cursor) if cursor.key() == b"~d" else cursor.next()):
            break
    assert found == [b"~a", b"~c", b"~d", b"~e", b"~f"]
    loop.turn.end(commit=True)
    assert loop.shared == 1
    assert names(loop.environment) == ["~c", "~e", "~f"]


def test_the_turn_after_one_that_walked_tells_lmdb_later_again(loop: Loop, recorded: RecordedTransaction) -> None:
    recorded.cursor()
    recorded.put(b"~d", b"1")
    assert _told(recorded, b"~d") == b"1"
    loop.turn.end(commit=True)
    loop.put("~e")
    assert loop.shared == 2 and _told(recorded, b"~e") is None
    assert names(loop.environment) == ["~a", "~b", "~c", "~d", "~e"]


@pytest.mark.parametrize("at_once", [False, True])
def test_a_turn_that_is_too_large_is_not_held(loop: Loop, recorded: RecordedTransaction, at_once: bool) -> None:
    rows: Rows = {b"~%03d" % number: b"x" * 4000 for number in range(500)}
    recorded.put(b"~d", b"1")
    if at_once:
        recorded.change(rows)
    else:
        for key in rows:
            recorded.put(key, b"x" * 4000)
    assert recorded.rows == {} and _told(recorded, b"~499") is not None
    recorded.put(b"~d", b"2")
    assert recorded.rows == {} and _told(recorded, b"~d") == b"2"
    loop.turn.end(commit=True)
    assert loop.shared == 0
    assert len(names(loop.environment)) == 504


@replaces
def test_a_transaction_that_cannot_be_told_takes_only_its_own_turn_with_it(
    loop: Loop, recorded: RecordedTransaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise lmdb.MapFullError("as on a full disk")

    loop.turn.end(commit=True)
    loop.put("~d")
    loop.turn.begin(write=True)
    recorded.put(b"~e", b"1")
    loop.turn.want_sync()  # so that it is committed now
    with monkeypatch.context() as broken:
        broken.setattr(recording, "_change", full)
        with pytest.raises(StoreFull):
            loop.turn.end(commit=True)
    assert loop.shared == 0
    assert names(loop.environment) == ["~a", "~b", "~c", "~d"]


def test_turns_that_undo_each_others_changes_are_a_commit(loop: Loop) -> None:
    loop.put("~1")
    before = loop.environment.last_commit()
    loop.put("~2")
    loop.turn.begin(write=True).delete(b"~2")
    loop.turn.end(commit=True)
    assert loop.shared == 2
    assert names(loop.environment) == ["~1"]
    assert loop.environment.last_commit() == before + 1


def test_turns_that_were_undone_with_another_one_are_void_once_they_are_done_again(
    loop: Loop, store: Store, tmp_path: Path
) -> None:
    loop.put("~1")
    for key in (b"~2", b"~3"):
        txn = loop.turn.begin(write=True)
        txn.put(key, b"")
        txn.delete(key)
        loop.turn.end(commit=True)
    assert loop.shared == 2
    loop.turn.begin(write=True).put(b"~4", b"")
    loop.turn.end(commit=False)  # the two are done again, and leave all as it was
    loop.turn.begin(write=True).put(b"~3", b"")
    loop.turn.end(commit=True)
    assert loop.shared == 1  # its record is as long as the first one was, and behind it stands the second one
    with as_killed(store, tmp_path / "killed") as opened:
        assert names(opened.data) == ["~1", "~3"]


def test_a_turn_that_changes_nothing_is_no_commit(loop: Loop) -> None:
    loop.put("~1")
    before = loop.environment.last_commit()
    loop.turn.begin(write=True).delete(b"~x")
    loop.turn.end(commit=True)
    assert loop.environment.last_commit() == before


# -- others


def test_a_reader_in_the_same_thread_sees_all(loop: Loop) -> None:
    loop.put("~1")
    loop.put("~2")
    assert names(loop.environment) == ["~1", "~2"]
    assert loop.shared == 0


def test_who_reads_along_between_two_turns_sees_all_and_ends_nothing(loop: Loop) -> None:
    loop.put("~1")
    loop.put("~2")
    assert loop.environment.read_along(lambda txn: txn.get(b"~2")) == b"value of ~2"
    assert loop.shared == 1


def test_a_reader_in_the_middle_of_a_turn_sees_all(loop: Loop) -> None:
    loop.put("~1")
    loop.put("~2")
    loop.turn.begin(write=True).put(b"~3", b"")
    assert names(loop.environment) == ["~1", "~2", "~3"]


def test_another_thread_sees_all_and_may_write(loop: Loop) -> None:
    loop.put("~1")
    loop.put("~2")
    seen: list[list[str]] = []

    def work() -> None:
        seen.append(names(loop.environment))
        loop.environment.write(lambda txn: txn.put(b"~3", b""))

    thread = threading.Thread(target=work)
    thread.start()
    until(loop.asked.is_set, "the other thread's wish")
    loop.ring()
    thread.join()
    assert seen == [["~1", "~2"]]
    loop.put("~4")
    assert loop.shared == 0, "as long as others use the store, each turn commits by itself"


def test_a_loop_that_does_not_come_round_is_named(loop: Loop) -> None:
    loop.put("~1")
    loop.put("~2")
    assert loop.environment.writer is not None
    loop.environment.writer.wait_for_holder(0.01)
    refused: list[StoreHeld] = []

    def work() -> None:
        try:
            names(loop.environment)
        except StoreHeld as held:
            refused.append(held)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    loop.environment.writer.wait_for_holder(PATIENCE_S)
    assert re.search(r"process \d+ \(\w+\)", str(refused[0]))


def test_the_map_may_be_changed_meanwhile(loop: Loop) -> None:
    loop.put("~1")
    loop.put("~2")
    loop.environment.forget_pages()
    assert loop.shared == 0
    assert names(loop.environment) == ["~1", "~2"]


OTHER = """
    import sys
    from rlite_pubsub.storage.store import Store
    with Store.open(sys.argv[1]) as store:
        print(sum(key[:1] == b"~" for key in store.data.read(lambda txn: list(txn.cursor().iternext(values=False)))))
"""
SHARING = """
    import sys
    from rlite_pubsub.storage.store import Store
    from rlite_pubsub.storage.turn import Turn
    from rlite_pubsub.storage.journal import shared_commit

    store = Store.open(sys.argv[1])
    turn = Turn(store.data, lambda: None)
    store.data.share_commits(turn, lambda *_: None, lambda _: None, shared_commit.Pace(shared_s=3600.0))

    def put(name):
        turn.begin(write=True).put(name, b"")
        turn.end(commit=True)

    put(b"~1")
    put(b"~2")
    put(b"~3")
    print(store.data.shared.count, flush=True)
    sys.stdin.readline()
    put(b"~4")
    print(store.data.shared.count, flush=True)
    sys.stdin.readline()
"""


def test_a_process_that_comes_sees_all(tmp_path: Path, start: Start) -> None:
    sharing = start(SHARING, tmp_path / "store")
    assert sharing.line() == "2"
    other = start(OTHER, tmp_path / "store")
    until(lambda: (tmp_path / "store" / "writer.lock").read_bytes()[:8] == (2).to_bytes(8, "little"), "the other one")
    sharing.tell()  # its next turn notices that it is not alone any more
    assert sharing.line() == "0"
    assert other.line() == "4"


def test_a_process_that_comes_after_a_kill_brings_it_home(tmp_path: Path, start: Start) -> None:
    sharing = start(SHARING, tmp_path / "store")
    assert sharing.line() == "2"
    sharing.kill()
    assert start(OTHER, tmp_path / "store").line() == "3"
    assert start(OTHER, tmp_path / "store").line() == "3"


def test_a_process_that_is_killed_while_another_one_waits(tmp_path: Path, start: Start) -> None:
    sharing = start(SHARING, tmp_path / "store")
    assert sharing.line() == "2"
    other = start(OTHER, tmp_path / "store")
    until(lambda: (tmp_path / "store" / "writer.lock").read_bytes()[:8] == (2).to_bytes(8, "little"), "the other one")
    sharing.kill()
    assert other.line() == "3"


def test_a_stopped_process_is_named(tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    sharing = start(SHARING, tmp_path / "store")
    assert sharing.line() == "2"
    sharing.process.send_signal(signal.SIGSTOP)
    monkeypatch.setattr("rlite_pubsub.storage.journal.recovery.recover.__defaults__", (0.05,))
    with pytest.raises(StoreHeld, match=rf"process {sharing.process.pid} .*stopped"):
        Store.open(tmp_path / "store")
    sharing.kill()
    with Store.open(tmp_path / "store") as opened:
        assert names(opened.data) == ["~1", "~2", "~3"]


STAYING = """
    import sys
    from rlite_pubsub.storage.store import Store
    with Store.open(sys.argv[1]) as store:
        print("open", flush=True)
        sys.stdin.readline()
        store.data.write(lambda txn: txn.put(b"~of another", b""))
        print("written", flush=True)
        sys.stdin.readline()
"""


@pytest.mark.parametrize("is_killed", [False, True])
def test_turns_share_again_once_the_others_have_gone(loop: Loop, store: Store, start: Start, is_killed: bool) -> None:
    loop.put("~1")
    other = start(STAYING, store.folder)
    assert other.line() == "open"
    store.look_for_others()
    loop.put("~2")
    loop.put("~3")
    assert loop.shared == 0
    other.tell()
    assert other.line() == "written"
    store.look_for_others()
    loop.put("~4")
    assert loop.shared == 0
    if is_killed:
        other.kill()
    else:
        other.tell()
        other.process.wait()
    store.look_for_others()
    loop.put("~5")
    loop.put("~6")
    assert loop.shared > 0
    openings = (store.folder / "writer.lock").read_bytes()[:8]
    newcomer = start(OTHER, store.folder)
    until(lambda: (store.folder / "writer.lock").read_bytes()[:8] != openings, "the newcomer")
    loop.put("~7")  # notices it
    assert loop.shared == 0
    assert newcomer.line() == "8"


def test_turns_of_a_server_that_came_second_share_once_the_first_has_gone(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = start(STAYING, tmp_path / "store")
    assert first.line() == "open"
    with Store.open(tmp_path / "store") as store:
        loop = Loop(store)
        loop.put("~1")
        loop.put("~2")
        assert loop.shared == 0
        first.kill()
        store.look_for_others()
        loop.put("~3")
        loop.put("~4")
        assert loop.shared > 0
        store.data.stop_sharing(loop.turn)


def test_somebody_who_is_about_to_open_the_store_is_not_overlooked(store: Store, loop: Loop) -> None:
    other = os.open(store.folder, os.O_RDONLY)
    door = os.open(store.folder / "store.lock", os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_SH)
    store._locks.numbers[0] += 1  # as if it had opened the store
    loop.put("~1")
    loop.put("~2")
    store.look_for_others()  # it has the folder
    assert not store._locks.is_alone and loop.shared == 0
    os.close(other)
    fcntl.flock(door, fcntl.LOCK_EX)
    store.look_for_others()  # somebody else is opening it
    assert not store._locks.is_alone
    os.close(door)
    store.look_for_others()
    assert store._locks.is_alone
    other = os.open(store.folder, os.O_RDONLY)
    with pytest.raises(BlockingIOError):  # it still says that it has it open
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)


# -- the journal


ROWS: Rows = {b"a": b"1", b"b": None, b"c" * 511: b"", b"d": b"x" * 70_000}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data.journal"


def test_rows_come_back_as_they_were(file: Path, tmp_path: Path) -> None:
    written = Journal(file, BOOT)
    written.begin(7)
    assert written.append(ROWS) and written.append({b"e": b"2"})
    found = owed(file, BOOT, 7)
    assert found is not None and len(found.turns) == 2
    environment = LmdbEnvironment(tmp_path / "x.mdb", "no", quota_bytes=1 << 24)
    environment.write(lambda txn: txn.put(b"b", b"goes"))
    environment.write(lambda txn: apply(txn, found.turns))
    expected = [(key, value) for key, value in [*ROWS.items(), (b"e", b"2")] if value is not None]
    assert environment.read(lambda txn: list(txn.cursor())) == expected
    environment.close()


@pytest.mark.parametrize("base", [6, 8])
def test_records_of_another_commit_do_not_count(file: Path, base: int) -> None:
    written = Journal(file, BOOT)
    written.begin(7)
    written.append(ROWS)
    assert owed(file, BOOT, base) is None


def test_records_of_another_start_of_the_machine_do_not_count(file: Path) -> None:
    written = Journal(file, BOOT)
    written.begin(7)
    written.append(ROWS)
    assert owed(file, b"another", 7) is None


@pytest.mark.parametrize("is_first", [False, True])
def test_a_record_whose_end_a_kill_has_cut_off_does_not_count(file: Path, is_first: bool) -> None:
    written = Journal(file, BOOT)
    if not is_first:  # behind the cut is what an earlier moment has left there
        written.begin(6)
        for number in range(3):
            written.append({b"%d" % number: b"value"})
    written.begin(7)
    written.append({b"0": b"value"})
    before, begins = file.read_bytes(), written._at
    written.append({b"1": b"value"})
    after, ends = file.read_bytes(), written._at
    for cut in range(begins, ends):
        file.write_bytes(after[:cut] + before[cut:])
        found = owed(file, BOOT, 7)
        assert found is not None and found.turns == written.turns[:1], cut
    file.write_bytes(after)
    found = owed(file, BOOT, 7)
    assert found is not None and found.turns == written.turns


@pytest.mark.parametrize("damaged", range(16))
def test_a_record_whose_numbers_are_damaged_does_not_count_nor_do_those_after_it(file: Path, damaged: int) -> None:
    written = Journal(file, BOOT)
    written.begin(7)
    written.append({b"0": b"value"})
    begins = written._at
    for number in (1, 2):
        written.append({b"%d" % number: b"value"})
    stored = bytearray(file.read_bytes())
    stored[begins + damaged] ^= 0xFF
    file.write_bytes(stored)
    found = owed(file, BOOT, 7)
    assert found is not None and found.turns == written.turns[:1]


def _three(file: Path) -> tuple[Journal, list[int]]:
    """A journal with three turns; where each begins, and where the last one ends."""
    written = Journal(file, BOOT)
    written.begin(7)
    places = [0]
    for number in range(3):
        written.append({b"%d" % number: b"value", b"x": None})
        places.append(written._at)
    return written, places


def test_whatever_byte_of_a_record_is_damaged_only_what_is_whole_before_it_comes_home(file: Path) -> None:
    written, places = _three(file)
    stored = file.read_bytes()
    for at in range(places[3]):
        file.write_bytes(stored[:at] + bytes((stored[at] ^ 0x40,)) + stored[at + 1 :])
        found = owed(file, BOOT, 7)
        whole = next(number for number in range(3) if at < places[number + 1])
        if whole < 2:
            assert found is not None and (found.turns, found.lost) == (written.turns[:whole], 3 - whole), at
        else:  # as if a kill had cut it off
            assert found is not None and (found.turns, found.lost) == (written.turns[:2], 0), at


@given(st.data())
def test_no_damage_is_more_than_turns_that_do_not_count(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "data.journal"
        written, places = _three(file)
        stored = bytearray(file.read_bytes()[: places[3]])
        for at in data.draw(st.lists(st.integers(0, places[3] - 1), max_size=9)):
            stored[at] = data.draw(st.integers(0, 255))
        file.write_bytes(stored)
        found = owed(file, BOOT, 7)
        assert found is None or found.turns == written.turns[: len(found.turns)]
        written.close()


def test_a_record_of_an_earlier_version_counts(file: Path) -> None:
    """Its mark is of the numbers alone."""
    packed = changes({b"key": b"value"})
    head = struct.pack(">IQI", len(packed), 7, 0)
    file.write_bytes(head + packed + struct.pack(">I", crc32(head, crc32(BOOT))))
    found = owed(file, BOOT, 7)
    assert found is not None and found.turns == [packed]
    broken = packed[:1] + b"\xff" + packed[2:]  # no such key
    file.write_bytes(head + broken + struct.pack(">I", crc32(head, crc32(BOOT))))
    assert owed(file, BOOT, 7) is None


def test_a_damaged_journal_is_said_and_kept_and_the_store_opens(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "store"
    with Store.open(folder) as opened:
        opened.data.write(lambda txn: txn.put(b"~0", b"home"))
        base = opened.data.last_commit()
    written = Journal(folder / "data.journal", boot_id())
    written.begin(base)
    ends = []
    for number in (1, 2, 3):
        written.append({b"~%d" % number: b"value"})
        ends.append(written._at)
    written.close()
    stored = bytearray((folder / "data.journal").read_bytes())
    stored[ends[1] - 6] ^= 1  # in the value of the second
    (folder / "data.journal").write_bytes(stored)
    with Store.open(folder) as opened:
        assert names(opened.data) == ["~0", "~1"]
    assert "1 are whole, and at least 2 behind them are lost" in caplog.text
    with Store.open(folder) as opened:
        assert names(opened.data) == ["~0", "~1"]
    assert caplog.text.count("are lost") == 1
    assert main(["doctor", "--store", str(folder)]) == 1
    assert "data.journal.damaged" in capsys.readouterr().out


def test_a_record_that_is_written_in_part_is_a_failure(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.pwrite

    def in_part(descriptor: int, data: bytes, at: int) -> int:
        return write(descriptor, data[:-1], at)

    written = Journal(file, BOOT)
    written.begin(7)
    with monkeypatch.context() as broken:
        broken.setattr("os.pwrite", in_part)
        with pytest.raises(OSError, match="part"):
            written.append(ROWS)
    assert written.turns == [] and owed(file, BOOT, 7) is None
    assert written.append(ROWS) and owed(file, BOOT, 7) is not None


def test_a_machine_without_an_id_of_its_start_has_no_journal(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Journal(file, b"")
    written.begin(7)
    written.append(ROWS)
    assert owed(file, b"", 7) is None
    monkeypatch.setattr("rlite_pubsub.storage.lmdb_environment.boot_id", bytes)
    with Store.open(tmp_path / "store") as opened:
        loop = Loop(opened)
        assert opened.data.shared is None
        loop.put("~1")
        loop.put("~2")
        assert names(opened.data) == ["~1", "~2"]


def test_a_record_that_is_taken_back_does_not_count(file: Path) -> None:
    written = Journal(file, BOOT)
    written.begin(7)
    for number in range(3):
        written.append({b"%d" % number: b"value"})
    written.take_back(2)
    found = owed(file, BOOT, 7)
    assert found is not None and found.turns == written.turns and len(found.turns) == 2
    written.append({b"another": b""})
    found = owed(file, BOOT, 7)
    assert found is not None and len(found.turns) == 3


def test_no_journal_owes_nothing(file: Path) -> None:
    assert owed(file, BOOT, 7) is None
    Journal(file, BOOT).close()
    assert owed(file, BOOT, 7) is None
    assert owed(journal_path(file), boot_id(), 0) is None


# -- nobody writes past the recording


def test_rows_are_changed_at_a_cursor_in_one_place_only() -> None:
    """A cursor's own `put` and `delete` would not be noted. A checkpoint of the log, and a restore, write to
    LMDB's own."""
    past = re.compile(r"\bcursor(\(\))?\.(put|putmulti|delete|replace|pop)\(")
    found = {file.name for file in SOURCES.rglob("*.py") if past.search(file.read_text())}
    assert found == {"recording.py", "log.py", "rows_file.py"}
