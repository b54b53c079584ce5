"""More processes on one store than LMDB has places for by default (126), and places that the dead have kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlite_pubsub.storage import folder as folder_module
from rlite_pubsub.storage.errors import StoreBusy
from rlite_pubsub.storage.store import Store
from tests.faults.program import Start
from tests.soak.left import left_in

MANY = 150

CROWD = """
import select
import rlite_pubsub.embedded.service  # once, and not in each child

def live(number, begin, end):
    client = rlite_pubsub.Redis(folder)
    pubsub = client.pubsub()
    pubsub.subscribe("news")
    assert pubsub.get_message(timeout=PATIENCE_S)["data"] == 1
    say("subscribed", number)
    select.select([begin], [], [])
    def read(txn):
        say("reading", number)
        select.select([end], [], [])
    client.publish("others", "")
    client._host.store.live.read(read)
    say("heard", number, pubsub.get_message(timeout=PATIENCE_S)["data"])
    pubsub.close()
    client.close()

begin, end = os.pipe(), os.pipe()
children = []
for number in range(MANY):
    child = os.fork()
    if child == 0:
        os.close(begin[1])
        os.close(end[1])
        live(number, begin[0], end[0])
        os._exit(0)
    children.append(child)
for pipe in (begin, end):
    told()
    os.close(pipe[1])
say("ended", {os.waitpid(child, 0)[1] for child in children})
"""


def test_none_of_150_subscribing_processes_is_refused_and_all_receive_one_publish(folder: Path, start: Start) -> None:
    crowd = start(CROWD.replace("MANY", str(MANY)))
    everybody = set(range(MANY))
    assert {crowd.hear() for _ in everybody} == {f"subscribed {number}" for number in everybody}
    crowd.tell("read, all at once, and stay in there")
    assert {crowd.hear() for _ in everybody} == {f"reading {number}" for number in everybody}
    publisher = start("""
        with rlite_pubsub.Redis(folder) as client, client.pubsub() as pubsub:
            pubsub.subscribe("mine")
            say(client.publish("news", "to all"), client.publish("mine", ""))
    """)
    assert publisher.hear() == f"{MANY} 1"
    assert publisher.end() == 0
    crowd.tell("come out")
    assert {crowd.hear() for _ in everybody} == {f"heard {number} to all" for number in everybody}
    assert crowd.hear() == "ended {0}"
    assert left_in(folder) == []


TAKES_ALL_READER_SLOTS = """
import lmdb
client = rlite_pubsub.Redis(folder)
live = client._open_host().store.live.handle.lmdb
readers = []
try:
    while True:
        readers.append(live.begin())
except lmdb.ReadersFullError:
    say("all", len(readers))
told()
"""
STANDS_AT_THE_DOOR = """
import fcntl, time
door = os.open(folder + "/store.lock", os.O_RDWR)
fcntl.flock(door, fcntl.LOCK_EX)
say("inside")
for _ in range(int(told())):
    os.utime(door)  # as the next of a crowd does
    time.sleep(0.05)
os.close(door)
"""


def test_one_in_a_crowd_that_opens_the_store_waits_for_as_many_as_stand_before_it(
    folder: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "_PATIENCE_S", 2.0)
    Store.open(folder).close()
    crowd = start(STANDS_AT_THE_DOOR)
    assert crowd.hear() == "inside"
    crowd.tell("60")
    Store.open(folder).close()


def test_one_that_is_stuck_in_the_door_is_told_of(folder: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "_PATIENCE_S", 0.3)
    Store.open(folder).close()
    stuck = start(STANDS_AT_THE_DOOR)
    assert stuck.hear() == "inside"
    with pytest.raises(StoreBusy, match="another process has been opening it"):
        Store.open(folder)


PUBLISHES = """
try:
    with rlite_pubsub.Redis(folder) as client:
        say(client.publish("news", "hello"))
except Exception as error:
    say(type(error).__name__, error)
"""


def test_reader_slots_of_a_process_killed_in_mid_read_are_free_for_the_next(folder: Path, start: Start) -> None:
    reader = start(TAKES_ALL_READER_SLOTS)
    assert reader.hear() == "all 4096"
    reader.kill()
    assert start(PUBLISHES).hear() == "0"


def test_process_that_runs_while_all_slots_were_taken_by_one_that_was_killed_goes_on(
    folder: Path, start: Start
) -> None:
    subscriber = start("""
        with rlite_pubsub.Redis(folder) as client, client.pubsub() as pubsub:
            pubsub.subscribe("news")
            pubsub.get_message(timeout=PATIENCE_S)
            say("ready")
            say("goes", told())
            count, message = client.publish("news", "own"), pubsub.get_message(timeout=PATIENCE_S)
            say(count, message["data"], *client.pubsub_channels())
    """)
    assert subscriber.hear() == "ready"
    reader = start(TAKES_ALL_READER_SLOTS)
    assert reader.hear() == "all 4096"
    reader.kill()
    subscriber.tell("on")
    assert subscriber.hear() == "goes on"
    assert subscriber.hear() == "1 own news"


def test_slots_that_the_living_have_all_taken_are_told_of(folder: Path, start: Start) -> None:
    reader = start(TAKES_ALL_READER_SLOTS)
    assert reader.hear() == "all 4096"
    told = start(PUBLISHES).hear()
    assert told.startswith("StoreUnavailable ") and told.endswith("is busy: all of its 4096 reader slots are taken")
