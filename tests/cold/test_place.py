"""A file of a place is whole or not there, wherever the place is."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from patience import PATIENCE_S

from rlite_pubsub.cold.errors import PlaceFailed
from rlite_pubsub.cold.local_place import LocalPlace
from rlite_pubsub.cold.place import LEFTOVER_AGE_S, Place
from rlite_pubsub.cold.places import open_place

WRITER = """
import sys
from rlite_pubsub.cold.places import open_place
open_place(sys.argv[1], "/").write("news/7/block.parquet", b"new" * 1_000_000)
"""


LARGE_WRITER = WRITER.replace("1_000_000", "10_000_000")
"""So much is sent to an object store in several parts."""


def test_a_file_is_what_was_written(any_place: Place) -> None:
    any_place.write("news/7/a.parquet", b"0123456789")
    assert any_place.read("news/7/a.parquet") == b"0123456789"
    assert any_place.read("news/7/a.parquet", 3, 4) == b"3456"
    assert any_place.read("news/7/a.parquet", 8, 100) == b"89"
    assert any_place.read("news/7/a.parquet", 50, 1) == b""
    assert any_place.size("news/7/a.parquet") == 10
    any_place.write("news/7/a.parquet", b"again")
    assert b"".join(any_place.slices("news/7/a.parquet")) == b"again"


def test_files_are_listed_by_their_paths_with_their_sizes_and_times(any_place: Place) -> None:
    began = time.time()
    assert list(any_place.files()) == [] and list(any_place.files("news")) == []
    for path in ("news/8/b", "news/7/a", "%3A%2F%25/1/c d"):
        any_place.write(path, b"12345")
    found = list(any_place.files())
    assert [file[:2] for file in found] == [("%3A%2F%25/1/c d", 5), ("news/7/a", 5), ("news/8/b", 5)]
    for file in found:  # fsspec's memory tells no times
        assert file.modified_s is None or began - 2 <= file.modified_s <= time.time() + 2
    assert [file.path for file in any_place.files("news/7")] == ["news/7/a"]
    assert any_place.read("%3A%2F%25/1/c d") == b"12345"


def test_a_file_that_is_not_there_is_said_to_be_not_there(any_place: Place) -> None:
    any_place.write("news/7/a", b"x")
    for path in ("news/7/b", "olds/7/a"):
        with pytest.raises(FileNotFoundError):
            any_place.read(path)
        with pytest.raises(FileNotFoundError):
            any_place.size(path)
        any_place.delete(path)
    any_place.delete("news/7/a")
    with pytest.raises(FileNotFoundError):
        any_place.read("news/7/a")


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/\0"])
def test_no_path_leads_out_of_a_place(place: Place, path: str) -> None:
    for action in (lambda: place.read(path), lambda: place.write(path, b""), lambda: place.delete(path)):
        with pytest.raises(PlaceFailed, match="not a path within a cold store"):
            action()


def test_a_place_is_carried_to_another_process_as_its_address(any_place: Place) -> None:
    any_place.write("a", b"x")
    assert pickle.loads(pickle.dumps(any_place)).read("a") == b"x"


FORKED = """
import os, signal, sys
from rlite_pubsub.cold.places import open_place
place = open_place(sys.argv[1], "/")
place.write("a", b"x")
parents = place._filesystem()[0]
pid = os.fork()
if pid == 0:
    signal.alarm(30)
    is_own = place._filesystem()[0] is not parents
    os._exit(0 if is_own and place.read("a") == b"x" else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_a_place_is_opened_again_after_a_fork(s3_url: str) -> None:
    assert subprocess.run([sys.executable, "-c", FORKED, s3_url], timeout=PATIENCE_S).returncode == 0


def test_where_a_place_is(tmp_path: Path) -> None:
    assert open_place("", tmp_path).url == str(tmp_path / "cold")
    assert open_place("old", tmp_path).url == str(tmp_path / "old")
    assert open_place("/var/old", tmp_path).url == "/var/old"
    assert open_place("file:///var/old%20ones", tmp_path).url == "/var/old ones"


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    place = open_place("s3://me:word@bucket/x?region=eu&access_key=me&secret_key=word&session_token=word", tmp_path)
    assert place.shown == "s3://bucket/x?region=eu"
    assert open_place("s3://bucket/x", tmp_path).shown == "s3://bucket/x"


def test_credentials_may_come_from_the_environment(
    s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    place = open_place(s3_url.partition("&access_key")[0], tmp_path)
    place.write("a", b"x")
    assert place.read("a") == b"x"


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/x?colour=blue",
        "s3://missing/x?endpoint_override=http://127.0.0.1:9&access_key=a&secret_key=b&region=us-east-1",
        "nonsense://x/y",
    ],
)
def test_a_place_that_cannot_be_reached_is_named(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlite_pubsub.cold.remote_place._ATTEMPTS", 1)
    place = open_place(url, tmp_path)
    with pytest.raises(PlaceFailed) as caught:
        place.write("a", b"x")
    assert url.partition("?")[0] in str(caught.value) and "secret" not in str(caught.value)
    with pytest.raises(PlaceFailed):
        place.read("a")


def test_a_folder_that_may_not_be_written_is_named(place: Place, tmp_path: Path) -> None:
    (tmp_path / "cold").write_bytes(b"a file")
    with pytest.raises(PlaceFailed, match="news/7/a: "):
        place.write("news/7/a", b"x")


def test_files_and_folders_are_their_owners_alone(place: Place, tmp_path: Path) -> None:
    place.write("news/7/a", b"x")
    assert {oct(path.stat().st_mode & 0o777) for path in (tmp_path / "cold").rglob("*") if path.is_dir()} == {"0o700"}
    assert (tmp_path / "cold/news/7/a").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("failpoint", "expected"),
    [
        ("cold-file-begun", b"old"),
        ("cold-file-written", b"old"),
        ("cold-file-synced", b"old"),
        ("cold-file-verified", b"old"),
        ("cold-file-renamed", b"new" * 1_000_000),
    ],
)
def test_a_writer_that_is_killed_leaves_the_old_file_or_the_new_one(
    place: Place, failpoint: str, expected: bytes
) -> None:
    assert isinstance(place, LocalPlace)
    place.write("news/7/block.parquet", b"old")
    environment = {**os.environ, "RLITE_FAILPOINT": failpoint}
    killed = subprocess.run([sys.executable, "-c", WRITER, place.url], env=environment, timeout=PATIENCE_S)
    assert killed.returncode == -signal.SIGKILL
    assert place.read("news/7/block.parquet") == expected
    assert [file.path for file in place.files()] == ["news/7/block.parquet"]
    left = [path for path in place.folder.rglob("*") if path.is_file() and path.name.startswith(".")]
    assert len(left) == (0 if failpoint == "cold-file-renamed" else 1)
    assert place.sweep() == 0  # it may be somebody's who is still writing
    assert place.sweep(left[0].stat().st_mtime + LEFTOVER_AGE_S if left else None) == len(left)
    assert not any(path.exists() for path in left)


