"""Limits of mailboxes, kept by whoever fills them, with real processes that do not read."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from other_process import OtherProcess
from patience import until
from peer import Peer
from server_process import Serve

import rlite_pubsub
from rlite_pubsub.pubsub.reaping import reap_dead
from rlite_pubsub.storage.store import Store

QUOTA_BYTES = 64 << 20
RESERVE_BYTES = 64 << 20
"""What removing may take beyond the quota."""

SLEEPER = """
import time
client = rlite_pubsub.Redis(folder, store_quota={quota})
for name, value in {settings}.items():
    client.config_set(name, value)
pubsub = client.pubsub()
pubsub.subscribe("news")
pubsub.psubscribe("n*")
pubsub.get_message(timeout=PATIENCE_S), pubsub.get_message(timeout=PATIENCE_S)
say("ready")
sys.stdin.readline()
"""

SLEEPER_OF_A_LOOP = """
import asyncio
async def main():
    client = rlite_pubsub.asyncio.Redis(folder, store_quota={quota})
    for name, value in {settings}.items():
        await client.config_set(name, value)
    pubsub = client.pubsub()
    await pubsub.subscribe("news")
    await pubsub.psubscribe("n*")
    await pubsub.get_message(timeout=PATIENCE_S), await pubsub.get_message(timeout=PATIENCE_S)
    say("ready")
    sys.stdin.readline()
"""

READ_AFTER_A_CUT = """
try:
    while True:
        pubsub.get_message(timeout=PATIENCE_S)
except rlite_pubsub.CutOff as error:
    say("told:", error)
while (message := pubsub.get_message(timeout=PATIENCE_S))["type"] != "message":
    say(message["type"])
say(message["data"].decode())
"""

READ_ALL = """
found, lost = [], 0
while found[-2:] != [{last}, {last}]:
    message = pubsub.parse_response(block=True)
    if message[0] == b"gap":
        assert message[1] == b"news", message
        lost += message[2]
    elif message[0].endswith(b"message"):
        found.append(int(message[-1].split()[0]))
