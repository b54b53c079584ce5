"""A window says what was committed, at each snapshot, whoever wrote it: in C and in plain Python, on the same files."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from c_module import compiled
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

import rlite_pubsub.storage.window as package
from rlite_pubsub.storage.errors import StoreDamaged
from rlite_pubsub.storage.window import window as window_module
from rlite_pubsub.storage.window.plain import PlainView, PlainWindow, taken_by
from rlite_pubsub.storage.window.window import Segment, make_index, make_log, read_head

SOURCE = Path(package.__path__[0]) / "_window.c"
STORE = bytes(range(16))
Rows = dict[bytes, bytes | None]


def in_c() -> Any:
    return window_module._window or compiled(SOURCE)


class Files:
    """The files of one window, which any number of handles have open."""

    def __init__(self, folder: Path, log_bytes: int = 1 << 20) -> None:
        self.folder, self.log_bytes = folder, log_bytes
        self.segment = Segment(7, 100, STORE)
        self.log = make_log(folder, self.segment)
        self.index = make_index(folder, self.segment, log_bytes)

    def open(self, kind: str) -> Any:
        return (in_c().Window if kind == "c" else PlainWindow)(self.log, self.index)

    def rebuild(self, kind: str) -> Any:
        """As after a restart of the machine: the index is lost, the log is not."""
        os.close(self.index)
        self.index = make_index(self.folder, self.segment, self.log_bytes)
        window = self.open(kind)
        window.repair()
        return window

    def close(self) -> None:
        os.close(self.log)
        os.close(self.index)


def view_of(window: Any, database: int = -1) -> Any:
    return PlainView(window, database) if isinstance(window, PlainWindow) else in_c().View(window, database)


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    made = Files(tmp_path)
    yield made
    made.close()


@pytest.fixture(params=["c", "plain"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def window(files: Files, kind: str) -> Iterator[Any]:
    opened = files.open(kind)
    yield opened
    opened.close()


def test_key_is_found_as_each_snapshot_knows_it(window: Any) -> None:
    before = window.tip
    assert window.append({b"a": b"1", b"b": b"2"}, 101, 5)
    first = window.tip
    assert window.append({b"a": None, b"c": b""}, 102, 6)
    second = window.tip
    assert [window.get(before, key) for key in (b"a", b"b", b"c")] == [None, None, None]
    assert [window.get(first, key) for key in (b"a", b"b", b"c")] == [b"1", b"2", None]
    assert [window.get(second, key) for key in (b"a", b"b", b"c")] == [False, b"2", b""]
    assert [window.tip >> 32, second >> 32, first >> 32, before >> 32] == [2, 2, 1, 0]


def test_changes_between_two_snapshots_are_told_in_order(window: Any) -> None:
    window.append({b"a": b"1"}, 101, 5)
    first = window.tip
    window.append({b"b": b"2", b"a": None}, 102, 6)
    window.append({b"b": b"3"}, 103, 7)
    assert window.changed(first, window.tip) == [b"b", b"a", b"b"]
    assert window.changed(0, window.tip) == [b"a", b"b", b"a", b"b"]
    assert window.records(first, window.tip) == [(102, 6, [(b"b", b"2"), (b"a", None)]), (103, 7, [(b"b", b"3")])]
    assert window.changed(window.tip, window.tip) == []


def test_window_that_is_full_refuses_and_changes_nothing(tmp_path: Path, kind: str) -> None:
    files = Files(tmp_path, 4096)
    window = files.open(kind)
    accepted = 0
    while window.append({b"key%d" % accepted: bytes(100)}, accepted, 0):
        accepted += 1
    tip = window.tip
    assert 10 < accepted < 40
    assert not window.append({b"large": bytes(5000)}, 0, 0)
    assert window.tip == tip and window.is_whole() and window.get(tip, b"large") is None
    assert all(window.get(tip, b"key%d" % number) == bytes(100) for number in range(accepted))
    window.close()
    files.close()


def test_window_of_many_small_rows_is_full_before_its_index_is(tmp_path: Path) -> None:
    files = Files(tmp_path, 256 << 10)
    window = files.open("c")
    numbers = count()
    while window.append({b"%d" % next(numbers): b"" for _ in range(10)}, 0, 0):
        pass
    assert next(numbers) > 3000
    assert window.get(window.tip, b"0") == b"" and window.get(window.tip, b"none") is None
    window.close()
    files.close()


@pytest.mark.parametrize("wrong", [{b"": b""}, {b"x" * 512: b""}, {"text": b""}, {b"a": "text"}, {b"a": 1}])
def test_rows_that_cannot_be_are_refused(window: Any, wrong: Any) -> None:
    tip = window.tip
    with pytest.raises((TypeError, ValueError)):
        window.append(wrong, 1, 1)
    assert window.tip == tip and window.is_whole()


def test_snapshot_of_another_window_is_refused(window: Any) -> None:
    with pytest.raises(ValueError, match="another window"):
        window.get(window.tip + 100, b"a")
    with pytest.raises(ValueError, match="another window"):
        window.get(0, b"a")


def test_large_value_is_kept(tmp_path: Path, kind: str) -> None:
    files = Files(tmp_path, 8 << 20)
    window = files.open(kind)
    value = random.Random(1).randbytes(3 << 20)
    assert window.append({b"large": value, b"small": b"1"}, 1, 1)
    assert window.get(window.tip, b"large") == value and window.get(window.tip, b"small") == b"1"
    window.close()
    again = files.rebuild(kind)
    assert again.get(again.tip, b"large") == value
    again.close()
    files.close()


def test_keys_are_walked_in_order_in_both_directions(window: Any) -> None:
    shuffled = [b"t%d" % number for number in range(1500)] + [b"u1", b"s9"]
    random.Random(2).shuffle(shuffled)
    view = view_of(window, ord("t"))
    seen = set[bytes]()
    for begin in range(0, len(shuffled), 100):
        window.append({key: b"" for key in shuffled[begin : begin + 100]}, begin, 0)
        seen.update(key for key in shuffled[begin : begin + 100] if key.startswith(b"t"))
        assert forwards(view, window.tip) == sorted(seen)
    assert backwards(view, window.tip) == sorted(seen, reverse=True)
    assert view.at_or_after(window.tip, b"s") == b"t0" and view.at_or_after(window.tip, b"u") is None
    assert view.at_or_before(window.tip, b"u") == b"t999" and view.at_or_before(window.tip, b"s") is None
    view.close()


def forwards(view: Any, snapshot: int) -> list[bytes]:
    keys = list[bytes]()
    key = view.at_or_after(snapshot, b"")
    while key is not None:
        keys.append(key)
        key = view.after(snapshot, key)
    return keys


def backwards(view: Any, snapshot: int) -> list[bytes]:
    keys = list[bytes]()
    key = view.before(snapshot, None)
    while key is not None:
        keys.append(key)
        key = view.before(snapshot, key)
    return keys


def test_walk_at_an_older_snapshot_does_not_see_keys_of_later(window: Any) -> None:
    window.append({b"a": b"", b"c": b""}, 1, 0)
    older = window.tip
    window.append({b"b": b"", b"0": b"", b"z": b""}, 2, 0)
    view = view_of(window)
    assert forwards(view, window.tip) == [b"0", b"a", b"b", b"c", b"z"]
    assert forwards(view, older) == [b"a", b"c"] and backwards(view, older) == [b"c", b"a"]
    view.close()


def test_slices_have_every_row_once_as_it_is_last(window: Any) -> None:
    expected = Rows()
    for number in range(300):
        rows: Rows = {b"%d" % (number * 7 % 100): None if number % 5 == 0 else b"%d" % number}
        window.append(rows, number, 0)
        expected.update(rows)
    view = view_of(window)
    taken, place = list[tuple[bytes, bytes | None]](), 0
    while place >= 0:
        rows_here, place = view.slice(window.tip, place, 500)
        taken += rows_here
    assert taken == sorted(expected.items())
    view.close()


def test_window_in_use_is_not_closed(files: Files, kind: str) -> None:
    window = files.open(kind)
    view = view_of(window)
    with pytest.raises(BufferError):
        window.close()
    view.close()
    window.close()


# -- writers that die


@pytest.mark.parametrize("cut", [1, 8, 31, 33, 60])
def test_record_that_was_cut_off_is_forgotten_and_its_place_is_used(files: Files, kind: str, cut: int) -> None:
    window = files.open(kind)
    window.append({b"a": b"1"}, 101, 0)
    whole = window.tip
    window.append({b"a": b"2", b"b": b"x" * 100}, 102, 0)
    end = window.tip % (1 << 32) * 8
    window.close()
    os.ftruncate(files.log, end - cut)
    again = files.rebuild(kind)
    assert again.tip == whole and again.get(again.tip, b"a") == b"1" and again.get(again.tip, b"b") is None
    again.append({b"b": b"3"}, 102, 0)
    assert again.get(again.tip, b"b") == b"3"
    again.close()


def test_no_damaged_byte_of_a_record_is_taken_for_the_truth(files: Files, kind: str) -> None:
    window = files.open(kind)
    window.append({b"a": b"1"}, 101, 0)
    begin = window.tip % (1 << 32) * 8
    window.append({b"a": b"2", b"b": b"3"}, 102, 0)
    end = window.tip % (1 << 32) * 8
    window.close()
    record = os.pread(files.log, end - begin, begin)
    for at in range(len(record)):
        os.pwrite(files.log, bytes([record[at] ^ 0x10]), begin + at)
        again = files.rebuild(kind)
        assert again.get(again.tip, b"a") == b"1" and again.get(again.tip, b"b") is None
        again.close()
        os.pwrite(files.log, record, begin)


def test_record_at_another_place_or_of_another_segment_does_not_count(files: Files, kind: str) -> None:
    window = files.open(kind)
    window.append({b"a": b"1"}, 101, 0)
    end = window.tip % (1 << 32) * 8
    window.close()
    os.pwrite(files.log, os.pread(files.log, end - 64, 64), end)
    again = files.rebuild(kind)
    assert again.tip >> 32 == 1
    again.close()


@pytest.mark.parametrize("writer", ["c", "plain"])
@pytest.mark.parametrize("reader", ["c", "plain"])
def test_other_handle_sees_what_was_committed_at_once(files: Files, writer: str, reader: str) -> None:
    one, other = files.open(writer), files.open(reader)
    view = view_of(other)
    for number in range(50):
        one.append({b"k%d" % (number % 7): b"%d" % number, b"gone": None if number % 2 else b""}, number, 0)
        assert other.get(other.tip, b"k%d" % (number % 7)) == b"%d" % number
        assert other.get(other.tip, b"gone") == (False if number % 2 else b"")
    assert forwards(view, other.tip) == sorted([b"gone", *(b"k%d" % number for number in range(7))])
    if not other.is_whole():
        other.repair()
    other.append({b"k0": b"other"}, 51, 0)
    assert one.get(one.tip, b"k0") == b"other" and one.get(one.tip, b"k1") == b"43"
    view.close()
    one.close()
    other.close()


def test_disk_that_is_full_leaves_the_window_as_it_was(files: Files, kind: str) -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(_appends_beyond_the_limit(files, kind))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    window = files.open(kind)
    assert window.is_whole() and window.get(window.tip, b"a") == b"1" and window.get(window.tip, b"b") is None
    window.close()


def _appends_beyond_the_limit(files: Files, kind: str) -> int:
    import resource
    import signal

    window = files.open(kind)
    window.append({b"a": b"1"}, 1, 0)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))
    try:
        window.append({b"b": bytes(5000)}, 2, 0)
    except OSError as trouble:
        return 0 if trouble.errno == errno.EFBIG and window.is_whole() else 2
    return 1


# -- the files


def test_head_that_is_damaged_is_refused(files: Files, tmp_path: Path) -> None:
    assert read_head(tmp_path, files.log) == files.segment
    os.pwrite(files.log, b"\xff", 20)
    with pytest.raises(StoreDamaged):
        read_head(tmp_path, files.log)


def test_index_that_is_none_is_refused(files: Files, kind: str) -> None:
    os.pwrite(files.index, bytes(8), 0)
    with pytest.raises(ValueError, match="no index"):
        files.open(kind)


def test_segment_is_as_it_is_drawn(files: Files, window: Any) -> None:
    window.append({b"k": b"old"}, 101, 1_700_000_000_000)
    window.append({b"k": b"value", b"gone": None}, 102, 1_700_000_000_001)
    log = os.pread(files.log, 4096, 0)
    numbers = bytes.fromhex("01000000 00000000 0700000000000000 6400000000000000")
    assert log[:60] == b"RLITELOG" + numbers + STORE + bytes(12)
    assert log[60:64] == crc32(log[:60]).to_bytes(4, "little")
    second = 64 + 32 + 16
    record = bytes.fromhex("6600000000000000 0168e5cf8b010000 02000000 00000000")
    rows = bytes.fromhex("0c000000 05000000 0100 0000") + b"kvalue" + bytes(6)
    rows += bytes.fromhex("00000000 ffffffff 0400 0000") + b"gone"
    place = (7).to_bytes(8, "little") + second.to_bytes(8, "little")
    mark = crc32(record + rows, crc32(place)).to_bytes(4, "little")
    assert log[second:] == (8 + len(record + rows)).to_bytes(4, "little") + mark + record + rows


# -- a model


class Handles(RuleBasedStateMachine):
    """Two handles in C and one in plain Python take turns at writing; every snapshot that is held stays as it is."""

    snapshots = Bundle("snapshots")
    keys = st.one_of(st.sampled_from([b"a", b"b", b"ab", b"t\0\0", b"t\0\1"]), st.binary(min_size=1, max_size=12))
    values = st.one_of(st.none(), st.binary(max_size=40))

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()

    @initialize()
    def begin(self) -> None:
        import tempfile

        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.files = Files(Path(folder), 64 << 10)
        self.stack.callback(self.files.close)
        self.open()
        self.states: dict[int, Rows] = {self.handles[0].tip: {}}
        self.told: dict[int, list[bytes]] = {self.handles[0].tip: []}
        self.now: Rows = {}
        self.log: list[bytes] = []

    def open(self) -> None:
        self.handles = [self.files.open(kind) for kind in ("c", "plain", "c")]
        self.views = [[view_of(handle), view_of(handle, ord("t"))] for handle in self.handles]

    def shut(self) -> None:
        for views in self.views:
            for view in views:
                view.close()
        for handle in self.handles:
            handle.close()

    @rule(target=snapshots, who=st.integers(0, 2), rows=st.dictionaries(keys, values, max_size=8))
    def append(self, who: int, rows: Rows) -> int:
        handle = self.handles[who]
        if not handle.is_whole():
            handle.repair()
        if handle.append(rows, len(self.states), 0):
            self.now = {**self.now, **rows}
            self.log = self.log + list(rows)
            self.states[handle.tip] = self.now
            self.told[handle.tip] = self.log
        return int(handle.tip)

    @rule(who=st.integers(0, 2), snapshot=snapshots, key=keys)
    def get(self, who: int, snapshot: int, key: bytes) -> None:
        state = self.states[snapshot]
        expected = None if key not in state else False if state[key] is None else state[key]
        found = self.handles[who].get(snapshot, key)
        assert found == expected and type(found) is type(expected)

    @rule(who=st.integers(0, 2), snapshot=snapshots, key=keys)
    def walk(self, who: int, snapshot: int, key: bytes) -> None:
        every = sorted(self.states[snapshot])
        of_t = [k for k in every if k.startswith(b"t")]
        for view, known in zip(self.views[who], (every, of_t), strict=True):
            assert view.at_or_after(snapshot, key) == min((k for k in known if k >= key), default=None)
            assert view.after(snapshot, key) == min((k for k in known if k > key), default=None)
            assert view.before(snapshot, key) == max((k for k in known if k < key), default=None)
            assert view.at_or_before(snapshot, key) == max((k for k in known if k <= key), default=None)
            assert view.before(snapshot, None) == max(known, default=None)

    @rule(who=st.integers(0, 2), one=snapshots, other=snapshots)
    def changed(self, who: int, one: int, other: int) -> None:
        since, until = sorted((one, other))
        assert self.handles[who].changed(since, until) == self.told[until][len(self.told[since]) :]

    @rule()
    def restart(self) -> None:
        tip = self.handles[0].tip
        self.shut()
        self.files.rebuild("c").close()
        self.open()
        assert self.handles[0].tip == tip

    @invariant()
    def grown(self) -> None:
        for handle in getattr(self, "handles", ()):
            assert handle.grown == sum(taken_by(len(k), len(v)) for k, v in self.now.items() if v is not None)

    @invariant()
    def newest(self) -> None:
        for handle in getattr(self, "handles", ()):
            assert {key: handle.get(handle.tip, key) for key in self.now} == {
                key: False if value is None else value for key, value in self.now.items()
            }

    def teardown(self) -> None:
        if hasattr(self, "handles"):
            self.shut()
        self.stack.close()


test_handles_agree_with_a_model: Callable[[], None] = pytest.mark.filterwarnings("default")(Handles.TestCase)
Handles.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
