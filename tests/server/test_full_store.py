"""A store at its quota, or on a full disk: reads go on, and what frees room works at once, every time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from disk import fill as fill_disk
from patience import until
from peer import Peer, request
from server_process import Serve, ServerProcess

ROUNDS = 100
QUOTA = "2mb"
BATCH, ENTRY = 10, "x" * 10_000


def is_refused(reply: object) -> bool:
    return isinstance(reply, Exception) and str(reply).startswith(("OOM", "MISCONF"))


def fill(peer: Peer, *words: str) -> int:
    """Append until that is refused; how many were."""
    appended = 0
    while True:
        peer.send(request("XADD", "t", *words, "*", "a", ENTRY) * BATCH)
        replies = peer.replies(BATCH)
        refused = sum(map(is_refused, replies))
        appended += BATCH - refused
        assert all(is_refused(reply) or isinstance(reply, bytes) for reply in replies)
        if refused:
            return appended


def assert_reads_go_on(peer: Peer) -> None:
    assert peer.do("PING") == b"PONG"
    assert peer.do("GET", "kept") == b"x"
    assert len(peer.do("XRANGE", "t", "-", "+", "COUNT", 10)) == 10
    assert is_refused(peer.do("SET", "more", "x" * 3_000_000))


def assert_is_well(server: ServerProcess) -> None:
    assert "Traceback" not in server.log()
    assert "inside a transaction" not in server.log()


FREEING: dict[str, tuple[Callable[[Peer], object], object]] = {
    "del": (lambda peer: peer.do("DEL", "t"), 1),
    "unlink": (lambda peer: peer.do("UNLINK", "t"), 1),
    "xtrim": (lambda peer: peer.do("XTRIM", "t", "MAXLEN", 5) > 0, True),
    "flushall": (lambda peer: peer.do("FLUSHALL"), b"OK"),
    "flushdb": (lambda peer: peer.do("FLUSHDB"), b"OK"),
}


@pytest.mark.parametrize("how", FREEING)
def test_what_frees_room_at_the_quota_works_at_once_and_every_time(serve: Serve, how: str) -> None:
    server = serve("--store-quota", QUOTA)
    free, expected = FREEING[how]
    with server.connect() as peer:
        counts = []
        for _ in range(ROUNDS):
            assert peer.do("SET", "kept", "x") == b"OK"
            counts.append(fill(peer))
            assert_reads_go_on(peer)
            assert free(peer) == expected
        assert min(counts) > 0.7 * max(counts)
    assert_is_well(server)


@pytest.mark.parametrize("value_bytes", [1_000_000, 20_000_000], ids=["the quota", "the map and its reserve"])
def test_transaction_that_exceeds_what_there_is_is_undone_as_a_whole_and_told_so(
    serve: Serve, value_bytes: int
) -> None:
    """The quota is noticed by its commit, the map's end by the command that meets it: the replies before are void."""
    server = serve("--store-quota", QUOTA)
    with server.connect() as peer:
        assert peer.do("SET", "kept", "x") == b"OK"
        sets = [("SET", f"large:{number}", "x" * value_bytes) for number in range(5)]
        queue = [("SET", "first", "x"), *sets, ("GET", "first"), ("ZADD", "set", "1", "m"), ("PUBLISH", "news", "m")]
        peer.send(b"".join(request(*words) for words in [("MULTI",), *queue, ("EXEC",)]))
        *_, replies = peer.replies(len(queue) + 2)
        *refused, published = replies
        assert all(map(is_refused, refused)) and published == 0
        assert peer.do("KEYS", "*") == [b"kept"]
        assert peer.do("SET", "kept", "y") == b"OK"
    assert_is_well(server)


@pytest.mark.parametrize("rule", ["20 entries", "1s"])
def test_retention_frees_room_at_the_quota_every_time(serve: Serve, rule: str) -> None:
    server = serve("--store-quota", QUOTA)
    with server.connect() as peer:
        for _ in range(5):
            assert fill(peer)
            filled = peer.do("XLEN", "t")
            assert peer.do("CONFIG", "SET", "retain", f"t {rule}") == b"OK"
            until(lambda: not is_refused(peer.do("XADD", "t", "*", "a", ENTRY)), "room")
            until(lambda: peer.do("XLEN", "t") < filled / 2, "more of it")  # noqa: B023
            assert peer.do("CONFIG", "SET", "retain", "") == b"OK"
    assert_is_well(server)


