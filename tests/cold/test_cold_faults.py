"""What is wrong in a cold store is named to whoever needs it, and to nobody else: the server lives, what is whole is
read, and nothing wrong ever is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cold_server import Sealer, Twins, about, blocks, files_of, gated, pairs, said, until_sealed
from patience import until
from peer import request
from server_process import Serve

from rlite_pubsub.cold import manifest, paths

BLOCK_BYTES = 32 << 10
LAST = 2000
CACHE_FORGETS = 0

Seal = Callable[..., Sealer]


@pytest.fixture
def history(twins: Twins, seal: Seal) -> Twins:
    """Both have the topic `t` and `u`, most of which is in several blocks, and none of them in memory."""
    twins.cold.do("CONFIG", "SET", "cold-cache", CACHE_FORGETS)
    twins.cold.do("CONFIG", "SET", "cold-grace", 3600)
    sealer = seal(twins.cold_server.store_folder, BLOCK_BYTES)
    for name in ("t", "u"):
        twins.add(name, range(1, LAST + 1), 60)
        until_sealed(twins.cold, name, BLOCK_BYTES)
    sealer.end()
    until(lambda: b"cold_cached_bytes" in twins.cold.do("INFO"), "the server's notice of the blocks")
    return twins


def file_of(twins: Twins, block: dict[bytes, Any]) -> Path:
    return twins.cold_server.store_folder / "cold" / block[b"path"].decode()


def flip_a_bit(file: Path, other: Path) -> None:
    data = bytearray(file.read_bytes())
    data[99] ^= 0x10
    file.write_bytes(data)


def flip_a_bit_at_the_end(file: Path, other: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-40] ^= 1
    file.write_bytes(data)


def cut_off(file: Path, other: Path) -> None:
    os.truncate(file, file.stat().st_size - 100)


def empty(file: Path, other: Path) -> None:
    os.truncate(file, 0)


def remove(file: Path, other: Path) -> None:
    file.unlink()


def put_another_in_its_place(file: Path, other: Path) -> None:
    file.write_bytes(other.read_bytes())


def lock_up(file: Path, other: Path) -> None:
    """Root may read anything, but no folder as a file."""
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    "harm",
    [flip_a_bit, flip_a_bit_at_the_end, cut_off, empty, remove, put_another_in_its_place, lock_up],
)
def test_a_block_that_is_not_as_it_was_written_is_named_and_the_rest_is_read(
    history: Twins, harm: Callable[[Path, Path], None]
) -> None:
    known = blocks(history.cold, "t")
    assert len(known) > 3
    bad, name = known[1], known[1][b"path"].decode()
    file = file_of(history, bad)
    whole = file.read_bytes()
    harm(file, file_of(history, blocks(history.cold, "u")[1]))
    for words in (
        ("XRANGE", "t", "-", "+"),
        ("XREVRANGE", "t", "+", "-"),
        ("XRANGE", "t", bad[b"first"], bad[b"first"]),
        ("XREAD", "COUNT", LAST, "STREAMS", "t", 0),
        ("XDEL", "t", bad[b"last"]),
        ("XTRIM", "t", "MINID", bad[b"last"]),
        ("DUMP", "t"),
    ):
        reply = history.cold.do(*words)
        assert isinstance(reply, Exception), words
        assert str(reply).startswith("COLD ") and name in str(reply), (words, reply)
    before, behind = "(" + bad[b"first"].decode(), "(" + bad[b"last"].decode()
    assert history.do("XRANGE", "t", "-", before)
    assert history.do("XRANGE", "t", behind, "+")
    assert history.do("XREVRANGE", "t", "+", behind)
    assert history.do("XREVRANGE", "t", "+", "-", "COUNT", 300)
    assert history.do("XLEN", "t") == LAST
    assert history.do("XADD", "t", "9000-0", "a", "b")
    history.assert_alike("u")
    with history.cold_server.connect(protocol=3) as follower:
        follower.do("TOPIC.SUBSCRIBE", "t", "-")
        at = known[0][b"count"]
        assert [follower.reply()[2] for _ in range(at)][-1] == known[0][b"last"]
        if file.is_dir():
            file.rmdir()
        file.write_bytes(whole)
        assert [follower.reply()[2] for _ in range(LAST + 1 - at)][-1] == b"9000-0"
    until(lambda: not isinstance(history.cold.do("XRANGE", "t", "-", "+"), Exception), "the block that is back")
    history.assert_alike("t")


def test_a_block_that_is_lost_can_be_trimmed_away_unread(history: Twins) -> None:
    known = blocks(history.cold, "t")
    for block in known[:2]:
        file_of(history, block).unlink()
    assert history.cold.do("XTRIM", "t", "MINID", "~", known[2][b"first"]) == known[0][b"count"] + known[1][b"count"]
    history.plain.do("XTRIM", "t", "MINID", known[2][b"first"])
    assert said(history.cold.do("XRANGE", "t", "-", "+")) == said(history.plain.do("XRANGE", "t", "-", "+"))
    assert history.do("XLEN", "t")


def test_one_topic_whose_block_is_lost_in_the_midst_of_sealing_does_not_keep_others_from_being_sealed(
    twins: Twins, seal: Seal
) -> None:
    twins.add("t", range(1, LAST + 1), 300)
    assert seal(twins.cold_server.store_folder, 256 << 10, failpoint="cold-begun").exit_code() < 0
    file_of(twins, blocks(twins.cold, "t")[0]).unlink()
    for name in ("a", "b", "u", "v", "w", "x"):  # before it and behind it, in whatever order they are
        twins.add(name, range(1, 1001), 300)
    sealer = seal(twins.cold_server.store_folder, 256 << 10)
    for name in ("a", "b", "u", "v", "w", "x"):
        until_sealed(twins.cold, name, 256 << 10)
    sealer.end()
    assert said(twins.cold.do("XRANGE", "t", "-", "+")) == said(twins.plain.do("XRANGE", "t", "-", "+"))


def test_retention_drops_whole_blocks_and_their_files_stay_for_who_has_begun_to_read(
    history: Twins, seal: Seal
) -> None:
    twins = history
    twins.cold.do("CONFIG", "SET", "cold-grace", 5)
    known = blocks(twins.cold, "t")
    there = files_of(twins, "t")
    kept = LAST - known[0][b"count"] - known[1][b"count"] - 5
    twins.gate.touch()
    reading = twins.cold_server.connect()
    reading.send(request("XRANGE", "t", "-", "+"))
    twins.cold.do("TOPIC.CONFIG", "t", "SET", "RETAIN-LENGTH", kept)
    left = known[2:]
    until(lambda: blocks(twins.cold, "t") == left, "retention")
    length = about(twins.cold, "t")[b"length"]
    assert length == kept + 5  # the rest of a block stays with it
    sealer = seal(twins.cold_server.store_folder, BLOCK_BYTES, grace_s=5)
    where = paths.manifest_of(b"t", pairs(twins.cold.do("TOPIC.BLOCKS", "t"))[b"number"])
    until(lambda: len(manifest.read(twins.place, where).blocks) == len(left), "the manifest")
    assert files_of(twins, "t") == there
    twins.gate.unlink()
    assert len(reading.reply()) == length  # what there was when it came to it, and no error
    reading.close()
    until(lambda: files_of(twins, "t") == sorted(each[b"path"].decode() for each in left), "the end of the grace")
    sealer.end()
    first = left[0][b"first"]
    assert said(twins.cold.do("XRANGE", "t", "-", "+")) == said(twins.plain.do("XRANGE", "t", first, "+"))


@pytest.fixture
def without_arrow(tmp_path: Path) -> dict[str, str]:
    """The environment of a server that has no pyarrow."""
    folder = tmp_path / "without"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import importlib.util\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *words: None if name == 'pyarrow' else found(name, *words)\n"
    )
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


def test_without_arrow_a_server_says_what_it_needs(
    serve: Serve, seal: Seal, tmp_path: Path, without_arrow: dict[str, str]
) -> None:
    server = serve()
    with server.connect() as peer:
        for number in range(500):
            peer.send(request("XADD", "t", f"{number + 1}-0", "v", b"v" * 200))
        peer.replies(500)
        sealer = seal(server.store_folder, BLOCK_BYTES)
        until_sealed(peer, "t", BLOCK_BYTES)
        sealer.end()
    server.end()
    refused = serve("--cold-store", "local", environment=without_arrow, wait=False)
    assert refused.exit_code() == 1
    assert "needs the extra `cold`" in refused.log() + refused.output()
    server = serve(environment=without_arrow)
    with server.connect() as peer:
        reply = peer.do("XRANGE", "t", "-", "+")
        assert str(reply).startswith("COLD ") and "rlite-pubsub[cold]" in str(reply)
        assert peer.do("XREVRANGE", "t", "+", "-", "COUNT", 1)[0][0] == b"500-0"
        assert peer.do("XADD", "t", "600-0", "a", "b") == b"600-0"
        assert peer.do("XLEN", "t") == 501


def test_memory_stays_bounded_while_a_long_history_is_read(serve: Serve, seal: Seal, tmp_path: Path) -> None:
    server = serve("--cold-cache", "4mb", environment=gated(tmp_path))
    with server.connect() as peer:
        for start in range(1, 60_001, 1000):
            numbers = range(start, start + 1000)
            peer.send(b"".join([request("XADD", "t", f"{each}-0", "v", b"%08d" % each * 120) for each in numbers]))
            peer.replies(1000)
        sealer = seal(server.store_folder, 8 << 20)
        until_sealed(peer, "t", 8 << 20)
        sealer.end()
        for number in range(500):
            peer.do("QUEUE.SUBSCRIBER", "t", f"q{number}")
            peer.do("QUEUE.POP", "t", f"q{number}")
            peer.do("QUEUE.SLEEP", "t", f"q{number}")
        peer.do("XRANGE", "t", "-", "+", "COUNT", 1000)
        before = server.own_memory_bytes()
        most, seen, last = 0, 0, "-"
        while found := peer.do("XRANGE", "t", last, "+", "COUNT", 1000):
            seen += len(found)
            last = "(" + found[-1][0].decode()
            most = max(most, server.own_memory_bytes())
    assert seen == 60_000
    assert most - before < 48 << 20
