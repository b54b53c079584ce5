"""rlite's faults, by name: its pub/sub design is ours, and these it had."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import redis
from patience import PATIENCE_S, until

import rlite_pubsub
from rlite_pubsub.storage.errors import StoreFull
from rlite_pubsub.storage.store import Store
from tests.faults.program import Start, without_power
from tests.soak.left import left_in

READS = """
client = rlite_pubsub.Redis(folder)
pubsub = client.pubsub(ignore_subscribe_messages=True)
pubsub.subscribe(CHANNELS)
while pubsub.get_message(timeout=PATIENCE_S) is None and not pubsub.subscribed:
    pass
say("reading")
while True:
    message = pubsub.get_message(timeout=PATIENCE_S)
    if message is not None:
        say(message["channel"], message["data"])
"""


def reads(*channels: str) -> str:
    return READS.replace("CHANNELS", ", ".join(map(repr, channels)))


def test_it_rang_before_the_commit_so_whoever_is_rung_here_finds_the_message_even_if_the_publisher_dies_at_the_bell(
    folder: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = start(reads("news"))
    assert reader.hear() == "reading"
    rung = []
    with rlite_pubsub.Redis(folder) as client:
        assert client.publish("others", "") == 0
        assert client._host is not None
        post, live = client._host.membership.post, client._host.store.live
        strike, before = post._ringer.ring, live.last_commit()
        monkeypatch.setattr(
            post._ringer, "ring", lambda subscriber: (rung.append(live.last_commit()), strike(subscriber))[1]
        )
        assert client.publish("news", "first") == 1
        assert reader.hear() == "news first"
        assert rung[0] > before, "the bell was rung before the commit"

        def full(*_: object, **__: object) -> None:
            raise StoreFull(folder, 1)

        rung.clear()
        with monkeypatch.context() as patch:
            patch.setattr(live, "write", full)
            with pytest.raises(redis.ResponseError, match="is full"):
                client.publish("news", "never committed")
        assert not rung, "the bell was rung for what was not committed"
        assert client.publish("news", "second") == 1
    assert reader.hear() == "news second"


def test_it_made_the_fifo_after_an_empty_poll_so_here_a_message_published_between_poll_and_wait_is_not_lost(
    folder: Path, start: Start
) -> None:
    reader = start("""
        from rlite_pubsub.embedded import host
        host.BOUND_SECONDS = 3600.0
        with rlite_pubsub.Redis(folder) as client, client.pubsub() as pubsub:
            pubsub.subscribe("news")
            pubsub.get_message(timeout=PATIENCE_S)
            for _ in range(100):
                say("polled", pubsub.get_message())
                told()
                say(pubsub.get_message(timeout=PATIENCE_S)["data"])
    """)
    with rlite_pubsub.Redis(folder) as client:
        for number in range(100):
            assert reader.hear() == "polled None"
            assert client.publish("news", number) == 1
            reader.tell("wait")
            assert reader.hear() == str(number)


def test_its_reaper_changed_databases_in_mid_loop_so_here_those_behind_a_dead_one_get_their_messages(
    folder: Path, start: Start
) -> None:
    programs = [start(reads("news", f"own.{number}")) for number in range(7)]
    for program in programs:
        assert program.hear() == "reading"
    dead, alive = programs[::2], programs[1::2]
    with rlite_pubsub.Redis(folder) as client:
        assert client.publish("others", "the store is open") == 0
        for program in dead:
            program.kill()
        assert client.publish("news", "to all") == 3, "it looks who is alive before it counts, and has reaped all four"
        assert client.publish("news", "to the living") == 3
        assert client.publish("own.1", "to one") == 1
        assert [[program.hear(), program.hear()] for program in alive] == [["news to all", "news to the living"]] * 3
        assert alive[0].hear() == "own.1 to one"
        for program in alive:
            program.kill()
        client.publish("news", "to the dead")
    assert left_in(folder) == []


def test_it_took_eacces_for_death_so_here_a_lock_that_may_not_be_read_is_left_alone(folder: Path, start: Start) -> None:
    reader = start(reads("news"))
    assert reader.hear() == "reading"
    reader.kill()
    (lock,) = (folder / "subscribers").glob("*.lock")
    lock.chmod(0)
    publisher = start(
        """
        with rlite_pubsub.Redis(folder) as client:
            say(os.access(sys.argv[1] + "/subscribers/LOCK", os.R_OK), *[client.publish("news", "x") for _ in range(3)])
        """.replace("LOCK", lock.name),
        before_start=without_power,
    )
    assert publisher.hear() == "False 1 1 1"
    assert publisher.end() == 0
    assert lock.exists()
    with Store.open(folder) as store:
        assert len(store.live.read(lambda txn: list(txn.cursor()))) > 4, "records of one who may live are gone"
    lock.chmod(0o600)
    with rlite_pubsub.Redis(folder) as client:
        assert client.publish("news", "x") == 0, "now there is a proof"
    assert left_in(folder) == []


def test_its_reaper_left_lock_file_and_messages_so_here_the_next_publishes_leave_nothing(
    folder: Path, start: Start
) -> None:
    reader = start(reads("news"))
    assert reader.hear() == "reading"
    with rlite_pubsub.Redis(folder) as client:
        os.kill(reader.pid, signal.SIGSTOP)  # what is published from here on stays in its mailbox
        for _ in range(100):
            assert client.publish("news", "x" * 1000) == 1
        reader.kill()
        # Whoever was rung a moment ago, and has not looked yet, is not rung again at once.
        until(lambda: client.publish("news", "to one who is dead") == 0, "the reaper")
    assert left_in(folder) == []


def test_its_bare_unsubscribe_answered_for_everyone_so_here_it_answers_for_ones_own_channels(
    folder: Path, start: Start
) -> None:
    reader = start(reads("theirs"))
    assert reader.hear() == "reading"
    with rlite_pubsub.Redis(folder) as client, client.pubsub() as neighbour, client.pubsub() as pubsub:
        neighbour.subscribe("neighbours")
        pubsub.subscribe("mine")
        assert pubsub.get_message(timeout=PATIENCE_S)["data"] == 1
        pubsub.unsubscribe()
        answer = pubsub.get_message(timeout=PATIENCE_S)
        assert (answer["channel"], answer["data"]) == (b"mine", 0)
        assert pubsub.get_message() is None
        assert sorted(client.pubsub_channels()) == [b"neighbours", b"theirs"]
        assert client.publish("theirs", "still there") == 1
    assert reader.hear() == "theirs still there"
