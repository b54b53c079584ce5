"""An environment in memory: nobody else finds it, and nothing of it stays behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rlite_pubsub.storage import memory
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.errors import StoreUnwritable


@pytest.fixture
def environment() -> Iterator[Environment]:
    opened = memory.open_memory()
    yield opened
    opened.close()


def test_its_files_have_no_names_once_it_is_open(environment: Environment) -> None:
    assert not environment.path.parent.exists()


def test_what_is_written_to_it_can_be_read(environment: Environment) -> None:
    environment.write(lambda txn: txn.put(b"k", b"v" * 100_000))
    assert environment.read(lambda txn: txn.get(b"k")) == b"v" * 100_000


def test_two_of_them_share_nothing(environment: Environment) -> None:
    other = memory.open_memory()
    environment.write(lambda txn: txn.put(b"k", b"v"))
    assert other.read(lambda txn: txn.get(b"k")) is None
    other.close()


def test_without_shared_memory_it_is_in_a_temporary_file_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_SHARED_MEMORY", tmp_path / "missing")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    environment = memory.open_memory()
    assert environment.path.is_relative_to(tmp_path) and not list(tmp_path.iterdir())
    environment.write(lambda txn: txn.put(b"k", b"v"))
    environment.close()


def test_no_place_for_it_is_an_error_of_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_SHARED_MEMORY", tmp_path / "missing")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(StoreUnwritable):
        memory.open_memory()
