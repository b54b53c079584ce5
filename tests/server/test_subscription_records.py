"""Every subscription stands in live.mdb while it lives, and is gone when its session is gone."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from disk import fill
from patience import until
from peer import Peer, request
from server_process import Serve, ServerProcess
from store_view import look, subscriber_files

from rlite_pubsub.storage import format

LONG = b"long " * 400


def test_every_kind_of_name_stands_in_the_store_with_its_count_of_sessions(server: ServerProcess) -> None:
    first, second = server.connect(protocol=3), server.connect()
    first.do("SUBSCRIBE", "news")
    second.do("SUBSCRIBE", "news")
    first.do("SUBSCRIBE", LONG)
    first.do("PSUBSCRIBE", b"bin\x00\xff*")
    first.do("SSUBSCRIBE", "shard")
    view = look(server.store_folder)
    assert view.names == [
        ["channels", LONG.decode(), 1],
        ["channels", "news", 2],
        ["patterns", "bin\x00\xff*", 1],
        ["shards", "shard", 1],
    ]
    assert view.held == 4
    assert view.subscribers == 1


@pytest.mark.parametrize(
    "words", [("UNSUBSCRIBE", "a"), ("UNSUBSCRIBE",), ("RESET",), ("QUIT",)], ids=lambda words: " ".join(words)
)
def test_command_that_ends_a_subscription_removes_its_record(server: ServerProcess, words: tuple[str, ...]) -> None:
    peer = server.connect()
    peer.do("SUBSCRIBE", "a")
    assert look(server.store_folder).names == [["channels", "a", 1]]
    peer.do(*words)
    until(lambda: look(server.store_folder).has_no_names)


def test_reply_to_unsubscribe_leaves_after_its_commit(server: ServerProcess) -> None:
    peer = server.connect(protocol=3)
    for command in ("SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"):
        peer.do(command, "a")
    for left, command in ((2, "UNSUBSCRIBE"), (1, "PUNSUBSCRIBE"), (0, "SUNSUBSCRIBE")):
        peer.do(command, "a")
        assert len(look(server.store_folder).names) == left


@pytest.mark.parametrize("way", ["close", "reset"])
def test_end_of_a_connection_removes_its_records(server: ServerProcess, way: str) -> None:
    stays, goes, watcher = server.connect(), server.connect(), server.connect()
    stays.do("SUBSCRIBE", "a")
    goes.send(request("SUBSCRIBE", "a", "b") + request("PSUBSCRIBE", "c*"))
    goes.replies(3)
    getattr(goes, way)()
    until(lambda: watcher.do("PUBSUB", "NUMSUB", "a", "b") == [b"a", 1, b"b", 0])
    until(lambda: look(server.store_folder).names == [["channels", "a", 1]])
    assert look(server.store_folder).held == 1


def test_client_kill_removes_the_records(server: ServerProcess) -> None:
    subscriber, killer = server.connect(), server.connect()
    number = subscriber.do("CLIENT", "ID")
    subscriber.do("SUBSCRIBE", "a")
    assert killer.do("CLIENT", "KILL", "ID", number) == 1
    assert subscriber.is_closed()
    until(lambda: look(server.store_folder).has_no_names)


def test_subscription_and_its_end_in_one_pipeline_leave_nothing(server: ServerProcess) -> None:
    peer = server.connect()
    peer.send(request("SUBSCRIBE", "a") + request("UNSUBSCRIBE", "a") + request("PING"))
    assert peer.replies(3) == [[b"subscribe", b"a", 1], [b"unsubscribe", b"a", 0], b"PONG"]
    assert look(server.store_folder).has_no_names


def test_killed_server_with_1000_sessions_leaves_nothing_to_its_successor(serve: Serve) -> None:
    server = serve()
    with ExitStack() as peers:
        for number in range(1000):
            peer = peers.enter_context(server.connect())
            peer.send(request("SUBSCRIBE", "all", f"channel {number}"))
        last = peers.enter_context(server.connect())
        until(lambda: last.do("PUBSUB", "NUMSUB", "all") == [b"all", 1000])
        until(lambda: look(server.store_folder).held == 1001)
        server.end(signal.SIGKILL)
    successor = serve()
    view = look(successor.store_folder)
    assert view.has_no_names
    assert view.subscribers == 1
    assert len(subscriber_files(successor.store_folder)) == 2
    assert "Cleaned up after 1 dead subscriber(s)" in successor.log()
    assert successor.connect().do("PUBLISH", "all", "anybody?") == 0


def test_two_servers_of_one_store_have_records_of_their_own(serve: Serve) -> None:
    one, other = serve(), serve()
    first, second = one.connect(), other.connect()
    first.do("SUBSCRIBE", "a")
    second.do("SUBSCRIBE", "a")
    assert look(one.store_folder).names == [["channels", "a", 1], ["channels", "a", 1]]
    assert one.end() == 0
    view = look(other.store_folder)
    assert view.names == [["channels", "a", 1]]
    assert view.subscribers == 1


@pytest.mark.parametrize("database", ["live.mdb", "data.mdb"])
def test_store_of_another_format_version_is_refused(serve: Serve, tmp_path: Path, database: str) -> None:
    serve().end()
    write_version = (
        "import lmdb, sys; environment = lmdb.Environment(sys.argv[1], subdir=False)\n"
        "with environment.begin(write=True) as txn: txn.put(b'\\0format', (99).to_bytes(4, 'big'))"
    )
    subprocess.run([sys.executable, "-c", write_version, str(tmp_path / "store" / database)], check=True)
    refused = serve(wait=False)
    assert refused.exit_code() == 1
    expected = f"{database} has format 99, and this version of rlite-pubsub reads format {format.VERSION}"
    assert expected in refused.log()
    assert "Traceback" not in refused.log() + refused.output()


def test_map_grows_with_the_subscriptions(server: ServerProcess) -> None:
    """Beyond the first map of 16 MB."""
    peer = server.connect()
    count = 0
    for start in range(0, 8000, 1000):
        names = [b"%06d" % number + b"n" * 2000 for number in range(start, start + 1000)]
        peer.send(request("SUBSCRIBE", *names))
        assert [reply[1] for reply in peer.replies(1000)] == names
        count += 1000
    assert server.store_folder.joinpath("live.mdb").stat().st_size > 16 << 20
    assert look(server.store_folder).held == count


# -- no room for a record


def assert_refuses_and_recovers(server: ServerProcess, make_room: Peer | Path, error: str) -> None:
    before, peer, watcher = server.connect(), server.connect(), server.connect()
    names = [f"{number} " + "n" * 3000 for number in range(500)]
    refusal = None
    for name in names:
        refusal = peer.do("SUBSCRIBE", name)
        if not isinstance(refusal, list):
            break
    assert str(refusal).startswith(error), refusal
    taken = names.index(name)
    assert watcher.do("PUBSUB", "NUMSUB", name) == [name.encode(), 0], "a refused name is not held"
    assert watcher.do("PUBLISH", name, "x") == 0
    assert before.do("PING") == b"PONG"
    if taken:
        assert watcher.do("PUBLISH", names[0], "still") == 1
        assert peer.reply()[2] == b"still"
    assert "Can't write subscriptions to the store" in server.log()

    if isinstance(make_room, Path):
        make_room.unlink()
    else:
        make_room.close()
        until(lambda: watcher.do("PUBSUB", "NUMSUB", "ballast 0") == [b"ballast 0", 0])
    assert peer.do("SUBSCRIBE", name)[:2] == [b"subscribe", name.encode()]
    assert watcher.do("PUBLISH", name, "again") == 1
    assert peer.reply()[2] == b"again"
    peer.close()
    until(lambda: watcher.do("PUBSUB", "NUMSUB", name) == [name.encode(), 0])
    until(lambda: look(server.store_folder).has_no_names)


def test_subscribing_on_a_full_disk_is_an_error_and_works_again_when_there_is_room(
    serve: Serve, tiny_disk: Path
) -> None:
    server = serve(store_folder=tiny_disk)
    ballast = fill(tiny_disk)
    assert_refuses_and_recovers(server, ballast, "MISCONF command not allowed: cannot write to the store")
    assert "No space left on device" in server.log()


def test_subscribing_beyond_the_quota_is_oom_and_works_again_when_there_is_room(serve: Serve) -> None:
    server = serve("--store-quota", "2mb")
    ballast = server.connect()
    number = 0
    while isinstance(ballast.do("SUBSCRIBE", f"ballast {number}"), list):
        number += 1
        ballast.do("SUBSCRIBE", f"ballast {number} " + "n" * 100_000)
        number += 1
    assert_refuses_and_recovers(server, ballast, "OOM")


def test_records_that_could_not_be_removed_are_removed_later(serve: Serve, tiny_disk: Path) -> None:
    server = serve(store_folder=tiny_disk)
    peer, watcher = server.connect(), server.connect()
    peer.send(request("SUBSCRIBE", *[f"{number} " + "n" * 200 for number in range(500)]))
    peer.replies(500)
    ballast = fill(tiny_disk)
    peer.close()
    until(lambda: watcher.do("PUBSUB", "CHANNELS") == [])
    lines = len(server.log().splitlines())
    assert watcher.do("PUBLISH", "anything", "x") == 0
    ballast.unlink()
    until(lambda: look(server.store_folder).has_no_names)
    assert len(server.log().splitlines()) < lines + 10
