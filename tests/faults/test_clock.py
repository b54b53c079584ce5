"""The wall clock jumps, back and forth: nothing expires because of it that should not, no age is negative, and nobody
waits for the clock to come back."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import until

from tests.faults.program import Start, command
from tests.server.peer import Peer, request
from tests.server.server_process import Serve

HOUR = 3600.0
DAY = 24 * HOUR


class Clock:
    """The wall clock of processes that are started with `environment`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        file.write_bytes(bytes(8))
        self.environment = {"RLITE_TEST_CLOCK": str(file), "PYTHONPATH": str(Path(__file__).with_name("clock"))}

    def jump(self, wrong_by_s: float) -> None:
        with self._file.open("r+b") as file:
            file.write(struct.pack("<d", wrong_by_s))


@pytest.fixture
def clock(tmp_path: Path) -> Iterator[Clock]:
    yield Clock(tmp_path / "clock")


def now(peer: Peer) -> int:
    return int(peer.do("TIME")[0])


def info(peer: Peer, name: str) -> dict[bytes, object]:
    flat = peer.do("SUBSCRIBER.INFO", name)
    return dict(zip(flat[::2], flat[1::2], strict=True))


def attach(peer: Peer, name: str, ttl_s: int) -> None:
    peer.do("SUBSCRIBER.ATTACH", name, "TTL", str(ttl_s))
    peer.do("SUBSCRIBE", "news")