@pytest.mark.parametrize("before", [b"old", None], ids=["over an object", "a new one"])
def test_a_writer_that_is_killed_leaves_no_part_of_an_object(
    s3_url: str, tmp_path: Path, before: bytes | None
) -> None:
    place = open_place(s3_url, tmp_path)
    if before is not None:
        place.write("news/7/block.parquet", before)
    environment = {**os.environ, "RLITE_FAILPOINT": "cold-object-written"}
    killed = subprocess.run([sys.executable, "-c", LARGE_WRITER, s3_url], env=environment, timeout=PATIENCE_S)
    assert killed.returncode == -signal.SIGKILL
    assert [file[:2] for file in place.files()] == ([("news/7/block.parquet", 3)] if before else [])


def test_a_write_that_fails_leaves_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(place, LocalPlace)

    def refuse(_descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("rlite_pubsub.cold.local_place.os.fsync", lambda descriptor: None)
    place.write("news/7/a", b"old")
    monkeypatch.setattr("rlite_pubsub.cold.local_place.os.fsync", refuse)
    with pytest.raises(PlaceFailed, match="news/7/a: No space left on device"):
        place.write("news/7/a", b"new")
    assert [path.name for path in place.folder.rglob("*") if path.is_file()] == ["a"]
    assert place.read("news/7/a") == b"old"


def test_bytes_that_come_back_otherwise_get_no_name(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(
        "rlite_pubsub.cold.local_place.os.write", lambda descriptor, data: real(descriptor, b"?" * len(data))
    )
    with pytest.raises(PlaceFailed, match="what can be read is not what was written"):
        place.write("news/7/a", b"new")
    assert not list(place.files())
