"""Opening a store: once per process, by several processes at once, over what other versions and crashes have left."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlite_pubsub.storage import databases, format
from rlite_pubsub.storage.boot import boot_id
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.errors import (
    NotAStoreFolder,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreFormatMismatch,
    StoreUnwritable,
)
from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment
from rlite_pubsub.storage.store import Store

NOBODY = 65534
OPENER = """
import sys
from rlite_pubsub.storage.store import Store
sys.stdin.readline()
store = Store.open(sys.argv[1])
store.live.write(lambda txn: txn.put(b"zz" + sys.argv[2].encode(), b""))
print("open", flush=True)
sys.stdin.readline()
store.close()
"""


@pytest.fixture
def switch_often() -> Iterator[None]:
    """Let threads take turns in the middle of everything."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def put(environment: Environment, key: bytes, value: bytes) -> None:
    environment.write(lambda txn: txn.put(key, value))


def get(environment: Environment, key: bytes) -> bytes | None:
    return environment.read(lambda txn: txn.get(key))


def leave_store(folder: Path, change: Callable[[Store], None]) -> None:
    with Store.open(folder) as store:
        change(store)


def exit_status_of(run: Callable[[], bool]) -> int:
    """Of a forked child: 0 if it found true."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if run() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_new_store_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "store"
    with Store.open(folder):
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert modes == {
        "live.mdb": 0o600,
        "live.mdb-lock": 0o600,
        "data.mdb": 0o600,
        "data.mdb-lock": 0o600,
        "data.delta": 0o600,
        "data.safe": 0o600,
        "store.lock": 0o600,
        "routes.hint": 0o600,
        "writer.lock": 0o600,
        "subscribers": 0o700,
    }


def test_the_same_folder_is_one_store_by_whatever_name_until_its_last_close(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "store")
    first = Store.open(tmp_path / "store")
    second = Store.open(tmp_path / "link")
    assert first is second
    first.close()
    put(second.live, b"still", b"open")
    second.close()
    second.close()
    with pytest.raises(StoreClosed):
        put(second.live, b"no longer", b"open")
    with Store.open(tmp_path / "store") as third:
        assert third is not first
        assert get(third.live, b"still") == b"open"


def test_threads_that_open_it_at_once_share_it(tmp_path: Path, switch_often: None) -> None:
    together = threading.Barrier(8)
    opened: list[Store] = []

    def open_it() -> None:
        together.wait()
        opened.append(Store.open(tmp_path / "store"))

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(opened)) == 1 and len(opened) == 8
    for store in opened:
        assert store.is_open
        store.close()
    assert not opened[0].is_open


def test_processes_that_open_it_at_once_share_it(tmp_path: Path, start) -> None:  # type: ignore[no-untyped-def]
    programs = [start(OPENER, tmp_path / "store", number) for number in range(6)]
    for program in programs:
        program.tell()
    for program in programs:
        assert program.line() == "open"
    with Store.open(tmp_path / "store") as store:
        found = store.live.read(lambda txn: [key for key, _ in databases.items(txn, b"zz")])
    assert found == [b"zz%d" % number for number in range(6)]
    for program in programs:
        program.tell()
        assert program.end() == 0


def test_processes_that_open_it_at_once_after_a_boot_wipe_it_once(tmp_path: Path, start) -> None:  # type: ignore[no-untyped-def]
    leave_store(tmp_path / "store", lambda store: put(store.live, databases.BOOT, b"another boot"))
    test_processes_that_open_it_at_once_share_it(tmp_path, start)


def test_live_mdb_is_wiped_at_a_new_boot_and_data_mdb_is_not(tmp_path: Path) -> None:
    def change(store: Store) -> None:
        put(store.live, databases.BOOT, b"another boot")
        put(store.live, b"zz", b"")
        put(store.data, b"zz", b"")

    leave_store(tmp_path, change)
    with Store.open(tmp_path) as store:
        assert get(store.live, b"zz") is None
        assert get(store.live, databases.BOOT) == boot_id()
        assert get(store.data, b"zz") == b""


def test_live_mdb_is_not_wiped_while_another_process_has_it_open(tmp_path: Path, start) -> None:  # type: ignore[no-untyped-def]
    other = start(OPENER, tmp_path, "theirs")
    other.tell()
    assert other.line() == "open"
    leave_store(tmp_path, lambda store: put(store.live, databases.BOOT, b"another boot"))
    with Store.open(tmp_path) as store:
        assert get(store.live, b"zztheirs") == b""
    other.kill()
    with Store.open(tmp_path) as store:
        assert get(store.live, b"zztheirs") is None


@pytest.mark.parametrize("name", ["live.mdb", "data.mdb"])
def test_another_format_version_is_refused_and_left_as_it_is(tmp_path: Path, name: str) -> None:
    def change(store: Store) -> None:
        put(store.live if name == "live.mdb" else store.data, databases.FORMAT, (7).to_bytes(4, "big"))

    leave_store(tmp_path, change)
    before = (tmp_path / name).read_bytes()
    message = f"{name} has format 7, .* reads format {format.VERSION}: use the version that wrote it"
    for _ in range(2):
        with pytest.raises(StoreFormatMismatch, match=message):
            Store.open(tmp_path)
    assert (tmp_path / name).read_bytes() == before


def test_another_programs_environment_is_refused(tmp_path: Path) -> None:
    other = LmdbEnvironment(tmp_path / "data.mdb", "no", quota_bytes=1 << 20)
    put(other, b"their", b"data")
    other.close()
    with pytest.raises(StoreFormatMismatch, match="of another program"):
        Store.open(tmp_path)


@pytest.mark.parametrize("damage", ["garbage", "cut in the header", "cut in the middle"])
def test_a_damaged_live_mdb_is_wiped_aloud(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    leave_store(tmp_path, lambda store: put(store.live, b"zz", b"x" * 100_000))
    path = tmp_path / "live.mdb"
    if damage == "garbage":
        path.write_bytes(os.urandom(100_000))
    else:
        os.truncate(path, 100 if damage == "cut in the header" else 40_000)
    with caplog.at_level(logging.WARNING), Store.open(tmp_path) as store:
        assert get(store.live, b"zz") is None
        put(store.live, b"zz", b"new")
    assert "live.mdb is damaged" in caplog.text


def test_a_damaged_data_mdb_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    leave_store(tmp_path, lambda store: put(store.data, b"zz", b"x" * 100_000))
    garbage = os.urandom(100_000)
    (tmp_path / "data.mdb").write_bytes(garbage)
    with pytest.raises(StoreDamaged, match="data.mdb is damaged .*restore it from a copy"):
        Store.open(tmp_path)
    assert (tmp_path / "data.mdb").read_bytes() == garbage


def test_a_data_mdb_whose_end_is_missing_does_not_kill_the_process(tmp_path: Path, start) -> None:  # type: ignore[no-untyped-def]
    leave_store(tmp_path, lambda store: put(store.data, b"zz", b"x" * 100_000))
    os.truncate(tmp_path / "data.mdb", 40_000)
    program = start(
        """
        import logging, sys
        from rlite_pubsub.storage.store import Store
        from rlite_pubsub.storage.errors import StoreError
        logging.basicConfig(stream=sys.stdout, format="%(message)s")
        try:
            Store.open(sys.argv[1]).data.read(lambda txn: txn.get(b"zz"))
        except StoreError as error:
            print(error)
        """,
        tmp_path,
    )
    assert "bytes shorter than it says it is" in program.line()
    assert program.end() == 0


@pytest.mark.parametrize("name", [".", "subscribers"])
def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "store"
    if name == ".":
        folder.touch()
    else:
        folder.mkdir()
        (folder / name).touch()
    with pytest.raises(NotAStoreFolder, match="is not a folder"):
        Store.open(folder)


def test_a_folder_that_may_not_be_written_is_refused() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user, and needs to: it may write everywhere itself")
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)

        def is_refused() -> bool:
            os.setuid(NOBODY)
            for folder in (name, f"{name}/new"):
                with pytest.raises(StoreUnwritable, match=f"cannot write to the store at {name}.*: Permission denied"):
                    Store.open(folder)
            return True

        assert exit_status_of(is_refused) == 0


def test_a_read_only_file_system_is_refused(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    mounted = subprocess.run(["mount", "--bind", tmp_path, tmp_path], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {mounted.stderr!r}")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", tmp_path], check=True)
        with pytest.raises(StoreUnwritable, match="Read-only file system"):
            Store.open(tmp_path)
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)


def test_a_folder_that_cannot_be_opened_keeps_nothing_open(tmp_path: Path) -> None:
    leave_store(tmp_path, lambda store: put(store.live, databases.FORMAT, b"odd"))
    before = os.listdir("/proc/self/fd")
    with pytest.raises(StoreError):
        Store.open(tmp_path)
    assert os.listdir("/proc/self/fd") == before


def test_a_forked_child_has_no_open_store_and_opens_its_own(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        put(store.live, b"zz", b"parent")

        def works() -> bool:
            assert not store.is_open
            with pytest.raises(StoreClosed, match="open it again"):
                put(store.live, b"zz", b"child")
            store.close()
            with Store.open(tmp_path) as own:
                assert own is not store
                put(own.live, b"zz", b"child")
                return True

        assert exit_status_of(works) == 0
        assert get(store.live, b"zz") == b"child"
        put(store.live, b"zz", b"parent again")
        assert store.is_open


def test_a_fork_waits_for_the_transactions_of_other_threads(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        stop = threading.Event()

        def write_on() -> None:
            while not stop.is_set():
                put(store.live, b"zz", b"thread")
                put(store.data, b"zz", b"thread")

        threads = [threading.Thread(target=write_on) for _ in range(2)]
        for thread in threads:
            thread.start()

        def works() -> bool:
            with Store.open(tmp_path) as own:
                put(own.live, b"zy", b"child")
                put(own.data, b"zy", b"child")
                return True

        try:
            assert [exit_status_of(works) for _ in range(10)] == [0] * 10
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert get(store.data, b"zy") == b"child"


def test_an_environment_of_a_child_that_died_leaves_its_parents_readers_alone(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        assert get(store.live, b"zz") is None

        def ends() -> bool:
            return True

        assert exit_status_of(ends) == 0
        for _ in range(3):
            assert get(store.live, b"zz") is None