def see(peer: Peer, canary: str) -> None:
    """Until the server's timers have seen what time it is: they note it of whoever is attached, and look then for those
    that have been away for too long."""
    until(lambda: abs(int(str(info(peer, canary)[b"seen_ms"])) // 1000 - now(peer)) < HOUR / 2)


@pytest.mark.parametrize("seen_at", [0.0, DAY], ids=["seen now", "seen when the clock was a day ahead"])
def test_durable_subscriber_does_not_expire_because_the_clock_is_set_back(
    serve: Serve, clock: Clock, seen_at: float
) -> None:
    server = serve(environment=clock.environment)
    with server.connect() as canary, server.connect() as peer, server.connect() as other:
        clock.jump(seen_at)
        attach(canary, "canary", 0)
        attach(peer, "away", 600)
        peer.close()
        until(lambda: info(other, "away")[b"attached"] == 0)
        other.do("PUBLISH", "news", "1")
        for jump in (-DAY, -2 * DAY, 0.0, -HOUR, 0.0):
            clock.jump(seen_at + jump)
            see(other, "canary")
            assert info(other, "away")[b"expired"] == 0
        clock.jump(seen_at - DAY)
        with server.connect() as again:
            attach(again, "away", 600)
            assert again.reply() == [b"message", b"news", b"1"]
            clock.jump(0.0)
            see(other, "canary")
            assert info(other, "away")[b"attached"] == 1, "one that is attached does not expire, whatever the time"
            assert other.do("PUBLISH", "news", "2") == 2
            assert again.reply() == [b"message", b"news", b"2"]
        assert "away for more than" not in server.log()


def test_durable_subscriber_that_is_attached_lives_through_every_jump(serve: Serve, clock: Clock) -> None:
    server = serve(environment=clock.environment)
    with server.connect() as peer, server.connect() as other:
        attach(peer, "away", 2)
        for number, jump in enumerate((DAY, 0.0, -DAY, 2 * DAY, -2 * DAY, 0.0)):
            clock.jump(jump)
            see(other, "away")
            assert other.do("PUBLISH", "news", str(number)) == 1
            assert peer.reply() == [b"message", b"news", b"%d" % number]
            assert info(other, "away")[b"expired"] == 0


def test_no_age_is_negative_when_the_clock_was_set_back(serve: Serve, clock: Clock, folder: Path) -> None:
    server = serve(environment=clock.environment)
    with server.connect() as canary, server.connect() as peer, server.connect() as other:
        attach(canary, "canary", 0)
        attach(peer, "away", 600)
        peer.close()
        until(lambda: info(other, "away")[b"attached"] == 0)
        other.do("PUBLISH", "news", "waits")
        clock.jump(-DAY)
        see(other, "canary")
        shown = other.do("INFO", "everything").decode() + other.do("CLIENT", "LIST").decode()
        shown += command("subscribers", "-s", str(folder)).stdout
        ages = re.findall(r"(?:^|[\s=:])(\S*(?:age|idle|uptime|_sec|ago|seconds)\S*[=:]-\d+)", shown)
        assert not [age for age in ages if not age.endswith("_time_sec:-1")]
        assert not [line for line in shown.splitlines() if re.search(r"\s-\d+(\.\d+)? s(ec)?\b", line)]


def test_timers_do_not_wait_for_a_clock_that_was_set_back(serve: Serve, clock: Clock) -> None:
    server = serve("--appendfsync", "everysec", environment=clock.environment)
    with server.connect() as peer, server.connect() as other:
        clock.jump(-DAY)
        peer.do("SUBSCRIBE", "news")
        assert other.do("PUBLISH", "news", "x") == 1
        assert peer.reply()[2] == b"x"
        with server.connect() as durable:
            attach(durable, "durable", 600)
            other.do("PUBLISH", "news", "y")
            assert durable.reply()[2] == b"y"
            until(lambda: info(other, "durable")[b"backlog_messages"] == 0)


def test_program_without_a_server_waits_no_longer_when_the_clock_is_set_back(
    start: Start, clock: Clock, folder: Path
) -> None:
    program = start(
        """
        with rlite_pubsub.Redis(folder) as client, client.pubsub() as pubsub:
            pubsub.subscribe("news")
            pubsub.get_message(timeout=PATIENCE_S)
            say("waits", told())
            say(pubsub.get_message(timeout=0.2))
            say(pubsub.get_message(timeout=PATIENCE_S)["data"])
        """,
        environment=clock.environment,
    )
    program.tell("now")
    assert program.hear() == "waits now"
    clock.jump(-DAY)
    assert program.hear() == "None"
    clock.jump(DAY)
    assert command("publish", "-s", str(folder), "news", "x").stdout == "1\n"
    assert program.hear() == "x"


WAITS = {
    "BRPOP": [("BRPOP", "list", "0.3")],
    "XREADGROUP": [
        ("XGROUP", "CREATE", "topic", "g", "$", "MKSTREAM"),
        ("XREADGROUP", "GROUP", "g", "c", "BLOCK", "300", "STREAMS", "topic", ">"),
    ],
    "CLIENT PAUSE": [("CLIENT", "PAUSE", "300", "WRITE"), ("SET", "key", "value")],
}


@pytest.mark.parametrize("name", WAITS)
def test_wait_lasts_no_longer_when_the_clock_is_set_back(serve: Serve, clock: Clock, name: str) -> None:
    server = serve(environment=clock.environment)
    *before, waits = WAITS[name]
    with server.connect() as peer, server.connect() as other:
        for words in before:
            peer.do(*words)
        peer.send(request(*waits))
        if name != "CLIENT PAUSE":
            until(lambda: b"blocked_clients:1" in other.do("INFO", "clients"), "the wait")
        clock.jump(-DAY)
        assert peer.reply() in (None, b"OK")


def test_wait_of_a_program_lasts_no_longer_when_the_clock_is_set_back(start: Start, clock: Clock) -> None:
    program = start(
        """
        import threading
        with rlite_pubsub.Redis(folder) as client:
            client.info("clients")  # has it imported
            taker = threading.Thread(target=lambda: say(client.brpop("list", timeout=1)))
            taker.start()
            while not client.info("clients")["blocked_clients"]:
                pass
            say("waits")
            taker.join()
        """,
        environment=clock.environment,
    )
    assert program.hear() == "waits"
    clock.jump(-DAY)
    assert program.hear() == "None"
