"""PUBLISHes the short way: who receives them, and what they are answered, is that of as many single commands."""

from __future__ import annotations

import pytest
from peer import Peer, request
from server_process import Serve, ServerProcess


def publishes(*sent: tuple[str, str]) -> bytes:
    return b"".join([request("PUBLISH", channel, payload) for channel, payload in sent])


def stat_of_publish(peer: Peer) -> bytes:
    line = next(line for line in peer.do("INFO", "commandstats").splitlines() if line.startswith(b"cmdstat_publish:"))
    return bytes(line.split(b",")[0])


def test_a_pipeline_to_many_channels_is_answered_and_received_in_order(server: ServerProcess) -> None:
    with server.connect() as publisher, server.connect() as one, server.connect() as all_of_them:
        one.do("SUBSCRIBE", "b")
        all_of_them.do("PSUBSCRIBE", "*")
        sent = [("abc"[number % 3], str(number)) for number in range(300)]
        publisher.send(publishes(*sent))
        assert publisher.replies(300) == [2 if channel == "b" else 1 for channel, _ in sent]
        assert all_of_them.replies(300) == [
            [b"pmessage", b"*", channel.encode(), payload.encode()] for channel, payload in sent
        ]
        assert one.replies(100) == [[b"message", b"b", payload.encode()] for channel, payload in sent if channel == "b"]
        assert stat_of_publish(publisher) == b"cmdstat_publish:calls=300"


def test_a_pipeline_whom_nobody_hears_is_answered_and_counted(server: ServerProcess) -> None:
    with server.connect() as publisher:
        publisher.send(publishes(("a", "1"), ("b", "2"), ("a", "3")) + request("PING") + publishes(("c", "4")))
        assert publisher.replies(5) == [0, 0, 0, b"PONG", 0]
        assert stat_of_publish(publisher) == b"cmdstat_publish:calls=4"


def test_what_is_no_plain_publish_in_the_midst_of_a_pipeline_is_answered_in_its_place(server: ServerProcess) -> None:
    with server.connect() as publisher, server.connect() as subscriber:
        subscriber.do("SUBSCRIBE", "a", "b")
        subscriber.reply()
        publisher.send(
            publishes(("a", "1"), ("b", "2"))
            + request("PUBLISH", "a")
            + request("publish", "b", "3")
            + request("PUBLISH", "a", "4", "5")
            + request("PUBLISH", "a", "x" * 2000)
        )
        wrong = "ERR wrong number of arguments for 'publish' command"
        assert [str(reply) for reply in publisher.replies(6)] == ["1", "1", wrong, "1", wrong, "1"]
        assert [reply[2] for reply in subscriber.replies(4)] == [b"1", b"2", b"3", b"x" * 2000]


def test_messages_that_become_entries_stand_in_their_place_among_others(serve: Serve) -> None:
    server = serve("--retain", "kept.* 1h")
    with server.connect() as publisher, server.connect() as subscriber:
        subscriber.do("PSUBSCRIBE", "*")
        sent = [("a", "1"), ("kept.x", "2"), ("b", "3"), ("kept.x", "4"), ("kept.y", "5"), ("a", "6")]
        publisher.send(publishes(*sent))
        assert publisher.replies(6) == [1] * 6
        assert [(reply[2].decode(), reply[3].decode()) for reply in subscriber.replies(6)] == sent
        assert [publisher.do("XLEN", key) for key in ("kept.x", "kept.y", "a")] == [2, 1, 0]


def test_messages_for_another_process_stand_in_their_place_among_others(serve: Serve) -> None:
    here, there = serve(), serve()
    with here.connect() as publisher, here.connect() as near, there.connect() as far:
        far.do("SUBSCRIBE", "far", "both")
        far.reply()
        near.do("SUBSCRIBE", "near", "both")
        near.reply()
        sent = [("near", "1"), ("far", "2"), ("both", "3"), ("nobody", "4"), ("near", "5"), ("both", "6")]
        publisher.send(publishes(*sent))
        assert publisher.replies(6) == [1, 1, 2, 0, 1, 2]
        assert [reply[2] for reply in near.replies(4)] == [b"1", b"3", b"5", b"6"]
        assert [reply[2] for reply in far.replies(3)] == [b"2", b"3", b"6"]


@pytest.mark.parametrize("around", [448, 16 * 1024, 32 * 1024])
def test_a_request_as_long_as_what_is_read_at_once_is_read_to_its_end(server: ServerProcess, around: int) -> None:
    with server.connect() as peer:
        short = len(request("ECHO", "x" * (around - 100))) - (around - 100)
        for size in range(around - 3, around + 4):
            for text in ("x" * (size - short), "y", "z" * (size - short + 1)):
                assert peer.do("ECHO", text) == text.encode()


def test_a_peer_that_goes_behind_a_full_read_has_its_request_executed(server: ServerProcess) -> None:
    with server.connect() as subscriber, server.connect() as peer:
        subscriber.do("SUBSCRIBE", "last")
        head = len(request("PUBLISH", "last", "x" * 400)) - 400
        peer.send(request("PUBLISH", "last", "x" * (448 - head)))
        peer.close()
        assert subscriber.reply() == [b"message", b"last", b"x" * (448 - head)]
