"""Sealing is killed at every step, and what was acknowledged is there once, byte for byte, whatever happened since."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from cold_server import Sealer, Twins, about, blocks, files_of, folder_of, until_sealed, wrong_files
from patience import until
from peer import Peer, request
from server_process import Serve, ServerProcess

import rlite_pubsub
from rlite_pubsub.cold import checking, manifest, paths
from rlite_pubsub.cold.errors import ManifestDamaged

BLOCK_BYTES = 1 << 20
STEPS = [
    "cold-file-renamed",
    "cold-written",
    "cold-mirrored",
    "cold-begun",
    "cold-slice",
    "cold-sealed",
]
SOURCE = Path(rlite_pubsub.__file__).parent

Seal = Callable[..., Sealer]


def store_of(twins: Twins) -> Path:
    return twins.cold_server.store_folder


def kill_at(step: str, twins: Twins, seal: Seal) -> None:
    assert seal(store_of(twins), BLOCK_BYTES, failpoint=step).exit_code() == -signal.SIGKILL


def seal_all(twins: Twins, seal: Seal, *names: str) -> None:
    sealer = seal(store_of(twins), BLOCK_BYTES)
    for name in names or ("t",):
        until_sealed(twins.cold, name, BLOCK_BYTES)
    sealer.end()


@pytest.mark.parametrize("step", STEPS)
def test_nothing_is_lost_or_doubled_or_undone_where_sealing_is_killed(twins: Twins, seal: Seal, step: str) -> None:
    twins.add("t", range(1, 6001), 300)
    kill_at(step, twins, seal)
    twins.assert_alike("t")
    for number in (*range(100, 140), 700, 1999, *range(2050, 2500, 7), 5990, 6000):
        assert twins.do("XDEL", "t", f"{number}-{number % 3}") == 1
    assert twins.do("XTRIM", "t", "MAXLEN", "=", 5500) > 300
    twins.do("XDEL", "t", "3-0", "801-0", "801-1", "900-0")
    twins.add("t", range(6001, 7001), 300)
    twins.assert_alike("t")
    kill_at("cold-slice", twins, seal)
    twins.assert_alike("t")
    assert twins.do("XTRIM", "t", "MINID", "=", "1203-1") > 0
    twins.do("XADD", "t", "MAXLEN", "=", 5000, "8000-1", "a", "b")
    seal_all(twins, seal)
    twins.assert_alike("t")
    assert blocks(twins.cold, "t")
    assert wrong_files(twins, "t") == []
    assert twins.do("XTRIM", "t", "MAXLEN", 0) == 5000
    twins.assert_alike("t")
    assert blocks(twins.cold, "t") == []


@pytest.mark.parametrize("step", ["cold-begun", "cold-slice"])
def test_a_topic_that_is_gone_renamed_or_copied_when_the_next_worker_comes_is_as_it_should_be(
    twins: Twins, seal: Seal, step: str
) -> None:
    for name in ("t", "u", "v"):
        twins.add(name, range(1, 6001), 300)
        kill_at(step, twins, seal)
        if name == "t":
            twins.do("DEL", name)
            twins.add(name, range(1, 100), 10)
        elif name == "u":
            twins.do("RENAME", name, "renamed")
        else:
            twins.do("COPY", name, "copy", "DB", 3)
            twins.do("XDEL", name, "17-2")
    seal_all(twins, seal, "renamed", "v")
    twins.assert_alike("t", "renamed", "v")
    twins.do("SWAPDB", 0, 3)
    twins.assert_alike("copy")
    until_alike = seal(store_of(twins), BLOCK_BYTES)
    until_sealed(twins.cold, "copy", BLOCK_BYTES)
    until_alike.end()
    twins.assert_alike("copy")
    twins.do("SWAPDB", 0, 3)
    twins.do("FLUSHDB")
    twins.do("SELECT", 3)
    twins.assert_alike("copy")


def test_a_worker_that_dies_while_it_removes_files_is_followed_by_one_that_removes_them(
    twins: Twins, seal: Seal
) -> None:
    twins.cold.do("CONFIG", "SET", "cold-grace", 5)
    twins.add("t", range(1, 6001), 300)
    seal_all(twins, seal)
    there = [each[b"path"].decode() for each in blocks(twins.cold, "t")]
    assert twins.do("XTRIM", "t", "MINID", "2500") > 0
    kill_at("cold-removed", twins, seal)
    sealer = seal(store_of(twins), BLOCK_BYTES)
    left = [each[b"path"].decode() for each in blocks(twins.cold, "t")]
    assert left
    until(lambda: files_of(twins, "t") == left)
    sealer.end()
    assert set(left) < set(there)
    twins.assert_alike("t")
    assert wrong_files(twins, "t") == []


def test_a_server_that_is_killed_under_load_while_it_seals_has_every_entry_it_acknowledged(
    serve: Serve, tmp_path: Path
) -> None:
    words = ("--cold-store", "local", "--cold-block-size", "256kb")
    acknowledged: list[bytes] = []
    sent = 0
    for _ in range(3):
        server = serve(*words)
        with server.connect() as peer:
            until_sealing = server.connect()
            killer = threading.Thread(target=kill_when_sealing, args=(server, until_sealing, len(acknowledged)))
            killer.start()
            try:
                while True:
                    numbers = range(sent, sent + 100)
                    peer.send(b"".join([request("XADD", "t", "*", "n", each, "v", b"v" * 90) for each in numbers]))
                    sent += 100
                    acknowledged += peer.replies(100)
            except OSError:
                pass
            killer.join()
    server = serve(*words)
    with server.connect() as peer:
        until_sealed(peer, "t", 256 << 10)
        found = peer.do("XRANGE", "t", "-", "+")
        assert peer.do("XLEN", "t") == len(found)
        assert len(blocks(peer, "t")) > 3
    ids = [entry[0] for entry in found]
    told = [int(entry[1][1]) for entry in found]
    assert set(acknowledged) <= set(ids)
    assert len(set(ids)) == len(ids)
    assert told == sorted(set(told))
    assert all(entry[1][3] == b"v" * 90 for entry in found)


def kill_when_sealing(server: ServerProcess, peer: Peer, before: int) -> None:
    """In the midst of it: some blocks are sealed, and the load goes on."""
    known = 0

    def is_sealing() -> bool:
        nonlocal known
        found = about(peer, "t") if peer.do("EXISTS", "t") else {}
        known = known or found.get(b"cold-entries", 0)
        return bool(found) and found[b"cold-entries"] > known and found[b"length"] > before + 3000

    until(is_sealing, "sealing")
    server.end(by=signal.SIGKILL)
    peer.close()


def test_manifests_follow_a_topic_that_was_renamed_copied_trimmed_and_deleted(twins: Twins, seal: Seal) -> None:
    def told(name: str) -> list[str]:
        try:
            found = manifest.read(twins.place, folder_of(twins.cold, name) + paths.MANIFEST)
        except ManifestDamaged:
            return ["nothing"]
        return [block.path for block in found.blocks]

    def known(name: str) -> list[str]:
        return [each[b"path"].decode() for each in blocks(twins.cold, name)]

    twins.cold.do("CONFIG", "SET", "cold-grace", 3600)
    twins.add("t", range(1, 6001), 300)
    seal_all(twins, seal)
    twins.do("COPY", "t", "copy")
    twins.do("RENAME", "t", "renamed")
    sealer = seal(store_of(twins), BLOCK_BYTES)
    for name in ("copy", "renamed"):
        twins.add(name, range(6001, 9001), 300)
        until_sealed(twins.cold, name, BLOCK_BYTES)
        until(lambda name=name: told(name) == known(name), "the manifest")  # type: ignore[misc]
    shared = known("copy")[0]
    assert shared == known("renamed")[0]
    for name in ("copy", "renamed"):  # with the second one nobody needs the block that they share
        twins.cold.do("XTRIM", name, "MINID", "~", blocks(twins.cold, name)[1][b"first"])
    for name in ("copy", "renamed"):
        until(lambda name=name: told(name) == known(name), "the manifest")  # type: ignore[misc]
        assert shared not in told(name)
    folders = [folder_of(twins.cold, name) for name in ("copy", "renamed")]
    twins.do("DEL", "copy", "renamed")
    until(
        lambda: all(not manifest.read(twins.place, folder + paths.MANIFEST).blocks for folder in folders), "no manifest"
    )
    assert not [each for each in checking.verify(twins.place) if each.is_wrong and each.path.startswith(tuple(folders))]
    sealer.end()


def test_every_step_of_sealing_is_killed_by_some_test() -> None:
    points = set(re.findall(r'failpoint\("([a-z-]+)"\)', (SOURCE / "cold" / "sealer.py").read_text()))
    assert points == {step for step in STEPS if not step.startswith("cold-file")} | {"cold-removed"}