def test_expiry_frees_room_at_the_quota_every_time(serve: Serve) -> None:
    server = serve("--store-quota", QUOTA)
    with server.connect() as peer:
        for _ in range(ROUNDS):
            assert fill(peer) > 50
            assert peer.do("PEXPIRE", "t", 1) == 1
            until(lambda: not is_refused(peer.do("XADD", "t", "*", "a", ENTRY)), "room")
    assert_is_well(server)


def test_crowd_that_appends_at_the_quota_does_not_keep_anybody_from_freeing(serve: Serve) -> None:
    """What one client cannot append must not take another's DEL along, though both are in one turn."""
    server = serve("--store-quota", QUOTA)
    crowd = [server.connect() for _ in range(20)]
    with server.connect() as peer:
        fill(peer)
        for round in range(ROUNDS):
            for each in crowd:
                each.send(request("XADD", f"t{round}", "*", "a", ENTRY))
            assert isinstance(peer.do("DEL", "t" if not round else f"t{round - 1}"), int)
            for each in crowd:
                each.reply()
    for each in crowd:
        each.close()
    assert_is_well(server)


def test_another_server_frees_room_that_the_first_one_has_filled(serve: Serve) -> None:
    first, second = serve("--store-quota", QUOTA), serve("--store-quota", QUOTA)
    with first.connect() as full, second.connect() as peer:
        for _ in range(20):
            assert fill(full) > 50
            assert peer.do("DEL", "t") == 1
            until(lambda: not is_refused(full.do("XADD", "t", "*", "a", ENTRY)), "room")
    assert_is_well(first)
    assert_is_well(second)


@pytest.mark.parametrize("how", ["del", "xtrim", "flushall"])
def test_what_frees_room_on_a_full_disk_works_at_once_and_every_time(
    serve: Serve, tiny_disk: Path, how: str
) -> None:
    server = serve(store_folder=tiny_disk / "store")
    free, expected = FREEING[how]
    with server.connect() as peer:
        assert peer.do("SET", "kept", "x") == b"OK"
        for _ in range(4):
            peer.do("SET", "kept", "x")
            assert fill(peer)
            ballast = fill_disk(tiny_disk)
            assert len(peer.do("XRANGE", "t", "-", "+", "COUNT", 10)) == 10
            assert free(peer) == expected
            ballast.unlink()
            until(lambda: not is_refused(peer.do("XADD", "t", "*", "a", ENTRY)), "room")
    assert_is_well(server)


def test_a_durable_mailbox_that_fills_the_store_gives_way_to_keys(serve: Serve) -> None:
    """It loses its oldest, and its subscriber is told; nobody's SET is refused for it."""
    server = serve("--store-quota", "16mb")
    with server.connect() as away:
        assert away.do("CLIENT", "SETNAME", "durable:away") == b"OK"
        away.do("SUBSCRIBE", "c")
    count = 40_000
    with server.connect() as peer:
        for number in range(count):
            peer.send(request("PUBLISH", "c", b"%08d" % number + b"." * 1000))
        replies = peer.replies(count)
        assert not [str(reply) for reply in replies if isinstance(reply, Exception)][:3]
        for number in range(300):
            assert peer.do("SET", f"k{number}", "x" * 10_000) == b"OK"
        assert peer.do("XADD", "t", "*", "a", "b")
    with server.connect() as back:
        assert back.do("CLIENT", "SETNAME", "durable:away") == b"OK"
        back.send(request("SUBSCRIBE", "c"))
        lost = seen = 0
        last = -1
        while last != count - 1:
            reply = back.reply()
            if reply[0] == b"gap":
                lost += reply[2]
            elif reply[0] == b"message":
                seen, last = seen + 1, int(reply[2][:8])
        assert lost > 0 and seen + lost == count
    assert_is_well(server)
