"""What an operator sees of the subscribers: SUBSCRIBER.LIST, SUBSCRIBER.INFO and INFO's section Subscribers."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from patience import until
from peer import Peer
from server_process import Serve, ServerProcess

from rlite_pubsub.engine.stats import info_subscribers


def listed(peer: Peer) -> list[dict[bytes, Any]]:
    return list(peer.do("SUBSCRIBER.LIST"))


def section(peer: Peer) -> dict[str, str]:
    lines = peer.do("INFO", "subscribers").decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


def row(line: str) -> dict[str, str]:
    return dict(field.split("=", 1) for field in line.split(","))


def make_durable_and_leave(server: ServerProcess) -> None:
    with server.connect() as peer:
        peer.do("SUBSCRIBER.ATTACH", "bill,ing")
        peer.do("SUBSCRIBE", "news")
    with server.connect(protocol=3) as asking:
        until(lambda: not asking.do("SUBSCRIBER.INFO", "bill,ing")[b"attached"], "its going away")


def test_stopped_process_and_one_who_is_away_are_shown_with_what_waits_for_them(serve: Serve) -> None:
    first, second = serve(), serve()
    make_durable_and_leave(first)
    with first.connect(protocol=3) as asking, second.connect() as reader:
        reader.do("SUBSCRIBE", "news")
        reader.do("SUBSCRIBE", "other")
        reader.do("PSUBSCRIBE", "o*")
        os.kill(second.pid, signal.SIGSTOP)
        try:
            started_ms = int(time.time() * 1000)
            for payload in ("one", "two"):
                assert asking.do("PUBLISH", "news", payload) == 2
            assert asking.do("PUBLISH", "other", "x") == 2
            shown = {entry[b"pid"]: entry for entry in listed(asking)}
            now_ms = int(time.time() * 1000)

            hung, here, away = shown[second.pid], shown[first.pid], shown[0]
            assert (hung[b"kind"], hung[b"state"], hung[b"alive"]) == (b"server", b"alive", 1)
            assert (hung[b"names"], hung[b"channels"], hung[b"patterns"]) == (3, [b"news", b"other"], [b"o*"])
            assert (hung[b"channel_count"], hung[b"pattern_count"], hung[b"shard_count"]) == (2, 1, 0)
            assert hung[b"backlog_messages"] == 3 and hung[b"backlog_bytes"] > 0
            assert 0 <= hung[b"oldest_age_ms"] <= now_ms - started_ms + 1
            assert started_ms - 1000 <= hung[b"last_bell_ms"] <= now_ms + 1000
            assert (here[b"backlog_messages"], here[b"oldest_age_ms"], here[b"spilled_sessions"]) == (0, 0, 0)
            assert (away[b"kind"], away[b"name"], away[b"state"]) == (b"durable", b"bill,ing", b"away")
            assert (away[b"alive"], away[b"backlog_messages"], away[b"last_bell_ms"]) == (0, 2, 0)
            assert 0 <= away[b"oldest_age_ms"] <= now_ms - started_ms + 1

            info = section(asking)
            assert (info["subscribers_server"], info["subscribers_embedded"], info["subscribers_durable"]) == (
                "2", "0", "1",
            )  # fmt: skip
            assert (info["subscribers"], info["subscribers_durable_away"], info["processes_alive"]) == ("3", "1", "2")
            assert info["backlog_messages"] == "5" and int(info["oldest_age_ms"]) >= 0
            assert int(info["backlog_bytes"]) == hung[b"backlog_bytes"] + away[b"backlog_bytes"]
            rows = {line["pid"]: line for number in range(3) if (line := row(info[f"subscriber{number}"]))}
            told = rows[str(second.pid)]
            assert (told["kind"], told["channels"], told["patterns"], told["shards"]) == ("server", "2", "1", "0")
            assert (told["backlog_messages"], told["alive"]) == ("3", "1")
            assert (rows["0"]["name"], rows["0"]["state"], rows["0"]["backlog_messages"]) == ("bill%2Cing", "away", "2")
        finally:
            os.kill(second.pid, signal.SIGCONT)
        assert [reader.reply()[0] for _ in range(4)] == [b"message", b"message", b"message", b"pmessage"]
        until(lambda: section(asking)["backlog_messages"] == "2", "the mailbox of the process that runs again to empty")


def test_killed_process_is_counted_as_dead_until_it_is_reaped(serve: Serve) -> None:
    first, second = serve(), serve()
    with first.connect() as asking, second.connect() as reader:
        reader.do("SUBSCRIBE", "news")
        second.end(signal.SIGKILL)
        info = section(asking)
        assert (info["processes_alive"], info["processes_dead_unreaped"]) == ("1", "1")
        assert "alive=0,state=dead" in info["subscriber1"]

        asking.do("PUBLISH", "news", "x")
        until(lambda: section(asking)["subscribers"] == "1", "its being reaped")
        assert section(asking)["processes_dead_unreaped"] == "0"


def test_attached_durable_one_is_shown_at_its_process_and_with_all_of_its_names(server: ServerProcess) -> None:
    names = [b"%04d" % number for number in range(150)]
    with server.connect(protocol=3) as peer, server.connect(protocol=3) as asking:
        peer.do("SUBSCRIBER.ATTACH", "d")
        peer.send(b"*151\r\n$9\r\nSUBSCRIBE\r\n" + b"".join(b"$4\r\n%b\r\n" % name for name in names))
        peer.replies(150)

        entry = listed(asking)[1]
        assert (entry[b"state"], entry[b"alive"], entry[b"pid"]) == (b"alive", 1, server.pid)
        assert (entry[b"channel_count"], entry[b"channels"]) == (150, names[:100])
        assert asking.do("SUBSCRIBER.INFO", "d")[b"channels"] == names


def test_resp2_has_the_same_fields_flat(server: ServerProcess) -> None:
    with server.connect(protocol=3) as new, server.connect() as old:
        assert [flat[::2] for flat in old.do("SUBSCRIBER.LIST")] == [list(entry) for entry in listed(new)]


def test_lines_of_info_are_capped_and_the_total_is_not(serve: Serve) -> None:
    server = serve()
    count = info_subscribers.LINES + 5
    with server.connect() as peer:
        for number in range(count):
            peer.do("SUBSCRIBER.ATTACH", f"d{number}")
            peer.do("SUBSCRIBER.DETACH")
        info = section(peer)
        assert (info["subscribers"], info["subscribers_durable"]) == (str(count + 1), str(count))
        rows = [name for name in info if name.removeprefix("subscriber").isdigit()]
        assert len(rows) == info_subscribers.LINES