assert found == sorted(found)
say(len(found), lost)
"""


def of_a_loop(source: str) -> str:
    """The same, for a client of asyncio."""
    source = source.replace("pubsub.get_message", "await pubsub.get_message")
    source = source.replace("pubsub.parse_response", "await pubsub.parse_response")
    return source.replace("\n", "\n    ") + "\nasyncio.run(main())\n"


def sleeper(kind: str, then: str, quota: int = QUOTA_BYTES, **settings: str) -> str:
    """A program that subscribes, waits to be told, and then reads."""
    words = {name.replace("_", "-"): value for name, value in settings.items()}
    if kind == "sync":
        return (SLEEPER + then).format(quota=quota, settings=words)
    return SLEEPER_OF_A_LOOP.format(quota=quota, settings=words) + of_a_loop(then)


def live_bytes(folder: Path) -> int:
    return (folder / "live.mdb").stat().st_blocks * 512


@pytest.mark.parametrize("kind", ["sync", "asyncio"])
def test_publishers_go_on_while_a_program_sleeps_and_the_store_does_not_grow_beyond_its_quota(
    kind: str, folder: Path
) -> None:
    payload = "x" * 1500
    with (
        OtherProcess(folder, sleeper(kind, READ_AFTER_A_CUT)) as asleep,
        rlite_pubsub.Redis(folder, store_quota=QUOTA_BYTES) as client,
    ):
        assert asleep.hear() == "ready"
        assert client.publish("news", payload) == 2
        for _ in range(100):
            with client.pipeline(transaction=False) as pipe:
                for _ in range(500):
                    pipe.publish("news", payload)
                pipe.execute()
            for _ in range(500):
                client.publish("news", payload)
        assert client.publish("news", payload) == 0  # it is cut off
        assert live_bytes(folder) < QUOTA_BYTES + RESERVE_BYTES
        assert client.info("subscribers")["mailboxes_cut_off"] == 1

        asleep.tell("read")
        assert asleep.hear().startswith("told: cut off")
        assert [asleep.hear(), asleep.hear()] == ["subscribe", "psubscribe"]
        until(lambda: client.publish("news", "again") == 2)
        assert asleep.hear() == "again"
        assert asleep.end() == 0


@pytest.mark.parametrize("kind", ["sync", "asyncio"])
def test_under_drop_oldest_a_sleeping_program_is_told_how_many_messages_of_each_kind_it_has_lost(
    kind: str, folder: Path
) -> None:
    count = 5000
    limits = {"client-output-buffer-limit": "pubsub 300000 0 0", "slow-subscriber-policy": "drop-oldest"}
    then = READ_ALL.replace("{last}", str(count - 1)).replace("{", "{{").replace("}", "}}")
    with (
        OtherProcess(folder, sleeper(kind, then, **limits)) as asleep,
        rlite_pubsub.Redis(folder, store_quota=QUOTA_BYTES) as client,
    ):
        assert asleep.hear() == "ready"
        for number in range(count):
            assert client.publish("news", f"{number} {'x' * 300}") == 2
        backlog = client.info("subscribers")["backlog_bytes"]
        assert backlog < 300_000

        asleep.tell("read")
        found, lost = map(int, asleep.hear().split())
        assert asleep.end() == 0
    assert found + lost == 2 * count  # each is received twice: by the name and by the pattern
    assert found > 0 < lost


def test_a_program_that_is_stopped_while_it_reads_has_each_message_or_is_told_that_it_is_lost(folder: Path) -> None:
    limits = {"client-output-buffer-limit": "pubsub 200000 0 0", "slow-subscriber-policy": "drop-oldest"}
    count = 8000
    then = READ_ALL.replace("{last}", str(count - 1)).replace("{", "{{").replace("}", "}}")
    with (
        OtherProcess(folder, sleeper("sync", then, **limits)) as reader,
        rlite_pubsub.Redis(folder, store_quota=QUOTA_BYTES) as client,
    ):
        assert reader.hear() == "ready"
        reader.tell("read")
        for number in range(count):
            if number in (1000, 3000, 5000):  # it is awake, and keeps what it has read in its mailbox for a moment
                reader.send_signal(signal.SIGSTOP)
            if number in (2500, 4500, 7900):
                reader.send_signal(signal.SIGCONT)
            client.publish("news", f"{number} {'x' * 300}")
        found, lost = map(int, reader.hear().split())
        assert reader.end() == 0
    assert found + lost == 2 * count
    assert found > 0 < lost


def test_a_soft_limit_is_kept_once_its_seconds_are_over_and_reading_forgets_it(folder: Path) -> None:
    limits = {"client-output-buffer-limit": "pubsub 0 100000 1", "slow-subscriber-policy": "disconnect"}
    then = """
while (message := pubsub.get_message(timeout=PATIENCE_S))["data"] != b"last":
    pass
while client.info("subscribers")["backlog_bytes"]:
    pubsub.get_message(timeout=0.01)
