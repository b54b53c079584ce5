"""Ephemeral topics of real servers: not on the disk, gone with their last reader, and not there after a restart."""

from __future__ import annotations

import signal
from pathlib import Path

from patience import until
from peer import Peer
from server_process import Serve

TOPIC = "news#ephemeral"
SECRET = b"this is in memory only"


def test_its_entries_are_in_no_file_of_the_store(serve: Serve) -> None:
    server = serve()
    peer = server.connect()
    for number in range(500):
        peer.do("XADD", TOPIC, "*", "f", SECRET + b"%d" % number)
    peer.do("SET", "s", "stored for certain")
    assert peer.do("XLEN", TOPIC) == 500
    server.end()
    held = b"".join(path.read_bytes() for path in server.store_folder.iterdir() if path.is_file())
    assert b"stored for certain" in held
    assert SECRET not in held and TOPIC.encode() not in held


def test_it_is_gone_after_a_kill_and_what_is_stored_is_not(serve: Serve, tmp_path: Path) -> None:
    server = serve(folder=tmp_path)
    peer = server.connect()
    peer.do("XADD", TOPIC, "*", "f", "v")
    peer.do("XADD", "news", "*", "f", "v")
    server.end(signal.SIGKILL)
    peer = serve(folder=tmp_path).connect()
    assert peer.do("TOPIC.LIST") == [b"news"]
    assert peer.do("EXISTS", TOPIC) == 0


def test_it_is_there_for_its_reader_and_gone_when_that_has_gone(serve: Serve) -> None:
    server = serve()
    writer, reader = server.connect(), server.connect()
    reader.do("TOPIC.SUBSCRIBE", TOPIC, "$")
    first = writer.do("XADD", TOPIC, "*", "f", "v")
    assert reader.reply() == [b"topic-message", TOPIC.encode(), first, [b"f", b"v"]]
    reader.socket.close()
    until(lambda: writer.do("DBSIZE") == 0, "its end")
    assert writer.do("TOPIC.LIST") == []


def test_blocked_reader_is_served_and_a_group_works_in_a_pipeline_of_both_kinds(serve: Serve) -> None:
    server = serve()
    writer, reader = server.connect(), server.connect()
    writer.do("XGROUP", "CREATE", TOPIC, "g#ephemeral", "$", "MKSTREAM")
    writer.do("XGROUP", "CREATE", "news", "g#ephemeral", "$", "MKSTREAM")
    reader.send(_blocking_read())
    until(lambda: b"cmd=xreadgroup" in writer.do("CLIENT", "LIST"), "the read")
    writer.do("XADD", TOPIC, "1-0", "f", "v")
    assert reader.reply() == [[TOPIC.encode(), [[b"1-0", [b"f", b"v"]]]]]
    reader.send(_blocking_read())
    writer.do("XADD", "news", "1-0", "f", "v")
    assert reader.reply() == [[b"news", [[b"1-0", [b"f", b"v"]]]]]
    reader.socket.close()
    until(lambda: writer.do("XINFO", "GROUPS", "news") == [], "the end of the stored topic's group")


def test_two_servers_of_one_store_have_their_own(serve: Serve, tmp_path: Path) -> None:
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
    one = serve(folder=tmp_path / "1", store_folder=tmp_path / "store").connect()
    other = serve(folder=tmp_path / "2", store_folder=tmp_path / "store").connect()
    one.do("XADD", TOPIC, "1-0", "f", "here")
    other.do("XADD", TOPIC, "2-0", "f", "there")
    assert one.do("XRANGE", TOPIC, "-", "+") == [[b"1-0", [b"f", b"here"]]]
    assert other.do("XRANGE", TOPIC, "-", "+") == [[b"2-0", [b"f", b"there"]]]


def test_ephemeral_group_of_a_stored_topic_stays_while_another_server_has_a_consumer(
    serve: Serve, tmp_path: Path
) -> None:
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
    here = serve(folder=tmp_path / "1", store_folder=tmp_path / "store")
    there = serve(folder=tmp_path / "2", store_folder=tmp_path / "store").connect()
    watcher, reader = here.connect(), here.connect()
    watcher.do("XGROUP", "CREATE", "news", "g#ephemeral", "$", "MKSTREAM")
    for consumer, peer in (("a", reader), ("b", there)):
        assert peer.do("XREADGROUP", "GROUP", "g#ephemeral", consumer, "STREAMS", "news", ">") is None
    reader.socket.close()

    def consumers() -> list[bytes]:
        return [row[1] for row in watcher.do("XINFO", "CONSUMERS", "news", "g#ephemeral")]

    until(lambda: consumers() == [b"b"], "the end of one consumer")
    there.socket.close()
    until(lambda: watcher.do("XINFO", "GROUPS", "news") == [], "the end of the group")


def test_short_way_of_xadd_leads_to_it_too(serve: Serve) -> None:
    peer: Peer = serve().connect()
    request = b"*5\r\n$4\r\nXADD\r\n$14\r\n" + TOPIC.encode() + b"\r\n$1\r\n*\r\n$1\r\nf\r\n$1\r\nv\r\n"
    peer.send(request * 5000)
    ids = peer.replies(5000)
    assert len(set(ids)) == 5000
    assert [entry_id for entry_id, _ in peer.do("XRANGE", TOPIC, "-", "+")] == ids


def _blocking_read() -> bytes:
    words = [b"XREADGROUP", b"GROUP", b"g#ephemeral", b"c", b"BLOCK", b"0", b"STREAMS", TOPIC.encode(), b"news"]
    words += [b">", b">"]
    return b"*%d\r\n" % len(words) + b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words])
