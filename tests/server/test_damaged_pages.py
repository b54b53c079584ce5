"""Pages that LMDB can't read end a process: who looks after a store says what is damaged, as does the next server."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest
from server_process import Serve

import rlite_pubsub
from rlite_pubsub.cli.command_line import main
from rlite_pubsub.storage import proving
from rlite_pubsub.storage.store import Store

META_BYTES = 8192


def damage(file: Path, seed: int) -> None:
    """200 bytes of it, but for the meta pages, are anything."""
    dice = random.Random(seed)
    data = bytearray(file.read_bytes())
    for _ in range(200):
        data[dice.randrange(META_BYTES, len(data))] = dice.randrange(256)
    file.write_bytes(data)


@pytest.fixture
def filled(folder: Path) -> Path:
    with rlite_pubsub.Redis(folder) as client:
        client.mset({f"k{number}": "v" * 50 for number in range(5000)})
        client.rpush("list", *range(2000))
    return folder


def test_a_whole_store_is_whole(filled: Path) -> None:
    for name in ("data.mdb", "live.mdb"):
        assert proving.fault_in(filled / name) == ""
        with Store.open(filled):
            assert proving.fault_in(filled / name, is_shared=True) == ""


@pytest.mark.parametrize("seed", range(4))
def test_doctor_says_which_file_is_damaged(filled: Path, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    damage(filled / "data.mdb", seed)
    assert main(["doctor", "--store", str(filled)]) == 1
    assert "data.mdb is damaged" in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(4))
def test_doctor_makes_a_damaged_live_mdb_anew(filled: Path, seed: int) -> None:
    with Store.open(filled) as store:
        store.live.write(lambda txn: [txn.put(b"~%d" % number, b"x" * 400) for number in range(200)])
    damage(filled / "live.mdb", seed)
    assert main(["doctor", "--store", str(filled)]) == 0


def test_a_file_that_is_cut_is_said(filled: Path) -> None:
    file = filled / "data.mdb"
    file.write_bytes(file.read_bytes()[: 20 * 4096])
    assert "SIGBUS" in proving.fault_in(file)


def test_a_server_that_a_page_has_ended_is_followed_by_one_that_says_why(serve: Serve, filled: Path) -> None:
    server = serve(store_folder=filled)
    assert server.end(signal.SIGABRT) == -signal.SIGABRT
    assert "Aborted" in proving.noted_crash(filled)
    damage(filled / "data.mdb", 1)
    damage(filled / "live.mdb", 1)
    refused = serve(store_folder=filled, wait=False)
    assert refused.exit_code() == 1
    assert "data.mdb is damaged" in refused.output() + refused.log()


def test_a_server_behind_one_that_was_ended_proves_the_store_once_and_makes_live_mdb_anew(
    serve: Serve, filled: Path
) -> None:
    assert serve(store_folder=filled).end(signal.SIGBUS) == -signal.SIGBUS
    damage(filled / "live.mdb", 1)
    server = serve(store_folder=filled)
    assert "has ended the last server" in server.log() and "live.mdb: it may have ended" in server.log()
    with server.connect() as client:
        assert client.do("DBSIZE") == 5001
    assert server.end() == 0
    again = serve(store_folder=filled)
    assert again.log().count("has ended the last server") == 1
    assert again.end(signal.SIGKILL) == -signal.SIGKILL
    assert proving.noted_crash(filled) == ""