say("read")
sys.stdin.readline()
"""
    with (
        OtherProcess(folder, sleeper("sync", then, **limits)) as reader,
        rlite_pubsub.Redis(folder, store_quota=QUOTA_BYTES) as client,
    ):
        assert reader.hear() == "ready"
        for _ in range(300):
            client.publish("news", "x" * 500)
        client.publish("news", "last")
        reader.tell("read")
        assert reader.hear() == "read"  # it was above the limit, and is below it in time

        for _ in range(300):
            assert client.publish("news", "x" * 500) == 2  # the seconds begin anew
        until(lambda: client.publish("news", "x") == 0)
        assert client.info("subscribers")["mailboxes_cut_off"] == 1
        reader.tell("end")
        assert reader.end() == 0


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_server_that_hangs_is_cut_off_and_closes_its_subscribers_when_it_goes_on(
    protocol: int, serve: Serve, folder: Path
) -> None:
    hung = serve("--client-output-buffer-limit", "pubsub", "1000000", "0", "0")
    with rlite_pubsub.Redis(folder, store_quota=QUOTA_BYTES) as client:
        subscriber, other = hung.connect(protocol=protocol), hung.connect(protocol=protocol)
        assert subscriber.do("SUBSCRIBE", "news")[2] == 1
        hung.process.send_signal(signal.SIGSTOP)
        try:
            for _ in range(3000):
                client.publish("news", "x" * 1000)
            assert client.publish("news", "x") == 0
            assert client.pubsub_numsub("news") == [(b"news", 0)]
            assert client.info("subscribers")["backlog_bytes"] < 1_000_000
        finally:
            hung.process.send_signal(signal.SIGCONT)
        assert subscriber.is_closed()
        assert other.do("PING") is not None  # who holds no name has missed nothing
        again = hung.connect(protocol=protocol)
        again.do("SUBSCRIBE", "news")
        until(lambda: client.publish("news", "hello") == 1)
        assert again.reply()[2] == b"hello"


@pytest.mark.parametrize("protocol", [2, 3])
def test_each_client_of_a_server_that_hangs_is_told_what_it_has_lost_under_drop_oldest(
    protocol: int, serve: Serve, folder: Path
) -> None:
    count = 4000
    hung = serve(
        "--client-output-buffer-limit", "pubsub", "400000", "0", "0", "--slow-subscriber-policy", "drop-oldest"
    )
    with rlite_pubsub.Redis(folder, store_quota=QUOTA_BYTES) as client:
        by_name, by_both, sharded = (hung.connect(protocol=protocol) for _ in range(3))
        by_name.do("SUBSCRIBE", "news")
        by_both.do("SUBSCRIBE", "news")
        by_both.do("PSUBSCRIBE", "n*")
        sharded.do("SSUBSCRIBE", "news")
        hung.process.send_signal(signal.SIGSTOP)
        try:
            for number in range(count):
                assert client.publish("news", f"{number} {'x' * 300}") == 3
                assert client.execute_command("SPUBLISH", "news", f"{number} {'x' * 300}") == 1
        finally:
            hung.process.send_signal(signal.SIGCONT)
        for peer, times in ((by_name, 1), (by_both, 2), (sharded, 1)):
            found, lost = read_all(peer, count - 1, times)
            assert found + lost == times * count
            assert found > 0 < lost


def read_all(peer: Peer, last: int, times: int) -> tuple[int, int]:
    """How many messages came, and how many it was told that it has lost, until the last one came so often."""
    found, lost = [], 0
    while found.count(last) < times:
        message = peer.reply()
        if message[0] == b"gap":
            assert message[1] == b"news"
            lost += message[2]
        else:
            found.append(int(message[-1].split()[0]))
    assert found == sorted(found)
    return len(found), lost


def test_a_channel_that_is_retained_is_published_to_all_the_same(folder: Path) -> None:
    limits = {"client-output-buffer-limit": "pubsub 1000000 0 0"}
    with (
        OtherProcess(folder, sleeper("sync", READ_AFTER_A_CUT, **limits)) as asleep,
        rlite_pubsub.Redis(folder, store_quota=QUOTA_BYTES) as client,
    ):
        assert asleep.hear() == "ready"
        client.config_set("retain", "news 100 entries")
        for _ in range(1000):
            client.publish("news", "x" * 1500)
        assert client.publish("news", "x") == 0
        assert client.xlen("news") >= 100
        assert client.info("subscribers")["backlog_bytes"] < 1_000_000
        asleep.tell("read")
        assert asleep.hear().startswith("told: cut off")


def test_one_who_is_cut_off_and_dies_leaves_nothing(folder: Path) -> None:
    limits = {"client-output-buffer-limit": "pubsub 100000 0 0", "slow-subscriber-policy": "drop-oldest"}
    for policy in ("drop-oldest", "disconnect"):
        limits["slow-subscriber-policy"] = policy
        with (
            OtherProcess(folder, sleeper("sync", "", **limits), quiet=True) as asleep,
            rlite_pubsub.Redis(folder, store_quota=QUOTA_BYTES) as client,
        ):
            assert asleep.hear() == "ready"
            for _ in range(1000):
                client.publish("news", "x" * 300)
            asleep.kill()
    with Store.open(folder) as store:
        reap_dead(store)
        left = store.live.read(lambda txn: {bytes(key)[:1] for key, _ in txn.cursor()})
    assert left == {b"\0"}
