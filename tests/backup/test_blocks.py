"""Blocks of the local cold store are in a backup once, and come back; one that is gone is told of."""

from __future__ import annotations

from pathlib import Path

import diary
import pytest
from cold_server import until_sealed
from peer import request
from server_process import Serve, ServerProcess
from test_once import done, faults, run

from rlite_pubsub.cli.doctor import proof
from rlite_pubsub.storage.store import Store

BLOCK_BYTES = 16 << 10


@pytest.fixture
def sealed(serve: Serve) -> ServerProcess:
    """A server with a topic that has blocks, which has ended."""
    server = serve("--cold-store", "local", "--cold-block-size", str(BLOCK_BYTES))
    with server.connect() as peer:
        peer.send(b"".join(request("XADD", "t", f"{each}-0", "n", each, "v", "v" * 200) for each in range(1, 401)))
        peer.replies(400)
        peer.do("SET", "n", 7)
        until_sealed(peer, "t", BLOCK_BYTES)
    server.end()
    return server


def test_blocks_are_brought_once_and_come_back(tmp_path: Path, sealed: ServerProcess) -> None:
    store, target, back = sealed.store_folder, tmp_path / "target", tmp_path / "back"
    done("backup", store, target)
    brought = {path: path.stat().st_mtime_ns for path in (target / "blocks").rglob("*.parquet")}
    assert brought
    done("backup", store, target)
    assert {path: path.stat().st_mtime_ns for path in (target / "blocks").rglob("*.parquet")} == brought
    assert not faults(target)
    before = diary.digest(store)
    done("restore", target, back)
    with Store.open(back) as opened:
        assert not list(proof.faults(opened, str(back)))
    assert diary.digest(back) == before


def test_block_that_is_gone_is_named_and_all_else_is_in_the_backup(tmp_path: Path, sealed: ServerProcess) -> None:
    store, target = sealed.store_folder, tmp_path / "target"
    gone = sorted((store / "cold").rglob("*.parquet"))[0]
    gone.unlink()
    found = run("backup", store, target)
    assert found.returncode == 1
    assert f"{gone.relative_to(store / 'cold')}: this block of the cold store is not there" in found.stderr
    wrong = faults(target)
    assert len(wrong) == 1 and str(gone.relative_to(store / "cold")) in wrong[0]
    refused = run("restore", target, tmp_path / "back")
    assert refused.returncode == 1 and "blocks/" in refused.stderr
